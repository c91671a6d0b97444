//! ImagePullJob: pulls one image on many nodes before pods need it.

mod defaults;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("TOTAL", ".status.desired", "Nodes that are to pull."),
    Column::integer("ACTIVE", ".status.active", "Nodes that pull now."),
    Column::integer("SUCCEED", ".status.succeeded", "Nodes that have the image."),
    Column::integer("FAILED", ".status.failed", "Nodes that could not pull."),
    crate::catalogue::AGE,
    Column::text("MESSAGE", ".status.message", "How far the job is."),
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "ImagePullJob",
    plural: "imagepulljobs",
    short_names: &[],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::ImagePullJob>(COLUMNS, false),
        Version::of::<v1beta1::ImagePullJob>(COLUMNS, false),
    ],
    conversion: Conversion::None,
    defaults: defaults::apply,
    about: "Pulls one image on many nodes before pods need it.",
};
