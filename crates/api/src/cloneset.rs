//! CloneSet: many identical pods without identity, owned directly, updated in place where possible.

pub(crate) mod conversion;
mod defaults;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    convert::Steps,
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("DESIRED", ".spec.replicas", "Pods that are wanted."),
    Column::integer("UPDATED", ".status.updatedReplicas", "Pods on the newest revision."),
    Column::integer(
        "UPDATED_READY",
        ".status.updatedReadyReplicas",
        "Pods on the newest revision that are ready.",
    ),
    Column::integer(
        "UPDATED_AVAILABLE",
        ".status.updatedAvailableReplicas",
        "Pods on the newest revision that have been ready for minReadySeconds.",
    ),
    Column::integer("READY", ".status.readyReplicas", "Pods that are ready."),
    Column::integer("TOTAL", ".status.replicas", "Pods that exist."),
    crate::catalogue::AGE,
    crate::catalogue::CONTAINERS,
    crate::catalogue::IMAGES,
    Column::text("SELECTOR", ".status.labelSelector", "The label selector of the pods.").wide(),
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "CloneSet",
    plural: "clonesets",
    short_names: &["clone"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::CloneSet>(COLUMNS, true),
        Version::of::<v1beta1::CloneSet>(COLUMNS, true),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    defaults: defaults::apply,
    about: "Keeps a number of identical pods running and updates them in place where possible.",
};
