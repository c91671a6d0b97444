//! UnitedDeployment: one application in several subsets, with one workload for each subset.

mod conversion;
mod defaults;
pub mod v1alpha1;
pub mod v1beta1;

pub use conversion::clone_set_up as upgrade_clone_set;

use crate::{
    convert::Steps,
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("DESIRED", ".spec.replicas", "Pods that are wanted."),
    Column::integer("CURRENT", ".status.replicas", "Pods that exist."),
    Column::integer("UPDATED", ".status.updatedReplicas", "Pods on the newest revision."),
    Column::integer("READY", ".status.readyReplicas", "Pods that are ready."),
    crate::catalogue::AGE,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "UnitedDeployment",
    plural: "uniteddeployments",
    short_names: &["ud"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::UnitedDeployment>(COLUMNS, true),
        Version::of::<v1beta1::UnitedDeployment>(COLUMNS, true),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    defaults: defaults::apply,
    about: "Runs one application in several subsets of nodes, with one workload for each subset.",
};
