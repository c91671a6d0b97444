//! ContainerRecreateRequest: restarts chosen containers of a running pod.

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
    Column::text("PHASE", ".status.phase", "How far the request is."),
    Column::text("POD", ".spec.podName", "The pod whose containers are recreated."),
    Column::text("NODE", ".metadata.labels.crr\\.apps\\.kruise\\.io/node-name", "The node of that pod."),
    crate::catalogue::AGE,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "ContainerRecreateRequest",
    plural: "containerrecreaterequests",
    short_names: &["crr"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::ContainerRecreateRequest>(COLUMNS, false),
        Version::of::<v1beta1::ContainerRecreateRequest>(COLUMNS, false),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    defaults: defaults::apply,
    about: "Restarts chosen containers of a running pod without touching the others.",
};
