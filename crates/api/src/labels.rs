//! Labels that users, our controllers and other programs know by name.

/// On a CloneSet, v1alpha1: `"true"` keeps pods that wait for their deletion out of the count while scaling.
pub const CLONESET_SCALING_EXCLUDE_PREPARING_DELETE: &str =
    "apps.kruise.io/cloneset-scaling-exclude-preparing-delete";

/// Labels that conversion between versions moves into fields and back.
pub const CONVERTED: &[&str] = &[CLONESET_SCALING_EXCLUDE_PREPARING_DELETE];
