//! DaemonSet: one pod on each node that fits, with updates in place, in parts, and by node.

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
    Column::integer("DESIRED", ".status.desiredNumberScheduled", "Nodes that should run a pod."),
    Column::integer("CURRENT", ".status.currentNumberScheduled", "Of those, nodes that have a pod."),
    Column::integer("READY", ".status.numberReady", "Nodes whose pod is ready."),
    Column::integer(
        "UP-TO-DATE",
        ".status.updatedNumberScheduled",
        "Nodes whose pod is on the newest revision.",
    ),
    Column::integer(
        "AVAILABLE",
        ".status.numberAvailable",
        "Nodes whose pod has been ready for minReadySeconds.",
    ),
    crate::catalogue::AGE,
    crate::catalogue::CONTAINERS,
    crate::catalogue::IMAGES,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "DaemonSet",
    plural: "daemonsets",
    short_names: &["daemon", "ads"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::DaemonSet>(COLUMNS, false),
        Version::of::<v1beta1::DaemonSet>(COLUMNS, false),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    defaults: defaults::apply,
    about: "Keeps one pod on each node that fits and updates the pods in parts, by node or in place.",
};
