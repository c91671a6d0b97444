//! All kinds, in one list: what `cargo xtask generate` writes and what conversion looks up.

use crate::crd::{Column, Crd};

/// The age of an object.
pub const AGE: Column = Column::date("AGE", ".metadata.creationTimestamp", "Time since the object was made.");
/// The containers of the template.
pub const CONTAINERS: Column =
    Column::text("CONTAINERS", ".spec.template.spec.containers[*].name", "Containers of the template.")
        .wide();
/// The images of the template.
pub const IMAGES: Column =
    Column::text("IMAGES", ".spec.template.spec.containers[*].image", "Images of the template.").wide();

/// Every kind, sorted by group and name.
pub const CRDS: &[&Crd] = &[
    &crate::advancedcronjob::CRD,
    &crate::broadcastjob::CRD,
    &crate::cloneset::CRD,
    &crate::containerrecreaterequest::CRD,
    &crate::daemonset::CRD,
    &crate::ephemeraljob::CRD,
    &crate::imagelistpulljob::CRD,
    &crate::imagepulljob::CRD,
    &crate::nodeimage::CRD,
    &crate::nodepodprobe::CRD,
    &crate::persistentpodstate::CRD,
    &crate::podprobemarker::CRD,
    &crate::resourcedistribution::CRD,
    &crate::sidecarset::CRD,
    &crate::statefulset::CRD,
    &crate::uniteddeployment::CRD,
    &crate::workloadspread::CRD,
    &crate::podunavailablebudget::CRD,
];

/// The kind with this name.
pub fn by_kind(kind: &str) -> Option<&'static Crd> {
    CRDS.iter().find(|crd| crd.kind == kind).copied()
}
