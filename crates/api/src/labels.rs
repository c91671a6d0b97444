//! Labels that users, our controllers and other programs know by name.

/// On a CloneSet, v1alpha1: `"true"` keeps pods that wait for their deletion out of the count while scaling.
pub const CLONESET_SCALING_EXCLUDE_PREPARING_DELETE: &str =
    "apps.kruise.io/cloneset-scaling-exclude-preparing-delete";

/// On every namespace: its name, written by the API server.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// On a SidecarSet, v1alpha1: the name its author gives to this state of the sidecars.
pub const SIDECARSET_CUSTOM_VERSION: &str = "apps.kruise.io/sidecarset-custom-version";

/// Labels that conversion between versions moves into fields and back.
pub const CONVERTED: &[&str] = &[CLONESET_SCALING_EXCLUDE_PREPARING_DELETE, SIDECARSET_CUSTOM_VERSION];
