//! Environment variables of containers: what users set for us and what we put in.

/// Set by users: a whole number. Containers with larger numbers start first.
pub const CONTAINER_PRIORITY: &str = "KRUISE_CONTAINER_PRIORITY";
/// Put in by the pod webhook: holds the container back until the key [`BARRIER_KEY_PREFIX`] + priority is in the
/// ConfigMap of the pod.
pub const CONTAINER_BARRIER: &str = "KRUISE_CONTAINER_BARRIER";
/// Before the priority in a key of the barrier ConfigMap.
pub const BARRIER_KEY_PREFIX: &str = "p_";
/// After the name of the pod in the name of its barrier ConfigMap.
pub const BARRIER_NAME_SUFFIX: &str = "-barrier";
/// Put into every container that a SidecarSet brings: `true`.
pub const IS_INJECTED: &str = "IS_INJECTED";
/// Put into a sidecar that is upgraded hot: its counter.
pub const SIDECARSET_VERSION: &str = "SIDECARSET_VERSION";
/// Put into a sidecar that is upgraded hot: the counter of its twin.
pub const SIDECARSET_VERSION_ALT: &str = "SIDECARSET_VERSION_ALT";
/// Set by users: `true` ends this container when the main containers of its job have ended.
pub const TERMINATE_SIDECAR: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
/// Set by users: ends this container by changing its image to this one, for nodes without daemon.
pub const TERMINATE_SIDECAR_WITH_IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
/// Set by users: `true` keeps the exit code of this container out of the result of the pod.
pub const TERMINATE_SIDECAR_IGNORE_EXIT_CODE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";
/// Put into every container of an EphemeralJob: the uid of the job.
pub const EPHEMERAL_JOB_ID: &str = "KRUISE_EJOB_ID";
