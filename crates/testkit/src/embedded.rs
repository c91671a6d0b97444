//! The embedded cluster as a place for scenarios: same nodes by label, virtual time.

use kruise_sim::{Node, Sim};
use kube::Client;
use tower::Layer as _;

use crate::{
    Backend, Cluster,
    cluster::{HOLLOW_NODES, REAL_NODES, chain, registry},
    scenario::fail,
    writes::Writes,
};

/// A cluster in this process, with one node that counts as real and three hollow ones over three zones. It lives as
/// long as the returned [`Sim`].
pub async fn start(seed: u64) -> (Sim, Cluster) {
    let sim = Sim::builder().seed(seed).with_nodes(nodes()).start();
    // As the images of the real test cluster do.
    sim.serve_images(&registry());
    let writes = Writes::default();
    let client = Client::new(writes.layer(sim.server().clone()), "default");
    match Cluster::new(client, Backend::Embedded, writes).await {
        Ok(cluster) => (sim, cluster),
        Err(error) => fail(&format!("the embedded cluster does not answer: {}", chain(&error))),
    }
}

/// Named, labelled and zoned as the nodes of the local real cluster.
fn nodes() -> Vec<Node> {
    let node = |name: &str, zone: &str, (key, value): (&str, &str)| {
        let mut node = Node::named(name);
        node.zone = zone.to_owned();
        node.labels.insert(key.to_owned(), value.to_owned());
        node
    };
    vec![
        node("real-0", "zone-a", REAL_NODES),
        node("hollow-0", "zone-a", HOLLOW_NODES),
        node("hollow-1", "zone-b", HOLLOW_NODES),
        node("hollow-2", "zone-c", HOLLOW_NODES),
    ]
}
