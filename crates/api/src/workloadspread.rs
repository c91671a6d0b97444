//! WorkloadSpread: spreads the pods of one existing workload over subsets of nodes, without changing the workload.

mod conversion;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    convert::Steps,
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::text("WorkloadName", ".spec.targetRef.name", "The workload whose pods are spread."),
    Column::text("WorkloadKind", ".spec.targetRef.kind", "The kind of that workload."),
    Column::text(
        "Adaptive",
        ".spec.scheduleStrategy.type",
        "Adaptive where pods that cannot be scheduled move to another subset, else Fixed or nothing.",
    ),
    Column::date("Age", ".metadata.creationTimestamp", "Time since the object was made."),
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "WorkloadSpread",
    plural: "workloadspreads",
    short_names: &["ws"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::WorkloadSpread>(COLUMNS, false),
        Version::of::<v1beta1::WorkloadSpread>(COLUMNS, false),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    // Absent and empty values have their meaning where they are read; nothing is written into the object.
    defaults: |_| {},
    about: "Spreads the pods of one workload over ordered subsets of nodes without changing the workload.",
};
