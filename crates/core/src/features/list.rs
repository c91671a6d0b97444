//! Every feature. A new controller, webhook or permission is one line here.

use kruise_api::{
    crd::{Crd, Scope},
    gates::Gate,
    names,
};

use super::{
    Controller, Feature, HookRule, Names, Permission, Policy, Reach, Side, SideEffects, Webhook, When,
    rbac::Role,
};
use crate::{
    admission::{Operation, handler::Handler, protection::Subject},
    object::{CONTROLLER_REVISION, JOB, NODE, PERSISTENT_VOLUME_CLAIM, POD, Resource, SECRET},
    workload,
};

const READ: &[&str] = &["get", "list", "watch"];
const CHANGE: &[&str] = &["patch", "update"];
const WRITE: &[&str] = &["create", "delete", "patch", "update"];

const CREATE: &[Operation] = &[Operation::Create];
const CREATE_UPDATE: &[Operation] = &[Operation::Create, Operation::Update];
const CREATE_UPDATE_DELETE: &[Operation] = &[Operation::Create, Operation::Update, Operation::Delete];

const APPS: &str = names::APPS_GROUP;
const BOTH: &[&str] = &["v1alpha1", "v1beta1"];
const ALPHA: &[&str] = &["v1alpha1"];

/// Every feature.
pub const ALL: &[Feature] = &[
    Feature {
        name: "Certificates, leader election, configuration",
        when: When::Always,
        built: true,
        controllers: &[Controller {
            name: "webhook-controller",
            workers_flag: None,
            workers: 1,
            tunable_queue: false,
            needs_kind: None,
        }],
        watches: &[],
        webhooks: &[],
        permissions: &[
            may(Role::Manager, "", &["events"], &["create", "patch"]),
            may(Role::Manager, "", &["namespaces"], &["get"]).to(&[names::NAMESPACE]),
            may(Role::Manager, "apiextensions.k8s.io", &["customresourcedefinitions"], READ),
            may(
                Role::Manager,
                "admissionregistration.k8s.io",
                &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
                READ,
            ),
            may(
                Role::Certificates,
                "admissionregistration.k8s.io",
                &["mutatingwebhookconfigurations"],
                CHANGE,
            )
            .to(&[names::MUTATING_WEBHOOK_CONFIGURATION])
            .when(When::Not(Gate::EnableExternalCerts)),
            may(
                Role::Certificates,
                "admissionregistration.k8s.io",
                &["validatingwebhookconfigurations"],
                CHANGE,
            )
            .to(&[names::VALIDATING_WEBHOOK_CONFIGURATION])
            .when(When::Not(Gate::EnableExternalCerts)),
            Permission {
                names: Names::ConvertedDefinitions,
                when: When::Not(Gate::EnableExternalCerts),
                ..may(Role::Certificates, "apiextensions.k8s.io", &["customresourcedefinitions"], CHANGE)
            },
            may(
                Role::LeaderElection,
                "coordination.k8s.io",
                &["leases"],
                &["create", "get", "list", "patch", "update", "watch"],
            ),
            may(Role::LeaderElection, "", &["events"], &["create", "patch"]),
            may(Role::Webhook, "", &["secrets"], READ),
            may(Role::Webhook, "", &["secrets"], &["create", "patch", "update"])
                .when(When::Not(Gate::EnableExternalCerts)),
            may(Role::Webhook, "", &["configmaps"], READ),
        ],
    },
    Feature {
        name: "Pod admission",
        when: When::All(&[Gate::PodWebhook]),
        built: true,
        controllers: &[],
        watches: &[],
        webhooks: &[
            Webhook {
                rules: &[rule("", &["v1"], "pods", CREATE)],
                ..pod_webhook("mpod.kb.io", Side::Mutating, "/mutate-pod", Handler::MutatePod)
            },
            Webhook {
                rules: &[
                    rule("", &["v1"], "pods", &[Operation::Update, Operation::Delete]),
                    // Since Kubernetes 1.32 resources of a running pod change only through this.
                    rule("", &["v1"], "pods/resize", &[Operation::Update]),
                ],
                ..pod_webhook("vpod.kb.io", Side::Validating, "/validate-pod", Handler::ValidatePod)
            },
            Webhook {
                rules: &[rule("", &["v1"], "pods/eviction", CREATE)],
                ..pod_webhook("vpodeviction.kb.io", Side::Validating, "/validate-pod", Handler::ValidatePod)
            },
        ],
        permissions: &[],
    },
    Feature {
        name: "Pod readiness",
        when: When::Always,
        built: true,
        controllers: &[controller("pod-readiness-controller", "podreadiness-workers", 3, false)],
        watches: &[POD],
        webhooks: &[],
        permissions: &[
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "", &["pods/status"], &["patch"]),
        ],
    },
    Feature {
        controllers: &[controller("cloneset-controller", "cloneset-workers", 3, true).of("CloneSet")],
        watches: &[own(&kruise_api::cloneset::CRD), POD, PERSISTENT_VOLUME_CLAIM, CONTROLLER_REVISION],
        webhooks: &[
            mutating("CloneSet", "mcloneset.kb.io", "/mutate-apps-kruise-io-cloneset")
                .also(&["/mutate-apps-kruise-io-v1alpha1-cloneset"])
                .on(&[rule(APPS, BOTH, "clonesets", CREATE_UPDATE)]),
            validating("CloneSet", "vcloneset.kb.io", "/validate-apps-kruise-io-cloneset")
                .also(&["/validate-apps-kruise-io-v1alpha1-cloneset"])
                .on(&[rule(APPS, BOTH, "clonesets", CREATE_UPDATE_DELETE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["clonesets"], READ),
            may(Role::Manager, APPS, &["clonesets", "clonesets/status"], CHANGE),
            may(Role::Manager, APPS, &["clonesets/finalizers"], &["update"]),
            may(Role::Manager, "", &["pods", "persistentvolumeclaims"], READ),
            may(Role::Manager, "", &["pods", "persistentvolumeclaims"], WRITE),
            may(Role::Manager, "", &["pods/status"], CHANGE),
            may(Role::Manager, "", &["pods/resize"], CHANGE)
                .when(When::All(&[Gate::InPlaceWorkloadVerticalScaling])),
            may(Role::Manager, "apps", &["controllerrevisions"], READ),
            may(Role::Manager, "apps", &["controllerrevisions"], WRITE),
            // Only read for templates that spread their pods over zones or nodes.
            may(Role::Manager, "", &["nodes"], READ),
        ],
        built: true,
        ..feature("CloneSet")
    },
    Feature {
        name: "Pulling images before an update in place",
        when: When::All(&[Gate::PreDownloadImageForInPlaceUpdate]),
        watches: &[own(&kruise_api::imagepulljob::CRD)],
        permissions: &[
            may(Role::Manager, APPS, &["imagepulljobs"], READ),
            may(Role::Manager, APPS, &["imagepulljobs"], &["create", "delete"]),
        ],
        built: true,
        ..feature("")
    },
    Feature {
        controllers: &[controller("statefulset-controller", "statefulset-workers", 3, true).of("StatefulSet")],
        watches: &[own(&kruise_api::statefulset::CRD), POD, PERSISTENT_VOLUME_CLAIM, CONTROLLER_REVISION],
        webhooks: &[
            mutating("StatefulSet", "mstatefulset.kb.io", "/mutate-apps-kruise-io-statefulset").on(&[rule(
                APPS,
                BOTH,
                "statefulsets",
                CREATE_UPDATE,
            )]),
            validating("StatefulSet", "vstatefulset.kb.io", "/validate-apps-kruise-io-statefulset")
                .on(&[rule(APPS, BOTH, "statefulsets", CREATE_UPDATE_DELETE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["statefulsets"], READ),
            may(Role::Manager, APPS, &["statefulsets", "statefulsets/status"], CHANGE),
            may(Role::Manager, APPS, &["statefulsets/finalizers"], &["update"]),
            may(Role::Manager, "", &["pods", "persistentvolumeclaims"], READ),
            may(Role::Manager, "", &["pods", "persistentvolumeclaims"], WRITE),
            may(Role::Manager, "", &["pods/status"], CHANGE),
            may(Role::Manager, "", &["pods/resize"], CHANGE)
                .when(When::All(&[Gate::InPlaceWorkloadVerticalScaling])),
            may(Role::Manager, "apps", &["controllerrevisions"], READ),
            may(Role::Manager, "apps", &["controllerrevisions"], WRITE),
            // Whether claims may grow.
            may(Role::Manager, "storage.k8s.io", &["storageclasses"], READ)
                .when(When::All(&[Gate::StatefulSetAutoResizePVCGate])),
        ],
        built: true,
        ..feature("StatefulSet")
    },
    Feature {
        controllers: &[controller("daemonset-controller", "daemonset-workers", 3, true).of("DaemonSet")],
        watches: &[own(&kruise_api::daemonset::CRD), POD, NODE, CONTROLLER_REVISION],
        webhooks: &[
            mutating("DaemonSet", "mdaemonset.kb.io", "/mutate-apps-kruise-io-daemonset")
                .also(&["/mutate-apps-kruise-io-v1alpha1-daemonset"])
                .on(&[rule(APPS, BOTH, "daemonsets", CREATE_UPDATE)]),
            validating("DaemonSet", "vdaemonset.kb.io", "/validate-apps-kruise-io-daemonset")
                .also(&["/validate-apps-kruise-io-v1alpha1-daemonset"])
                .on(&[rule(APPS, BOTH, "daemonsets", CREATE_UPDATE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["daemonsets"], READ),
            may(Role::Manager, APPS, &["daemonsets/status"], CHANGE),
            may(Role::Manager, APPS, &["daemonsets/finalizers"], &["update"]),
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "", &["pods"], WRITE),
            may(Role::Manager, "", &["pods/status"], CHANGE),
            may(Role::Manager, "", &["pods/resize"], CHANGE)
                .when(When::All(&[Gate::InPlaceWorkloadVerticalScaling])),
            may(Role::Manager, "apps", &["controllerrevisions"], READ),
            may(Role::Manager, "apps", &["controllerrevisions"], WRITE),
            // Only watched once there is a DaemonSet.
            may(Role::Manager, "", &["nodes"], READ),
        ],
        built: true,
        ..feature("DaemonSet")
    },
    Feature {
        name: "Pulling images before an update of a DaemonSet",
        when: When::All(&[Gate::PreDownloadImageForDaemonSetUpdate]),
        watches: &[own(&kruise_api::imagepulljob::CRD)],
        permissions: &[
            may(Role::Manager, APPS, &["imagepulljobs"], READ),
            may(Role::Manager, APPS, &["imagepulljobs"], &["create", "delete"]),
        ],
        built: true,
        ..feature("")
    },
    Feature {
        controllers: &[
            controller("broadcastjob-controller", "broadcastjob-workers", 3, true).of("BroadcastJob")
        ],
        watches: &[own(&kruise_api::broadcastjob::CRD), POD, NODE],
        webhooks: &[
            mutating("BroadcastJob", "mbroadcastjob.kb.io", "/mutate-apps-kruise-io-broadcastjob")
                .also(&["/mutate-apps-kruise-io-v1alpha1-broadcastjob"])
                .on(&[rule(APPS, BOTH, "broadcastjobs", CREATE_UPDATE)]),
            validating("BroadcastJob", "vbroadcastjob.kb.io", "/validate-apps-kruise-io-broadcastjob")
                .also(&["/validate-apps-kruise-io-v1alpha1-broadcastjob"])
                .on(&[rule(APPS, BOTH, "broadcastjobs", CREATE_UPDATE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["broadcastjobs"], READ),
            may(Role::Manager, APPS, &["broadcastjobs"], &["delete", "patch"]),
            may(Role::Manager, APPS, &["broadcastjobs/status"], &["patch"]),
            may(Role::Manager, APPS, &["broadcastjobs/finalizers"], &["update"]),
            may(Role::Manager, "", &["nodes", "pods"], READ),
            may(Role::Manager, "", &["pods"], &["create", "delete"]),
        ],
        built: true,
        ..feature("BroadcastJob")
    },
    Feature {
        controllers: &[controller("advancedcronjob-controller", "advancedcronjob-workers", 3, false)
            .of("AdvancedCronJob")],
        watches: &[
            own(&kruise_api::advancedcronjob::CRD),
            own(&kruise_api::broadcastjob::CRD),
            own(&kruise_api::imagelistpulljob::CRD),
        ],
        webhooks: &[
            mutating("AdvancedCronJob", "madvancedcronjob.kb.io", "/mutate-apps-kruise-io-advancedcronjob")
                .also(&["/mutate-apps-kruise-io-v1alpha1-advancedcronjob"])
                .on(&[rule(APPS, BOTH, "advancedcronjobs", CREATE_UPDATE)]),
            validating(
                "AdvancedCronJob",
                "vadvancedcronjob.kb.io",
                "/validate-apps-kruise-io-advancedcronjob",
            )
            .also(&["/validate-apps-kruise-io-v1alpha1-advancedcronjob"])
            .on(&[rule(APPS, BOTH, "advancedcronjobs", CREATE_UPDATE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["advancedcronjobs", "broadcastjobs", "imagelistpulljobs"], READ),
            may(Role::Manager, APPS, &["advancedcronjobs/status"], &["patch"]),
            may(Role::Manager, APPS, &["advancedcronjobs/finalizers"], &["update"]),
            may(Role::Manager, APPS, &["broadcastjobs", "imagelistpulljobs"], &["create", "delete"]),
            may(Role::Manager, "batch", &["jobs"], READ),
            may(Role::Manager, "batch", &["jobs"], &["create", "delete"]),
        ],
        built: true,
        ..feature("AdvancedCronJob")
    },
    Feature {
        controllers: &[controller("sidecarset-controller", "sidecarset-workers", 8, true).of("SidecarSet")],
        watches: &[own(&kruise_api::sidecarset::CRD), POD, CONTROLLER_REVISION],
        webhooks: &[
            mutating("SidecarSet", "msidecarset.kb.io", "/mutate-apps-kruise-io-sidecarset")
                .also(&["/mutate-apps-kruise-io-v1alpha1-sidecarset"])
                .on(&[rule(APPS, BOTH, "sidecarsets", CREATE_UPDATE)]),
            validating("SidecarSet", "vsidecarset.kb.io", "/validate-apps-kruise-io-sidecarset")
                .also(&["/validate-apps-kruise-io-v1alpha1-sidecarset"])
                .on(&[rule(APPS, BOTH, "sidecarsets", CREATE_UPDATE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["sidecarsets"], READ),
            may(Role::Manager, APPS, &["sidecarsets/status"], &["patch"]),
            may(Role::Manager, APPS, &["sidecarsets/finalizers"], &["update"]),
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "", &["pods", "pods/status"], &["patch"]),
            may(Role::Manager, "apps", &["controllerrevisions"], READ),
            may(Role::Manager, "apps", &["controllerrevisions"], &["create", "delete", "patch"]),
            // Only watched once a set chooses namespaces by their labels.
            may(Role::Manager, "", &["namespaces"], READ),
        ],
        built: true,
        ..feature("SidecarSet")
    },
    Feature {
        controllers: &[controller("uniteddeployment-controller", "uniteddeployment-workers", 3, true)
            .of("UnitedDeployment")],
        watches: &[
            own(&kruise_api::uniteddeployment::CRD),
            own(&kruise_api::cloneset::CRD),
            own(&kruise_api::statefulset::CRD),
            POD,
            CONTROLLER_REVISION,
            // Only once there is a UnitedDeployment.
            workload::DEPLOYMENT,
            workload::REPLICA_SET,
            workload::STATEFUL_SET,
        ],
        webhooks: &[
            mutating(
                "UnitedDeployment",
                "muniteddeployment.kb.io",
                "/mutate-apps-kruise-io-uniteddeployment",
            )
            .also(&["/mutate-apps-kruise-io-v1alpha1-uniteddeployment"])
            .on(&[rule(APPS, BOTH, "uniteddeployments", CREATE_UPDATE)]),
            validating(
                "UnitedDeployment",
                "vuniteddeployment.kb.io",
                "/validate-apps-kruise-io-uniteddeployment",
            )
            .also(&["/validate-apps-kruise-io-v1alpha1-uniteddeployment"])
            .on(&[rule(APPS, BOTH, "uniteddeployments", CREATE_UPDATE_DELETE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["uniteddeployments", "clonesets", "statefulsets"], READ),
            may(Role::Manager, APPS, &["uniteddeployments/status"], &["patch"]),
            may(Role::Manager, APPS, &["uniteddeployments/finalizers"], &["update"]),
            may(Role::Manager, APPS, &["clonesets", "statefulsets"], &["create", "delete", "patch"]),
            // Only watched once there is a UnitedDeployment.
            may(Role::Manager, "apps", &["deployments", "replicasets", "statefulsets"], READ),
            may(Role::Manager, "apps", &["deployments", "statefulsets"], &["create", "delete", "patch"]),
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "", &["pods"], &["delete", "patch"]),
            may(Role::Manager, "apps", &["controllerrevisions"], READ),
            may(Role::Manager, "apps", &["controllerrevisions"], &["create", "delete", "patch"]),
        ],
        built: true,
        ..feature("UnitedDeployment")
    },
    Feature {
        when: When::All(&[Gate::WorkloadSpread]),
        controllers: &[
            controller("workloadspread-controller", "workloadspread-workers", 3, true).of("WorkloadSpread")
        ],
        // Workloads are only watched once a spread is about their kind.
        watches: &[
            own(&kruise_api::workloadspread::CRD),
            POD,
            own(&kruise_api::cloneset::CRD),
            own(&kruise_api::statefulset::CRD),
            workload::DEPLOYMENT,
            workload::REPLICA_SET,
            workload::STATEFUL_SET,
            JOB,
            NODE,
        ],
        webhooks: &[validating(
            "WorkloadSpread",
            "vworkloadspread.kb.io",
            "/validate-apps-kruise-io-workloadspread",
        )
        .also(&["/validate-apps-kruise-io-v1alpha1-workloadspread"])
        .on(&[rule(APPS, BOTH, "workloadspreads", CREATE_UPDATE)])],
        permissions: &[
            may(Role::Manager, APPS, &["workloadspreads"], READ),
            may(Role::Manager, APPS, &["workloadspreads/status"], &["patch"]),
            may(Role::Manager, "", &["pods"], READ),
            // Marks and deletion costs; pods that find no node move.
            may(Role::Manager, "", &["pods"], &["delete", "patch"]),
            // Where pods are that are older than their spread.
            may(Role::Manager, "", &["nodes"], READ),
            may(Role::Manager, APPS, &["clonesets", "statefulsets"], READ),
            may(Role::Manager, "apps", &["deployments", "replicasets", "statefulsets"], READ),
            // Of other kinds whoever installs them grants `get`, or `get` on their scale.
            may(Role::Manager, "batch", &["jobs"], READ),
        ],
        built: true,
        ..feature("WorkloadSpread")
    },
    Feature {
        when: When::Any(&[Gate::PodUnavailableBudgetDeleteGate, Gate::PodUnavailableBudgetUpdateGate]),
        controllers: &[controller(
            "podunavailablebudget-controller",
            "podunavailablebudget-workers",
            3,
            true,
        )
        .of("PodUnavailableBudget")],
        // Workloads are only watched once a budget counts pods of their kind.
        watches: &[
            own(&kruise_api::podunavailablebudget::CRD),
            POD,
            own(&kruise_api::cloneset::CRD),
            own(&kruise_api::statefulset::CRD),
            own(&kruise_api::uniteddeployment::CRD),
            workload::DEPLOYMENT,
            workload::REPLICA_SET,
            workload::STATEFUL_SET,
        ],
        webhooks: &[validating(
            "PodUnavailableBudget",
            "vpodunavailablebudget.kb.io",
            "/validate-policy-kruise-io-podunavailablebudget",
        )
        .on(&[rule(names::POLICY_GROUP, BOTH, "podunavailablebudgets", CREATE_UPDATE)])],
        permissions: &[
            may(Role::Manager, names::POLICY_GROUP, &["podunavailablebudgets"], READ),
            may(Role::Manager, names::POLICY_GROUP, &["podunavailablebudgets/status"], &["patch"]),
            may(Role::Manager, "", &["pods"], READ),
            // Which budget protects a pod is noted on it.
            may(Role::Manager, "", &["pods"], &["patch"]),
            may(Role::Manager, APPS, &["clonesets", "statefulsets", "uniteddeployments"], READ),
            may(Role::Manager, "apps", &["deployments", "replicasets", "statefulsets"], READ),
            // Of other kinds whoever installs them grants `get` on their scale.
            may(Role::Manager, "", &["replicationcontrollers/scale"], &["get"]),
        ],
        built: true,
        ..feature("PodUnavailableBudget")
    },
    Feature {
        when: When::All(&[Gate::KruiseDaemon]),
        controllers: &[controller("containerrecreaterequest-controller", "crr-workers", 3, false)
            .of("ContainerRecreateRequest")],
        watches: &[own(&kruise_api::containerrecreaterequest::CRD), POD],
        webhooks: &[mutating(
            "ContainerRecreateRequest",
            "mcontainerrecreaterequest.kb.io",
            "/mutate-apps-kruise-io-containerrecreaterequest",
        )
        .also(&["/mutate-apps-kruise-io-v1alpha1-containerrecreaterequest"])
        .on(&[rule(APPS, BOTH, "containerrecreaterequests", CREATE_UPDATE)])],
        permissions: &[
            may(Role::Manager, APPS, &["containerrecreaterequests"], READ),
            may(Role::Manager, APPS, &["containerrecreaterequests"], &["delete", "patch"]),
            may(Role::Manager, APPS, &["containerrecreaterequests/status"], &["patch"]),
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "", &["pods/status"], &["patch"]),
            // Which kind of node the pod of a new request is on.
            may(Role::Manager, "", &["nodes"], &["get"]),
            may(Role::Daemon, APPS, &["containerrecreaterequests"], READ),
            may(Role::Daemon, APPS, &["containerrecreaterequests/status"], CHANGE),
        ],
        built: true,
        ..feature("ContainerRecreateRequest")
    },
    Feature {
        when: When::All(&[Gate::KruiseDaemon, Gate::ImagePullJobGate]),
        controllers: &[
            controller("imagepulljob-controller", "imagepulljob-workers", 3, false).of("ImagePullJob"),
            controller("imagelistpulljob-controller", "imagelistpulljob-workers", 3, false)
                .of("ImageListPullJob"),
        ],
        watches: &[
            own(&kruise_api::imagepulljob::CRD),
            own(&kruise_api::imagelistpulljob::CRD),
            own(&kruise_api::nodeimage::CRD),
            NODE,
            POD,
            SECRET,
        ],
        webhooks: &[
            mutating("ImagePullJob", "mimagepulljob-v1beta1.kb.io", "/mutate-apps-kruise-io-imagepulljob")
                .also(&["/mutate-apps-kruise-io-v1alpha1-imagepulljob"])
                .on(&[rule(APPS, BOTH, "imagepulljobs", CREATE_UPDATE)]),
            validating(
                "ImagePullJob",
                "vimagepulljob-v1beta1.kb.io",
                "/validate-apps-kruise-io-imagepulljob",
            )
            .also(&["/validate-apps-kruise-io-v1alpha1-imagepulljob"])
            .on(&[rule(APPS, BOTH, "imagepulljobs", CREATE_UPDATE)]),
            mutating(
                "ImageListPullJob",
                "mimagelistpulljob-v1beta1.kb.io",
                "/mutate-apps-kruise-io-imagelistpulljob",
            )
            .also(&["/mutate-apps-kruise-io-v1alpha1-imagelistpulljob"])
            .on(&[rule(APPS, BOTH, "imagelistpulljobs", CREATE_UPDATE)]),
            validating(
                "ImageListPullJob",
                "vimagelistpulljob-v1beta1.kb.io",
                "/validate-apps-kruise-io-imagelistpulljob",
            )
            .also(&["/validate-apps-kruise-io-v1alpha1-imagelistpulljob"])
            .on(&[rule(APPS, BOTH, "imagelistpulljobs", CREATE_UPDATE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["imagepulljobs", "imagelistpulljobs", "nodeimages"], READ),
            may(Role::Manager, APPS, &["imagepulljobs"], &["create", "delete", "patch"]),
            may(Role::Manager, APPS, &["imagelistpulljobs"], &["delete", "patch"]),
            may(Role::Manager, APPS, &["imagepulljobs/status", "imagelistpulljobs/status"], &["patch"]),
            may(Role::Manager, APPS, &["imagelistpulljobs/finalizers"], &["update"]),
            may(Role::Manager, APPS, &["nodeimages"], &["patch"]),
            may(Role::Manager, "", &["nodes", "pods"], READ),
            // Only watched once a job names a secret. Copies of them are written in one namespace only.
            may(Role::Manager, "", &["secrets"], READ),
            may(Role::PullSecrets, "", &["secrets"], &["create", "delete", "patch"]),
        ],
        built: true,
        ..feature("ImagePullJob, ImageListPullJob")
    },
    Feature {
        when: When::All(&[Gate::KruiseDaemon]),
        controllers: &[controller("nodeimage-controller", "nodeimage-workers", 3, false).of("NodeImage")],
        watches: &[own(&kruise_api::nodeimage::CRD), NODE],
        webhooks: &[
            mutating("NodeImage", "mnodeimage.kb.io", "/mutate-apps-kruise-io-nodeimage")
                .also(&["/mutate-apps-kruise-io-v1alpha1-nodeimage"])
                .on(&[rule(APPS, BOTH, "nodeimages", CREATE_UPDATE)]),
            validating("NodeImage", "vnodeimage.kb.io", "/validate-apps-kruise-io-nodeimage")
                .also(&["/validate-apps-kruise-io-v1alpha1-nodeimage"])
                .on(&[rule(APPS, BOTH, "nodeimages", CREATE_UPDATE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["nodeimages"], READ),
            may(Role::Manager, APPS, &["nodeimages"], &["create", "delete", "patch"]),
            may(Role::Manager, APPS, &["nodeimages/status"], &["patch"]),
            // Whether the jobs that want a tag are still there.
            may(Role::Manager, APPS, &["imagepulljobs"], &["get"]),
            may(Role::Manager, "", &["nodes"], READ),
            may(Role::Daemon, APPS, &["nodeimages"], READ),
            may(Role::Daemon, APPS, &["nodeimages/status"], CHANGE),
            may(Role::Daemon, "", &["events"], &["create", "patch"]),
            // Tags that people write by hand may name secrets too.
            may(Role::DaemonSecret, "", &["secrets"], READ),
        ],
        built: true,
        ..feature("NodeImage")
    },
    Feature {
        when: When::All(&[Gate::DaemonWatchingPod]),
        permissions: &[
            may(Role::Daemon, "", &["pods"], READ),
            // The annotation is written through the status: the daemon changes no pod.
            may(Role::Daemon, "", &["pods/status"], CHANGE),
        ],
        built: true,
        ..feature("Container hashes from nodes")
    },
    Feature {
        when: When::All(&[Gate::KruiseDaemon, Gate::PodProbeMarkerGate]),
        controllers: &[
            controller("PodProbeMarker-controller", "podprobemarker-workers", 3, true).of("PodProbeMarker"),
            controller("NodePodProbe-controller", "nodepodprobe-workers", 3, true).of("NodePodProbe"),
        ],
        watches: &[own(&kruise_api::podprobemarker::CRD), own(&kruise_api::nodepodprobe::CRD), POD, NODE],
        webhooks: &[
            validating("PodProbeMarker", "vpodprobemarker.kb.io", "/validate-apps-kruise-io-podprobemarker")
                .on(&[rule(APPS, ALPHA, "podprobemarkers", CREATE_UPDATE)]),
            // The original has none: whoever may write these could have nodes ask any address.
            validating("NodePodProbe", "vnodepodprobe.kb.io", "/validate-apps-kruise-io-nodepodprobe")
                .on(&[rule(APPS, ALPHA, "nodepodprobes", CREATE_UPDATE)]),
        ],
        permissions: &[
            may(Role::Manager, APPS, &["podprobemarkers", "nodepodprobes"], READ),
            may(Role::Manager, APPS, &["podprobemarkers"], &["patch"]),
            may(Role::Manager, APPS, &["podprobemarkers/status"], &["patch"]),
            may(Role::Manager, APPS, &["nodepodprobes"], &["create", "delete", "patch"]),
            may(Role::Manager, "", &["nodes", "pods"], READ),
            may(Role::Manager, "", &["pods/status"], &["patch"]),
            may(Role::Manager, "", &["pods"], &["patch"])
                .when(When::All(&[Gate::EnablePodProbeMarkerOnServerless])),
            may(Role::Daemon, APPS, &["nodepodprobes"], READ),
            may(Role::Daemon, APPS, &["nodepodprobes/status"], CHANGE),
        ],
        built: true,
        ..feature("PodProbeMarker, NodePodProbe")
    },
    Feature {
        when: When::All(&[
            Gate::EnhancedLivenessProbe,
            Gate::PodWebhook,
            Gate::KruiseDaemon,
            Gate::PodProbeMarkerGate,
        ]),
        controllers: &[Controller {
            name: "enhanced-liveness-controller",
            workers_flag: None,
            workers: 1,
            tunable_queue: true,
            needs_kind: Some("NodePodProbe"),
        }],
        watches: &[own(&kruise_api::nodepodprobe::CRD), own(&kruise_api::containerrecreaterequest::CRD), POD],
        permissions: &[
            may(Role::Manager, APPS, &["nodepodprobes"], READ),
            may(Role::Manager, APPS, &["containerrecreaterequests"], READ),
            may(Role::Manager, APPS, &["containerrecreaterequests"], &["create"]),
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "policy", &["poddisruptionbudgets"], &["list"]),
            may(Role::Manager, names::POLICY_GROUP, &["podunavailablebudgets"], &["list"]),
        ],
        built: true,
        ..feature("Enhanced liveness probe")
    },
    Feature {
        controllers: &[controller("persistentpodstate-controller", "persistentpodstate-workers", 3, true)
            .of("PersistentPodState")],
        watches: &[
            own(&kruise_api::persistentpodstate::CRD),
            POD,
            NODE,
            own(&kruise_api::statefulset::CRD),
            workload::STATEFUL_SET,
        ],
        webhooks: &[validating(
            "PersistentPodState",
            "vpersistentpodstate.kb.io",
            "/validate-apps-kruise-io-persistentpodstate",
        )
        .on(&[rule(APPS, BOTH, "persistentpodstates", CREATE_UPDATE)])],
        permissions: &[
            may(Role::Manager, APPS, &["persistentpodstates"], READ),
            may(Role::Manager, APPS, &["persistentpodstates"], &["create", "delete", "patch"]),
            may(Role::Manager, APPS, &["persistentpodstates/status"], &["patch"]),
            // Of kinds of the white list whoever installs them grants `get`, `list` and `watch`.
            may(Role::Manager, APPS, &["statefulsets"], READ),
            may(Role::Manager, "apps", &["statefulsets"], READ),
            may(Role::Manager, "", &["nodes", "pods"], READ),
        ],
        built: true,
        ..feature("PersistentPodState")
    },
    Feature {
        when: When::All(&[Gate::ResourceDistributionGate]),
        controllers: &[controller(
            "resourcedistribution-controller",
            "resourcedistribution-workers",
            3,
            true,
        )
        .of("ResourceDistribution")],
        // Secrets and ConfigMaps are followed by their names, once they are distributed.
        watches: &[own(&kruise_api::resourcedistribution::CRD)],
        webhooks: &[validating(
            "ResourceDistribution",
            "vresourcedistribution.kb.io",
            "/validate-apps-kruise-io-resourcedistribution",
        )
        .also(&["/validate-apps-kruise-io-v1alpha1-resourcedistribution"])
        .on(&[rule(APPS, BOTH, "resourcedistributions", CREATE_UPDATE)])],
        permissions: &[
            may(Role::Manager, APPS, &["resourcedistributions"], READ),
            may(Role::Manager, APPS, &["resourcedistributions/status"], &["patch"]),
            may(Role::Manager, APPS, &["resourcedistributions/finalizers"], &["update"]),
            // Only watched once there is a ResourceDistribution.
            may(Role::Manager, "", &["namespaces"], READ),
            may(Role::Distribution, "", &["configmaps", "secrets"], READ),
            may(Role::Distribution, "", &["configmaps", "secrets"], &["create", "delete", "patch"]),
        ],
        built: true,
        ..feature("ResourceDistribution")
    },
    Feature {
        controllers: &[
            controller("ephemeraljob-controller", "ephemeraljob-workers", 10, false).of("EphemeralJob")
        ],
        watches: &[own(&kruise_api::ephemeraljob::CRD), POD],
        webhooks: &[validating(
            "EphemeralJob",
            "vephemeraljobs.kb.io",
            "/validate-apps-kruise-io-v1alpha1-ephemeraljob",
        )
        .on(&[rule(APPS, ALPHA, "ephemeraljobs", CREATE_UPDATE)])],
        permissions: &[
            may(Role::Manager, APPS, &["ephemeraljobs"], READ),
            may(Role::Manager, APPS, &["ephemeraljobs"], &["delete", "patch"]),
            may(Role::Manager, APPS, &["ephemeraljobs/status"], &["patch"]),
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "", &["pods/ephemeralcontainers"], &["patch"]),
        ],
        built: true,
        ..feature("EphemeralJob")
    },
    Feature {
        when: When::All(&[Gate::SidecarTerminator]),
        controllers: &[controller("sidecarterminator-controller", "sidecarterminator-workers", 3, true)],
        watches: &[POD],
        permissions: &[
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "", &["pods", "pods/status"], &["patch"]),
            may(Role::Manager, "", &["nodes"], READ),
            may(Role::Manager, APPS, &["containerrecreaterequests"], &["create", "delete", "get"]),
        ],
        built: true,
        ..feature("Sidecar terminator")
    },
    Feature {
        controllers: &[controller(
            "container-launch-priority-controller",
            "containerlaunchpriority-workers",
            4,
            false,
        )],
        watches: &[POD],
        permissions: &[
            may(Role::Manager, "", &["pods"], READ),
            may(Role::Manager, "", &["pods"], &["patch"]),
            may(Role::Manager, "", &["configmaps"], &["create", "delete", "get", "patch"]),
        ],
        built: true,
        ..feature("Container launch priority")
    },
    Feature {
        when: When::All(&[Gate::ResourcesDeletionProtection]),
        webhooks: &[
            protecting("Namespace", Subject::Namespace, "vnamespace.kb.io", "/validate-namespace")
                .on(&[rule("", &["v1"], "namespaces", CREATE_UPDATE_DELETE)]),
            protecting(
                "CustomResourceDefinition",
                Subject::Definition,
                "vcustomresourcedefinition.kb.io",
                "/validate-customresourcedefinition",
            )
            .on(&[rule(
                "apiextensions.k8s.io",
                &["v1", "v1beta1"],
                "customresourcedefinitions",
                CREATE_UPDATE_DELETE,
            )]),
            protecting(
                "Deployment",
                Subject::Workload,
                "vbuiltindeployment.kb.io",
                "/validate-apps-deployment",
            )
            .on(&[rule("apps", &["v1"], "deployments", CREATE_UPDATE_DELETE)]),
            protecting(
                "ReplicaSet",
                Subject::Workload,
                "vbuiltinreplicaset.kb.io",
                "/validate-apps-replicaset",
            )
            .on(&[rule("apps", &["v1"], "replicasets", CREATE_UPDATE_DELETE)]),
            protecting(
                "StatefulSet",
                Subject::Workload,
                "vbuiltinstatefulset.kb.io",
                "/validate-apps-statefulset",
            )
            .on(&[rule("apps", &["v1"], "statefulsets", CREATE_UPDATE_DELETE)]),
            // Only these two go with their gate: the others were registered without it from the beginning.
            Webhook {
                when: When::All(&[Gate::ResourcesDeletionProtection]),
                ..protecting("Service", Subject::Plain, "vservice.kb.io", "/validate-service")
            }
            .on(&[rule("", &["v1"], "services", CREATE_UPDATE_DELETE)]),
            Webhook {
                when: When::All(&[Gate::ResourcesDeletionProtection]),
                ..protecting("Ingress", Subject::Plain, "vingress.kb.io", "/validate-ingress")
            }
            .on(&[rule(
                "networking.k8s.io",
                &["v1", "v1beta1"],
                "ingresses",
                CREATE_UPDATE_DELETE,
            )]),
        ],
        built: true,
        permissions: &[
            may(Role::Manager, "", &["pods", "persistentvolumeclaims"], READ),
            // Any kind may have objects that keep its definition from going.
            may(Role::Manager, "*", &["*"], &["list"])
                .when(When::All(&[Gate::DeletionProtectionForCRDCascadingGate])),
        ],
        ..feature("Deletion protection")
    },
];

/// A feature that always runs and whose controllers are still to be written.
const fn feature(name: &'static str) -> Feature {
    Feature {
        name,
        when: When::Always,
        built: false,
        controllers: &[],
        watches: &[],
        webhooks: &[],
        permissions: &[],
    }
}

const fn controller(
    name: &'static str,
    flag: &'static str,
    workers: usize,
    tunable_queue: bool,
) -> Controller {
    Controller { name, workers_flag: Some(flag), workers, tunable_queue, needs_kind: None }
}

impl Controller {
    const fn of(self, kind: &'static str) -> Self {
        Self { needs_kind: Some(kind), ..self }
    }
}

/// One of our kinds in the version that is stored.
const fn own(crd: &'static Crd) -> Resource {
    let version = match crd.versions {
        [.., stored] => stored.name,
        [] => "",
    };
    match crd.scope {
        Scope::Namespaced => Resource::namespaced(crd.group, version, crd.kind, crd.plural),
        Scope::Cluster => Resource::cluster(crd.group, version, crd.kind, crd.plural),
    }
}

const fn mutating(kind: &'static str, name: &'static str, path: &'static str) -> Webhook {
    webhook(name, Side::Mutating, path, Handler::Mutate(kind))
}

const fn validating(kind: &'static str, name: &'static str, path: &'static str) -> Webhook {
    webhook(name, Side::Validating, path, Handler::Validate(kind))
}

const fn protecting(kind: &'static str, subject: Subject, name: &'static str, path: &'static str) -> Webhook {
    Webhook {
        policy: Policy::Ignore,
        reach: Reach::Protected,
        ..webhook(name, Side::Validating, path, Handler::Protect(kind, subject))
    }
}

const fn pod_webhook(name: &'static str, side: Side, path: &'static str, handler: Handler) -> Webhook {
    Webhook {
        when: When::All(&[Gate::PodWebhook]),
        reach: Reach::OtherNamespaces,
        // Spreads and budgets count while they admit.
        side_effects: SideEffects::NoneOnDryRun,
        ..webhook(name, side, path, handler)
    }
}

const fn webhook(name: &'static str, side: Side, path: &'static str, handler: Handler) -> Webhook {
    Webhook {
        name,
        side,
        path,
        aliases: &[],
        handler,
        when: When::Always,
        rules: &[],
        policy: Policy::Fail,
        reach: Reach::Everything,
        side_effects: SideEffects::None,
    }
}

impl Webhook {
    const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn on(self, rules: &'static [HookRule]) -> Self {
        Self { rules, ..self }
    }
}

const fn rule(
    group: &'static str,
    versions: &'static [&'static str],
    resource: &'static str,
    operations: &'static [Operation],
) -> HookRule {
    HookRule { group, versions, resource, operations }
}

const fn may(
    role: Role,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Permission {
    Permission { role, group, resources, verbs, names: Names::Any, when: When::Always }
}

impl Permission {
    const fn to(self, names: &'static [&'static str]) -> Self {
        Self { names: Names::These(names), ..self }
    }

    const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }
}
