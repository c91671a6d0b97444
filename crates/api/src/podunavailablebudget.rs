//! PodUnavailableBudget: how many pods of an application may be unavailable at once, whoever asks.

mod conversion;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    convert::Steps,
    crd::{Column, Conversion, Crd, Scope, Version},
    names::POLICY_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("Allowed", ".status.unavailableAllowed", "Pods that may become unavailable now."),
    Column::integer("Current", ".status.currentAvailable", "Pods that are available."),
    Column::integer("Desired", ".status.desiredAvailable", "Pods that must stay available."),
    Column::integer("Total", ".status.totalReplicas", "Pods that the budget covers."),
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: POLICY_GROUP,
    kind: "PodUnavailableBudget",
    plural: "podunavailablebudgets",
    short_names: &["pub"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::PodUnavailableBudget>(COLUMNS, false),
        Version::of::<v1beta1::PodUnavailableBudget>(COLUMNS, false),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    // An empty list of operations has its meaning where it is read; nothing is written into the object.
    defaults: |_| {},
    about: "Limits how many pods of an application may be unavailable at the same time.",
};
