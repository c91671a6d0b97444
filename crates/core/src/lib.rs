//! The rules of kruise-rs: what to do next, and what to refuse, as pure functions.
//!
//! Nothing here waits, asks a server, reads a clock or draws a random number: all of that comes in as arguments. A plan
//! comes out as [effects](effect::Effect), which the runtime carries out.

pub mod admission;
pub mod advancedcronjob;
pub mod availability;
pub mod broadcastjob;
pub mod canonical_json;
pub mod causes;
pub mod claims;
pub mod cloneset;
pub mod conditions;
pub mod configuration;
pub mod containerrecreaterequest;
pub mod daemonset;
pub mod deletion_order;
pub mod effect;
pub mod enhanced_liveness;
pub mod ephemeraljob;
pub mod features;
pub mod hash;
pub mod image_pull;
pub mod image_reference;
pub mod image_secrets;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod in_place;
pub mod launch_priority;
pub mod lifecycle;
pub mod merge_patch;
pub mod migration;
pub mod new_pod;
pub mod node;
pub mod node_fit;
pub mod nodeimage;
pub mod nodepodprobe;
pub mod object;
pub mod ownership;
#[cfg(test)]
mod patch_model;
pub mod persistentpodstate;
pub mod plan;
pub mod pod;
pub mod pod_deletion;
#[cfg(test)]
mod pod_model;
pub mod pod_readiness;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod pre_download;
pub mod random_id;
pub mod readiness;
pub mod refusal;
pub mod resourcedistribution;
pub mod revision;
pub mod sidecar_terminator;
pub mod sidecarset;
pub mod specified_delete;
pub mod statefulset;
pub mod strategic_merge;
pub mod strategy;
pub mod text;
pub mod time;
pub mod uniteddeployment;
pub mod update_order;
pub mod volume_claim;
pub mod waiting;
pub mod workload;
pub mod workloadspread;
