//! Faults of what surrounds the controller: the webhook that its writes must pass is down, nodes stop, clocks differ.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::SignedDuration;
use kruise_runtime::clock::Clock;
use kruise_sim::{Sim, faults::Webhook};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

/// What goes wrong around the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// Now and then the webhook for pods, claims and revisions refuses connections, never answers or is too slow.
    WebhookDown,
    /// Nodes stop, some for longer than their pods may stay, and return.
    NodesStop,
    /// The clock of the controller is off by up to hours, those of nodes by seconds, and they are set now and then.
    ClocksDiffer,
}

pub(crate) const HOST: &str = "hook.default.svc";
const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];

/// How wrong a story's surroundings are at the moment.
#[derive(Default)]
pub(crate) struct Trouble {
    around: Option<Around>,
    stopped: Vec<&'static str>,
    /// How far the clock of the controller is off.
    skew: Arc<Mutex<SignedDuration>>,
}

impl Trouble {
    pub(crate) async fn begin(sim: &Sim, around: Option<Around>) -> Self {
        if around == Some(Around::WebhookDown) {
            install(sim).await;
        }
        Self { around, ..Self::default() }
    }

    /// The clock of the controller.
    pub(crate) fn clock(&self, sim: &Sim) -> Clock {
        let (right, skew) = (*sim.clock(), self.skew.clone());
        Clock::from_fn(move || right.now() + *skew.lock().unwrap())
    }

    pub(crate) fn stopped(&self) -> &[&'static str] {
        &self.stopped
    }

    /// Half a second passes: by chance something breaks or returns.
    pub(crate) fn turn(&mut self, sim: &mut Sim) {
        match self.around {
            Some(Around::WebhookDown) if sim.pick(0..20) == 0 => {
                let well = Webhook::Slow(Duration::ZERO);
                let ways =
                    [well, well, Webhook::Slow(Duration::from_secs(8)), Webhook::Silent, Webhook::Refused];
                let way = *sim.pick_one(&ways).unwrap();
                sim.faults().webhook(HOST, way);
            }
            Some(Around::NodesStop) if sim.pick(0..60) == 0 => {
                let node = *sim.pick_one(&NODES).unwrap();
                if let Some(place) = self.stopped.iter().position(|stopped| *stopped == node) {
                    self.stopped.remove(place);
                    sim.return_node(node);
                } else if self.stopped.len() < 2 {
                    self.stopped.push(node);
                    sim.stop_node(node);
                }
            }
            Some(Around::ClocksDiffer) if sim.pick(0..40) == 0 => {
                let seconds = |sim: &mut Sim, most: u64| {
                    SignedDuration::from_secs(i64::try_from(sim.pick(0..2 * most)).unwrap())
                        - SignedDuration::from_secs(i64::try_from(most).unwrap())
                };
                let most = *sim.pick_one(&[2, 60, 7200]).unwrap();
                *self.skew.lock().unwrap() = seconds(sim, most);
                let node = *sim.pick_one(&NODES).unwrap();
                let by = seconds(sim, 15);
                sim.skew_node(node, by);
            }
            _ => {}
        }
    }

    /// Everything is well again.
    pub(crate) fn end(&mut self, sim: &Sim) {
        for node in self.stopped.drain(..) {
            sim.return_node(node);
        }
        if self.around == Some(Around::ClocksDiffer) {
            *self.skew.lock().unwrap() = SignedDuration::ZERO;
            NODES.iter().for_each(|node| sim.skew_node(node, SignedDuration::ZERO));
        }
    }
}

/// A webhook that allows everything, behind its faults.
pub(crate) async fn install(sim: &Sim) {
    install_policy(sim, |_| None).await;
}

/// A webhook that refuses some requests with a message, behind its faults.
pub(crate) async fn install_policy(
    sim: &Sim,
    refuses: impl Fn(&Value) -> Option<String> + Clone + Send + Sync + 'static,
) {
    let hook = tower::service_fn(move |request| answer(request, refuses.clone()));
    let hook = sim.faults().around_webhook(HOST, hook);
    sim.server().register_webhook_host(HOST, hook);
    let configuration = json!({
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 5,
            "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/"}},
            "rules": [
                {"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
                 "resources": ["pods", "persistentvolumeclaims", "controllerrevisions"]},
            ],
        }],
    });
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
    let all: Api<DynamicObject> = Api::all_with(sim.client(), &ApiResource::from_gvk(&kind));
    all.create(&PostParams::default(), &serde_json::from_value(configuration).unwrap()).await.unwrap();
    sim.advance(Duration::from_secs(1)).await;
}

async fn answer(
    request: Request<Full<Bytes>>,
    refuses: impl Fn(&Value) -> Option<String>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let refusal = refuses(&review["request"]);
    let mut response = json!({"uid": review["request"]["uid"], "allowed": refusal.is_none()});
    if let Some(message) = refusal {
        response["status"] = json!({"code": 403, "message": message});
    }
    let answer = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response,
    });
    Ok(Response::new(Full::new(answer.to_string().into())))
}
