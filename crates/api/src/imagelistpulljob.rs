//! ImageListPullJob: pulls several images on many nodes, by one ImagePullJob for each.

mod defaults;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("TOTAL", ".status.desired", "Images that are wanted."),
    Column::integer("SUCCEEDED", ".status.succeeded", "Images that every node has pulled."),
    Column::integer("COMPLETED", ".status.completed", "Images that every node has pulled or failed to pull."),
    crate::catalogue::AGE,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "ImageListPullJob",
    plural: "imagelistpulljobs",
    short_names: &[],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::ImageListPullJob>(COLUMNS, false),
        Version::of::<v1beta1::ImageListPullJob>(COLUMNS, false),
    ],
    conversion: Conversion::None,
    defaults: defaults::apply,
    about: "Pulls several images on many nodes before pods need them.",
};
