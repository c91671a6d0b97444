//! Many jobs on many nodes.

use std::time::Duration;

use kruise_manager::controllers::{imagepulljob, nodeimage};
use kruise_runtime::random::Random;
use kruise_sim::Sim;
use serde_json::json;

use crate::{
    process::Process,
    world::{Nodes, install, job},
};

/// The bar is five passes in a second for 198 jobs on 989 nodes. Here are fewer nodes, but no fewer jobs, and every node is
/// done with something all the time.
#[tokio::test(start_paused = true)]
async fn many_jobs_stay_below_five_passes_in_a_second() {
    let sim = Sim::builder().seed(3).nodes(30).without_events().start();
    install(&sim).await;
    let process = Process::start(&sim, &Random::seeded(3), None);
    sim.advance(Duration::from_secs(60)).await;
    let mut nodes = Nodes::new(5);
    for number in 0..198 {
        job(
            &sim,
            &format!("job-{number:03}"),
            json!({"image": format!("x.io/app:v{number}"), "parallelism": 1}),
        )
        .await;
    }
    nodes.live(&sim, 90).await;
    let (before, pulls) = (process.passes(), nodes.pulls.len());
    nodes.live(&sim, 180).await;
    let per_second = (process.passes() - before) / 180.0;
    let done = nodes.pulls.len() - pulls;
    let shares = [nodeimage::NAME, imagepulljob::NAME].map(|name| process.passes_of(name));
    assert!(per_second < 5.0, "{per_second} passes in a second, {shares:?} so far");
    assert!(done > 400, "only {done} pulls in three minutes: jobs wait for too long");
}
