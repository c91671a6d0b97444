//! PersistentPodState: remembers where pods with an identity ran, so that they return there.

mod conversion;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    convert::Steps,
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::text("KIND", ".spec.targetRef.kind", "The kind of the workload whose pods are remembered."),
    Column::text("TARGET", ".spec.targetRef.name", "The workload whose pods are remembered."),
    crate::catalogue::AGE,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "PersistentPodState",
    plural: "persistentpodstates",
    short_names: &[],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::PersistentPodState>(COLUMNS, false),
        Version::of::<v1beta1::PersistentPodState>(COLUMNS, false),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    // An absent retention policy has its meaning where it is read; nothing is written into the object.
    defaults: |_| {},
    about: "Remembers on which nodes the pods of a StatefulSet ran and brings them back there.",
};
