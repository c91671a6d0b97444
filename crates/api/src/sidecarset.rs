//! SidecarSet: containers that are added to pods of other workloads when they are made, and kept up to date in place.

pub mod container;
mod conversion;
mod defaults;
pub mod v1alpha1;
pub mod v1beta1;

use crate::{
    convert::Steps,
    crd::{Column, Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

const COLUMNS: &[Column] = &[
    Column::integer("MATCHED", ".status.matchedPods", "Pods that carry the sidecars."),
    Column::integer("UPDATED", ".status.updatedPods", "Of those, pods with the newest sidecars."),
    Column::integer("READY", ".status.readyPods", "Of those, pods that are ready."),
    crate::catalogue::AGE,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "SidecarSet",
    plural: "sidecarsets",
    short_names: &[],
    scope: Scope::Cluster,
    versions: &[
        Version::of::<v1alpha1::SidecarSet>(COLUMNS, false),
        Version::of::<v1beta1::SidecarSet>(COLUMNS, false),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    defaults: defaults::apply,
    about: "Adds containers to pods of other workloads when they are made, and updates those containers in place.",
};
