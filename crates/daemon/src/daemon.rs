//! The whole daemon of a node: what it follows, its controllers, and its end.

use std::{sync::Arc, time::Duration};

use kruise_api::gates::Gate;
use kruise_runtime::{
    cache::{Cache, Options, View},
    controller::Controller,
    scope::{BoxError, Scope, Stop},
};

use crate::{
    controllers::{container_meta, image_puller, probes, recreation},
    endpoints::Check,
    node::Node,
};

/// How long reconciles get to end when the daemon ends.
const GRACE: Duration = Duration::from_secs(5);

/// Starts everything on a node. It runs until the scope is shut down.
pub fn start(node: &Node, scope: &mut Scope) {
    let caches = &node.caches;
    follow(node, scope, "nodeimages", &caches.node_images, node.own_objects());
    follow(node, scope, "containerrecreaterequests", &caches.requests, node.own_requests());
    let (puller, pulls) = image_puller::controller(node);
    let mut controllers = vec![puller, recreation::controller(node)];
    at_the_end(scope, "pulls", move || pulls.stop());
    if node.has(Gate::PodProbeMarkerGate) {
        follow(node, scope, "nodepodprobes", &caches.probes, node.own_objects());
        let (probing, probers) = probes::controllers(node);
        controllers.extend(probing);
        at_the_end(scope, "probes", move || probers.stop());
    }
    if node.has(Gate::DaemonWatchingPod) {
        follow(node, scope, "pods", &caches.pods, node.own_pods());
        controllers.extend(container_meta::controllers(node));
    }
    for controller in controllers {
        run(scope, controller);
    }
    let (events, client) = (node.events.clone(), node.dressed("events"));
    until_stopped(scope, "events", async move { events.run(client).await });
}

/// What must hold for the daemon to be healthy. Once it does, an API server that is away changes nothing.
pub fn checks(node: &Node) -> Vec<Check> {
    let (images, requests) = (node.caches.node_images.clone(), node.caches.requests.clone());
    let mut checks: Vec<Check> = vec![
        ("nodeImageInformerSynced", Arc::new(move || images.is_synced())),
        ("crrInformerSynced", Arc::new(move || requests.is_synced())),
    ];
    if node.has(Gate::PodProbeMarkerGate) {
        let probes = node.caches.probes.clone();
        checks.push(("nodePodProbeInformerSynced", Arc::new(move || probes.is_synced())));
    }
    checks
}

fn follow<V: View>(node: &Node, scope: &mut Scope, name: &'static str, cache: &Cache<V>, options: Options) {
    let (cache, client) = (cache.clone(), node.dressed(name));
    until_stopped(scope, name, async move { cache.run(client, options).await });
}

fn run(scope: &mut Scope, controller: Controller) {
    let stop = scope.stop();
    scope.spawn(controller.name(), async move {
        controller.run(stop, GRACE).await;
        Ok::<(), BoxError>(())
    });
}

fn at_the_end(scope: &mut Scope, name: &'static str, end: impl FnOnce() + Send + 'static) {
    let stop = scope.stop();
    scope.spawn(name, async move {
        stop.asked().await;
        end();
        Ok::<(), BoxError>(())
    });
}

fn until_stopped(scope: &mut Scope, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
    let stop: Stop = scope.stop();
    scope.spawn(name, async move {
        tokio::select! {
            () = work => {}
            () = stop.asked() => {}
        }
        Ok::<(), BoxError>(())
    });
}
