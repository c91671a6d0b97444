//! AdvancedCronJob: makes a Job, a BroadcastJob or an ImageListPullJob whenever its schedule says so.

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
    Column::text("Schedule", ".spec.schedule", "When jobs are made, in the form of cron."),
    Column::text("Type", ".status.type", "The kind of the jobs."),
    Column::date("LastScheduleTime", ".status.lastScheduleTime", "Time since the last job was due."),
    crate::catalogue::AGE,
];

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "AdvancedCronJob",
    plural: "advancedcronjobs",
    short_names: &["acj"],
    scope: Scope::Namespaced,
    versions: &[
        Version::of::<v1alpha1::AdvancedCronJob>(COLUMNS, false),
        Version::of::<v1beta1::AdvancedCronJob>(COLUMNS, false),
    ],
    conversion: Conversion::Webhook(Steps { up: conversion::up, down: conversion::down }),
    defaults: defaults::apply,
    about: "Makes a Job, a BroadcastJob or an ImageListPullJob whenever its schedule says so.",
};
