//! BroadcastJob: runs one pod to its end on every node that fits.

mod defaults;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("Desired", ".status.desired", "Nodes on which a pod should run."),
    Column::integer("Active", ".status.active", "Pods that run."),
    Column::integer("Succeeded", ".status.succeeded", "Pods that ended well."),
    Column::integer("Failed", ".status.failed", "Pods that failed."),
    crate::catalogue::AGE,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "BroadcastJob",
    plural: "broadcastjobs",
    short_names: &["bcj"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::BroadcastJob>(COLUMNS, false),
        Version::of::<v1beta1::BroadcastJob>(COLUMNS, false),
    ],
    conversion: Conversion::None,
    defaults: defaults::apply,
    about: "Runs one pod to its end on every node that fits, once or for every node that joins.",
};
