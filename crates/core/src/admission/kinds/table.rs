//! Every kind with what its admission consists of. A new rule is one line here.

use kruise_api::{
    advancedcronjob, broadcastjob, cloneset, containerrecreaterequest, crd::Crd, daemonset, ephemeraljob,
    gates::Gate, imagelistpulljob, imagepulljob, nodeimage, nodepodprobe, persistentpodstate, podprobemarker,
    podunavailablebudget, resourcedistribution, sidecarset, statefulset, time::Time, uniteddeployment,
    workloadspread,
};
use serde_json::Value;

use super::{Change, Context, Entry, Template};
use crate::admission::{Answer, Request, rules};

/// Every kind, in the order of the catalogue.
pub const TABLE: &[Entry] = &[
    Entry {
        templates: &[CRON_JOB, CRON_BROADCAST],
        rules: &[
            |change, _, found| rules::simple_name(found, change.new, "AdvancedCronJob"),
            crate::advancedcronjob::validate::rule,
        ],
        advice: Some(crate::advancedcronjob::validate::advice),
        ..plain(&advancedcronjob::CRD)
    },
    Entry {
        templates: &[Template { selected: false, claims: None, ..PODS }],
        rules: &[
            |change, _, found| rules::simple_name(found, change.new, "BroadcastJob"),
            crate::broadcastjob::validate::rule,
        ],
        ..plain(&broadcastjob::CRD)
    },
    Entry {
        templates: &[PODS],
        selector: Some(rules::Selector { missing: "", empty: "empty selector is invalid for cloneset" }),
        rules: &[crate::cloneset::validate::rule],
        ..plain(&cloneset::CRD)
    },
    Entry {
        gates: &[Gate::KruiseDaemon],
        completion: Some(crate::containerrecreaterequest::admit::complete),
        ..plain(&containerrecreaterequest::CRD)
    },
    Entry {
        templates: &[Template { defaulted: false, claims: None, ..PODS }],
        selector: Some(rules::Selector { missing: "", empty: "empty selector is invalid for daemonset" }),
        rules: &[crate::daemonset::validate::rule],
        ..plain(&daemonset::CRD)
    },
    Entry { rules: &[crate::ephemeraljob::validate::rule], ..plain(&ephemeraljob::CRD) },
    Entry {
        gates: &[Gate::KruiseDaemon, Gate::ImagePullJobGate],
        refusals: &[crate::image_pull::validate::list],
        ..plain(&imagelistpulljob::CRD)
    },
    Entry {
        gates: &[Gate::KruiseDaemon, Gate::ImagePullJobGate],
        refusals: &[crate::image_pull::validate::job],
        ..plain(&imagepulljob::CRD)
    },
    Entry {
        gates: &[Gate::KruiseDaemon],
        mutations: &[complete_node_image],
        refusals: &[crate::nodeimage::validate::refusal],
        ..plain(&nodeimage::CRD)
    },
    Entry { rules: &[crate::nodepodprobe::validate::rule], ..plain(&nodepodprobe::CRD) },
    Entry {
        refusals: &[crate::persistentpodstate::validate::unreadable_list],
        rules: &[crate::persistentpodstate::validate::rule],
        ..plain(&persistentpodstate::CRD)
    },
    Entry {
        gates: &[Gate::KruiseDaemon, Gate::PodProbeMarkerGate],
        selector: Some(rules::Selector {
            missing: "empty Selector is not valid for PodProbeMarker.",
            empty: "empty selector is not valid for podProbeMarker.",
        }),
        rules: &[crate::podprobemarker::validate::rule],
        ..plain(&podprobemarker::CRD)
    },
    Entry {
        gates: &[Gate::ResourceDistributionGate],
        rules: &[crate::resourcedistribution::validate::rule],
        ..plain(&resourcedistribution::CRD)
    },
    Entry {
        misfit: Some(crate::sidecarset::defaults::readable),
        mutations: &[crate::sidecarset::defaults::mutation],
        rules: &[crate::sidecarset::validate::rule],
        ..plain(&sidecarset::CRD)
    },
    Entry {
        templates: &[PODS],
        selector: Some(rules::Selector { missing: "", empty: "empty selector is invalid for statefulset" }),
        refusals: &[crate::statefulset::validate::in_place_only],
        rules: &[crate::statefulset::validate::rule],
        advice: Some(crate::statefulset::validate::advice),
        ..plain(&statefulset::CRD)
    },
    Entry {
        templates: &[SUBSET_STATEFULSET, SUBSET_ADVANCED, SUBSET_DEPLOYMENT],
        selector: Some(rules::Selector { missing: "", empty: "empty selector is invalid for statefulset" }),
        rules: &[crate::uniteddeployment::validate::rule],
        advice: Some(crate::uniteddeployment::validate::advice),
        ..plain(&uniteddeployment::CRD)
    },
    Entry {
        gates: &[Gate::WorkloadSpread],
        rules: &[crate::workloadspread::validate::rule],
        ..plain(&workloadspread::CRD)
    },
    Entry {
        refusals: &[budget_gates],
        rules: &[crate::podunavailablebudget::validate::rule],
        ..plain(&podunavailablebudget::CRD)
    },
];

const fn plain(crd: &'static Crd) -> Entry {
    Entry {
        crd,
        gates: &[],
        misfit: None,
        templates: &[],
        selector: None,
        mutations: &[],
        completion: None,
        refusals: &[],
        rules: &[],
        advice: None,
    }
}

/// `spec.template` of a workload with claims.
const PODS: Template = Template {
    path: &["spec", "template"],
    claims: Some(&["spec", "volumeClaimTemplates"]),
    renewed_by: &["spec", "template"],
    defaulted: true,
    checked: true,
    selected: true,
};

const CRON_JOB: Template = Template {
    path: &["spec", "template", "jobTemplate", "spec", "template"],
    claims: None,
    selected: false,
    ..PODS
};

const CRON_BROADCAST: Template =
    Template { path: &["spec", "template", "broadcastJobTemplate", "spec", "template"], ..CRON_JOB };

/// The only template of a UnitedDeployment that gets defaults. It is not judged: a subset may patch it until it fits.
const SUBSET_STATEFULSET: Template = Template {
    path: &["spec", "template", "statefulSetTemplate", "spec", "template"],
    claims: Some(&["spec", "template", "statefulSetTemplate", "spec", "volumeClaimTemplates"]),
    renewed_by: &["spec", "template", "statefulSetTemplate"],
    checked: false,
    ..PODS
};

const SUBSET_ADVANCED: Template = Template {
    path: &["spec", "template", "advancedStatefulSetTemplate", "spec", "template"],
    claims: None,
    defaulted: false,
    checked: false,
    ..PODS
};

const SUBSET_DEPLOYMENT: Template = Template {
    path: &["spec", "template", "deploymentTemplate", "spec", "template"],
    claims: None,
    defaulted: false,
    ..PODS
};

fn complete_node_image(object: &mut Value, _: &Request, context: &Context<'_>) -> Result<(), String> {
    nodeimage::complete(object, Time(context.now));
    Ok(())
}

/// A budget does nothing while both of its gates are closed, so nobody may rely on one.
fn budget_gates(_: &Change<'_>, context: &Context<'_>) -> Option<Answer> {
    let gates = [Gate::PodUnavailableBudgetDeleteGate, Gate::PodUnavailableBudgetUpdateGate];
    if gates.iter().any(|gate| context.gates.enabled(*gate)) {
        return None;
    }
    let [delete, update] = gates;
    Some(Answer::bad_object(format!(
        "feature PodUnavailableBudget is invalid, please open via feature-gate({delete}, {update})"
    )))
}
