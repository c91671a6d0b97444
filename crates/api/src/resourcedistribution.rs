//! ResourceDistribution: keeps copies of one Secret or ConfigMap in many namespaces.

mod conversion;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    convert::Steps,
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("TOTAL", ".status.desired", "Namespaces that should have a copy."),
    Column::integer("SUCCEED", ".status.succeeded", "Namespaces whose copy is up to date."),
    Column::integer("FAILED", ".status.failed", "Namespaces whose copy could not be written."),
    crate::catalogue::AGE,
];

/// Types of conditions: one for each way in which copying can fail, in the order in which a status has them.
pub mod conditions {
    /// A copy could not be read.
    pub const GET_FAILED: &str = "GetResourceFailed";
    /// A copy could not be created.
    pub const CREATE_FAILED: &str = "CreateResourceFailed";
    /// A copy could not be brought up to date.
    pub const UPDATE_FAILED: &str = "UpdateResourceFailed";
    /// A copy could not be deleted.
    pub const DELETE_FAILED: &str = "DeleteResourceFailed";
    /// A namespace has an object of this name that belongs to somebody else.
    pub const CONFLICT: &str = "ConflictOccurred";
    /// A namespace is listed by name and not there.
    pub const NAMESPACE_MISSING: &str = "NamespaceNotExists";
    /// The reason of a condition that is False.
    pub const SUCCEEDED: &str = "Succeeded";
    /// The reason of `ConflictOccurred`.
    pub const CONFLICT_TEXT: &str =
        "conflict with existing resources because of the same namespace, group, version, kind and name";
    /// The reason of `NamespaceNotExists`.
    pub const NAMESPACE_MISSING_TEXT: &str = "namespace not found or is terminating";
}

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "ResourceDistribution",
    plural: "resourcedistributions",
    short_names: &["distributor"],
    scope: Scope::Cluster,
    versions: &[
        Version::of::<v1alpha1::ResourceDistribution>(COLUMNS, false),
        Version::of::<v1beta1::ResourceDistribution>(COLUMNS, false),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    // Every field means something as it is written; nothing is filled in.
    defaults: |_| {},
    about: "Keeps copies of one Secret or ConfigMap in many namespaces.",
};
