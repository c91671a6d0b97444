//! Environment variables that our own programs read.

/// Manager: the namespace that it runs in. [`NAMESPACE`](crate::names::NAMESPACE) unless set.
pub const POD_NAMESPACE: &str = "POD_NAMESPACE";
/// Manager and daemon: the namespace of the copies of pull secrets.
/// [`DAEMON_CONFIG_NAMESPACE`](crate::names::DAEMON_CONFIG_NAMESPACE) unless set.
pub const DAEMON_CONFIG_NAMESPACE: &str = "KRUISE_DAEMON_CONFIG_NS";
/// Manager: the HTTPS port of the webhooks. [`DEFAULT_WEBHOOK_PORT`] unless set.
pub const WEBHOOK_PORT: &str = "WEBHOOK_PORT";
/// What [`WEBHOOK_PORT`] is unless set.
pub const DEFAULT_WEBHOOK_PORT: u16 = 9876;
/// Manager: the folder of the certificate files. [`DEFAULT_WEBHOOK_CERT_DIR`] unless set.
pub const WEBHOOK_CERT_DIR: &str = "WEBHOOK_CERT_DIR";
/// What [`WEBHOOK_CERT_DIR`] is unless set.
pub const DEFAULT_WEBHOOK_CERT_DIR: &str = "/tmp/kruise-webhook-certs";
/// Manager: registers the webhooks by the URL of this host instead of by their Service.
pub const WEBHOOK_HOST: &str = "WEBHOOK_HOST";
/// Manager: where certificates are kept. See [`CERT_WRITER_FS`]; in a Secret unless set.
pub const WEBHOOK_CERT_WRITER: &str = "WEBHOOK_CERT_WRITER";
/// Value of [`WEBHOOK_CERT_WRITER`]: only on disk.
pub const CERT_WRITER_FS: &str = "fs";
/// Manager: the Secret with the certificates. [`WEBHOOK_SECRET`](crate::names::WEBHOOK_SECRET) unless set.
pub const SECRET_NAME: &str = "SECRET_NAME";
/// Manager: the Service of the webhooks. [`WEBHOOK_SERVICE`](crate::names::WEBHOOK_SERVICE) unless set.
pub const SERVICE_NAME: &str = "SERVICE_NAME";
/// Manager: how long before its end a certificate is renewed: a number with `d`, `m` (30 days) or `y` (365 days).
/// 180 days unless set.
pub const CERTS_RENEW_BEFORE: &str = "CERTS_RENEW_BEFORE";
/// Manager: an old way to say which kinds are on. A list without `SidecarSet` closes the gate `PodWebhook`.
pub const CUSTOM_RESOURCE_ENABLE: &str = "CUSTOM_RESOURCE_ENABLE";
/// Manager and daemon: means something to programs in Go. Accepted and ignored.
pub const CACHE_MUTATION_DETECTOR: &str = "KUBE_CACHE_MUTATION_DETECTOR";
/// Daemon: the node that it serves. Must be set.
pub const NODE_NAME: &str = "NODE_NAME";
/// Manager and daemon: the proxy for plain HTTP.
pub const HTTP_PROXY: &str = "HTTP_PROXY";
/// Manager and daemon: the proxy for HTTPS.
pub const HTTPS_PROXY: &str = "HTTPS_PROXY";
/// Manager and daemon: the hosts that need no proxy.
pub const NO_PROXY: &str = "NO_PROXY";
