//! The kinds of kruise-rs and everything users see by name.
//!
//! Each kind is a module with its versions, its defaults and its conversion. The hub of conversion is the newest
//! version. Objects embedded in ours (pod templates, patches) stay raw JSON, so that nothing in them is lost.
//!
//! This crate is pure: no client, no clock, no I/O.

#[macro_use]
mod kind;
#[macro_use]
mod open_enum;

pub mod advancedcronjob;
pub mod annotations;
pub mod broadcastjob;
pub mod catalogue;
pub mod cloneset;
pub mod components;
pub mod condition;
pub mod conditions;
pub mod containerrecreaterequest;
pub mod convert;
pub mod crd;
pub mod cron;
pub mod daemonset;
pub mod duration;
pub mod env;
pub mod environment;
pub mod ephemeraljob;
pub mod finalizers;
pub mod gates;
pub mod image_pull;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod int_or_percent;
pub mod json;
pub mod kubernetes;
pub mod labels;
pub mod lifecycle;
pub mod names;
pub mod nearest;
pub mod nodeimage;
pub mod nodepodprobe;
pub mod persistentpodstate;
pub mod placement;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod probe;
pub mod raw;
pub mod resourcedistribution;
pub mod rollout;
pub mod schedule;
pub mod selector;
pub mod sidecarset;
pub mod statefulset;
pub mod target;
pub mod time;
pub mod uniteddeployment;
pub mod version;
pub mod workloadspread;
