//! StatefulSet: pods with a stable name, number and storage each, updated in parallel and in place where wanted.

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
    Column::integer("DESIRED", ".spec.replicas", "Pods that are wanted."),
    Column::integer("CURRENT", ".status.replicas", "Pods that exist."),
    Column::integer("UPDATED", ".status.updatedReplicas", "Pods on the newest revision."),
    Column::integer("READY", ".status.readyReplicas", "Pods that are ready."),
    crate::catalogue::AGE,
    crate::catalogue::CONTAINERS,
    crate::catalogue::IMAGES,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "StatefulSet",
    plural: "statefulsets",
    short_names: &["sts", "asts"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::StatefulSet>(COLUMNS, true),
        Version::of::<v1beta1::StatefulSet>(COLUMNS, true),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    defaults: defaults::apply,
    about: "Keeps numbered pods with storage of their own and updates them one by one, in parallel or in place.",
};
