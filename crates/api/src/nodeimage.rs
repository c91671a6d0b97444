//! NodeImage: which images one node is to pull, and how far it is. Made and kept by the manager, one for each node.

mod defaults;
pub mod v1alpha1;
pub mod v1beta1;

pub use defaults::complete;

use crate::{
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("DESIRED", ".status.desired", "Images that the node is to pull."),
    Column::integer("PULLING", ".status.pulling", "Images that the node pulls now."),
    Column::integer("SUCCEED", ".status.succeeded", "Images that the node has pulled."),
    Column::integer("FAILED", ".status.failed", "Images that the node could not pull."),
    crate::catalogue::AGE,
];

/// The CRD.
///
/// Both versions have the same shape. The reference knows the mode of a pull secret in v1beta1 only; without it in
/// the older schema a v1alpha1 writer would erase it.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "NodeImage",
    plural: "nodeimages",
    short_names: &[],
    scope: Scope::Cluster,
    versions: &[
        Version::of::<v1alpha1::NodeImage>(COLUMNS, false),
        Version::of::<v1beta1::NodeImage>(COLUMNS, false),
    ],
    conversion: Conversion::None,
    defaults: defaults::apply,
    about: "The images that one node is to pull, and how far it is. Made by the manager.",
};
