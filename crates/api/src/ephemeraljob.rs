//! EphemeralJob: adds ephemeral containers to running pods, for instance to look into many of them at once.

pub mod v1alpha1;

use crate::{
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::text("STATUS", ".status.phase", "How far the job is."),
    Column::integer("MATCH", ".status.match", "Pods that the job works on."),
    Column::integer("SUCCEED", ".status.succeeded", "Pods whose ephemeral containers ended well."),
    Column::integer("FAILED", ".status.failed", "Pods with an ephemeral container that failed."),
    Column::integer("RUNNING", ".status.running", "Pods whose ephemeral containers run."),
    Column::integer("WAITING", ".status.waiting", "Pods whose ephemeral containers have not started yet."),
    crate::catalogue::AGE,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "EphemeralJob",
    plural: "ephemeraljobs",
    short_names: &["ejob"],
    scope: Scope::Namespaced,
    versions: &[Version::of::<v1alpha1::EphemeralJob>(COLUMNS, false)],
    conversion: Conversion::None,
    // There is no mutating webhook for this kind: absent fields get their value when the job runs.
    defaults: |_| {},
    about: "Adds ephemeral containers to running pods.",
};
