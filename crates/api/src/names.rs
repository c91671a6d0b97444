//! Names of things that an installation consists of.

/// API group of the workloads and operations.
pub const APPS_GROUP: &str = "apps.kruise.io";
/// API group of the protection policies.
pub const POLICY_GROUP: &str = "policy.kruise.io";
/// Namespace of manager and daemon unless configured otherwise.
pub const NAMESPACE: &str = "kruise-system";
/// Service in front of the webhooks.
pub const WEBHOOK_SERVICE: &str = "kruise-webhook-service";
