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
];

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
