use futures::FutureExt as _;
use kruise_sim::{
    Sim,
    faults::{Answer, Calls, Effect, Rule, When},
};
use serde_json::json;

use super::*;
use crate::{
    metrics::Registry,
    scope::{BoxError, Scope},
};

fn settings(identity: &str) -> Settings {
    Settings {
        namespace: "default".to_owned(),
        name: "kruise-manager".to_owned(),
        identity: identity.to_owned(),
        lease: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    }
}

fn candidate(sim: &Sim, client: Client, identity: &str, seed: u64) -> Candidate {
    let clock = *sim.clock();
    let metrics = Framework::new(&Registry::default());
    Candidate::new(
        client,
        settings(identity),
        Clock::from_fn(move || clock.now()),
        Random::seeded(seed),
        metrics,
    )
}

async fn lease(sim: &Sim) -> serde_json::Value {
    let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    let resource = ApiResource::from_gvk_with_plural(&kind, "leases");
    let api: Api<DynamicObject> = Api::namespaced_with(sim.client(), "default", &resource);
    api.get("kruise-manager").await.unwrap().data["spec"].clone()
}

/// A process that leads until it is told to stop, killed or cut off, and notes when it may write.
struct Process {
    scope: Scope,
    fence: Fence,
}

fn process(sim: &Sim, client: Client, identity: &str, seed: u64) -> Process {
    let mut scope = Scope::default();
    let stop = scope.stop();
    let candidate = candidate(sim, client, identity, seed);
    let fence = candidate.fence();
    scope.spawn("lease", async move {
        if let Some(leader) = candidate.acquire(&stop).await {
            leader.hold(&stop).await?;
        }
        Ok::<(), BoxError>(())
    });
    Process { scope, fence }
}

/// Lets time pass in small steps, and looks at every one of them that at most one may write.
async fn pass(sim: &Sim, time: Duration, processes: &[&Process]) -> Duration {
    let mut nobody = Duration::ZERO;
    let step = Duration::from_millis(100);
    let end = Instant::now() + time;
    while Instant::now() < end {
        sim.advance(step).await;
        let open = processes.iter().filter(|process| process.fence.is_open()).count();
        assert!(open <= 1, "two may write at the same time");
        if open == 0 {
            nobody += step;
        }
    }
    nobody
}

#[tokio::test(start_paused = true)]
async fn the_lease_reads_as_client_go_writes_it() {
    let sim = Sim::builder().seed(1).nodes(0).start();
    let first = process(&sim, sim.client(), "a_1", 1);
    sim.advance(Duration::from_secs(5)).await;
    let spec = lease(&sim).await;
    assert_eq!(spec["holderIdentity"], "a_1");
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    assert_ne!(spec["acquireTime"], spec["renewTime"]);
    assert!(first.fence.is_open());
    first.scope.shutdown(Duration::from_secs(5)).await.unwrap();
    let spec = lease(&sim).await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!(""), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_hands_over_within_a_second_twenty_times() {
    let sim = Sim::builder().seed(2).nodes(0).start();
    let mut leader = process(&sim, sim.client(), "p0", 0);
    sim.advance(Duration::from_secs(3)).await;
    for round in 1..=20_u64 {
        let standby = process(&sim, sim.client(), &format!("p{round}"), round);
        let nobody = pass(&sim, Duration::from_secs(7), &[&leader, &standby]).await;
        assert_eq!(nobody, Duration::ZERO, "the old one leads undisturbed");
        leader.scope.shutdown(Duration::from_secs(5)).await.unwrap();
        sim.advance(Duration::from_millis(900)).await;
        assert!(standby.fence.is_open(), "round {round}: the next one leads within a second");
        leader = standby;
    }
    assert_eq!(lease(&sim).await["leaseTransitions"], 20);
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_replaced_when_its_lease_ran_out_twenty_times() {
    let sim = Sim::builder().seed(3).nodes(0).start();
    let mut leader = process(&sim, sim.client(), "p0", 0);
    sim.advance(Duration::from_secs(3)).await;
    for round in 1..=20_u64 {
        let standby = process(&sim, sim.client(), &format!("p{round}"), round);
        pass(&sim, Duration::from_secs(7), &[&leader, &standby]).await;
        drop(leader.scope);
        let nobody = pass(&sim, Duration::from_secs(20), &[&standby]).await;
        assert!(
            nobody > Duration::from_secs(10),
            "round {round}: nobody leads before the lease ran out: {nobody:?}"
        );
        assert!(standby.fence.is_open(), "round {round}: the next one leads within 20 s");
        leader = standby;
    }
}

/// The leader is cut off from the server: it must stop before the other one begins.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_gives_up_before_another_leads() {
    let sim = Sim::builder().seed(4).nodes(0).start();
    let mut leader = process(&sim, sim.faulty_client(), "cut-off", 0);
    sim.advance(Duration::from_secs(3)).await;
    assert!(leader.fence.is_open());
    let standby = process(&sim, sim.client(), "standby", 1);
    sim.advance(Duration::from_secs(4)).await;
    sim.faults().rule(Rule {
        calls: Calls::default(),
        when: When::Chance(1.0),
        effect: Effect::Before,
        answer: Answer::Timeout(Duration::from_secs(60)),
    });
    pass(&sim, Duration::from_secs(11), &[&leader, &standby]).await;
    assert!(!leader.fence.is_open(), "the deadline has passed");
    let end =
        leader.scope.next_end().now_or_never().expect("it gave up at its deadline, whatever still hangs");
    let end = end.unwrap().unwrap_err();
    pass(&sim, Duration::from_secs(9), &[&leader, &standby]).await;
    assert!(standby.fence.is_open());
    assert!(std::error::Error::source(&end).unwrap().to_string().contains("could not be renewed within 10s"));
}
