use futures::FutureExt as _;
use kruise_core::{object::CONFIG_MAP, time};
use kruise_sim::{
    Sim,
    faults::{Answer, Calls, Effect, Rule, When},
};
use serde_json::json;

use super::*;
use crate::{
    effects::{self, Executor},
    events::Events,
    freshness::Freshness,
    metrics::Registry,
    queue,
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
    let api: Api<Stored> = Api::namespaced_with(sim.client(), "default", &());
    serde_json::to_value(api.get("kruise-manager").await.unwrap()).unwrap()["spec"].clone()
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

/// Flags may set the deadline almost as long as the lease.
#[tokio::test(start_paused = true)]
async fn a_part_of_the_lease_is_left_for_clocks_of_different_speed() {
    let sim = Sim::builder().seed(7).nodes(0).start();
    let mut candidate = candidate(&sim, sim.client(), "eager", 1);
    candidate.settings.renew_deadline = Duration::from_millis(14_900);
    let fence = candidate.fence();
    let began = Instant::now();
    let leader = candidate.acquire(&crate::scope::Stop::default()).await;
    assert!(leader.is_some() && fence.is_open());
    fence.closed().await;
    assert_eq!(began.elapsed().as_millis(), 13_500);
}

/// An executor that writes through this client while this fence is open.
fn executor(sim: &Sim, client: Client, fence: Fence) -> Executor {
    let metrics = Framework::new(&Registry::default());
    let clock = *sim.clock();
    let clock = Clock::from_fn(move || clock.now());
    let queue = queue::Queue::new("test", queue::Options::default(), None);
    let freshness = Freshness::new("test", queue, Duration::from_secs(300), None);
    let events = Events::new(clock, Random::seeded(1), metrics.clone());
    let options = effects::Options::default();
    Executor::new("test", client, freshness, events.recorder("test"), fence, options, metrics)
}

fn write() -> [kruise_core::effect::Effect; 1] {
    let object = json!({"metadata": {"name": "late"}});
    [kruise_core::effect::Effect::Create { resource: CONFIG_MAP, namespace: "default".into(), object }]
}

/// The server is cut off from its leader and holds what it gets for 40 s: longer than a lease.
#[tokio::test(start_paused = true)]
async fn a_write_that_the_server_holds_is_abandoned_before_another_leads() {
    let sim = Sim::builder().seed(5).nodes(0).start();
    let is_slow = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (server, slow) = (sim.server().clone(), is_slow.clone());
    let holding = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (server, slow) = (server.clone(), slow.load(std::sync::atomic::Ordering::SeqCst));
        async move {
            if slow {
                sleep(Duration::from_secs(40)).await;
            }
            tower::ServiceExt::oneshot(server, request).await
        }
    });
    let client = Client::new(holding, "default");
    let leader = process(&sim, client.clone(), "leader", 0);
    sim.advance(Duration::from_secs(5)).await;
    assert!(leader.fence.is_open());
    let standby = process(&sim, sim.client(), "standby", 1);
    sim.advance(Duration::from_secs(4)).await;
    is_slow.store(true, std::sync::atomic::Ordering::SeqCst);
    let executor = executor(&sim, client, leader.fence.clone());
    let key = kruise_core::object::ObjectKey::new("default", "owner");
    let effects = write();
    let ended = async {
        let outcome = executor.act(&key, &effects).await;
        (Instant::now(), outcome)
    };
    let led = async {
        while !standby.fence.is_open() {
            sleep(Duration::from_millis(10)).await;
        }
        Instant::now()
    };
    let ((ended, outcome), led) = futures::join!(ended, led);
    assert!(matches!(outcome.failed[0].why, effects::Why::Uncertain(_)), "{outcome:?}");
    assert!(!leader.fence.is_open());
    let between = led.duration_since(ended);
    assert!(between >= Duration::from_secs(4), "the next one led {between:?} after the write was given up");
    sim.advance(Duration::from_secs(120)).await;
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(sim.client(), "default");
    assert!(maps.get_opt("late").await.unwrap().is_none(), "what was given up was written later");
}

/// Over a real connection: what the server has not read yet never arrives.
#[tokio::test]
async fn the_connection_of_an_abandoned_write_is_closed() {
    use tokio::io::AsyncReadExt as _;
    let sim = Sim::builder().seed(6).nodes(0).start();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::try_from(kube::Config::new(address.parse().unwrap())).unwrap();
    let fence = Fence::default();
    let executor = executor(&sim, client, fence.clone());
    let key = kruise_core::object::ObjectKey::new("default", "owner");
    let effects = write();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 16 * 1024];
        assert!(stream.read(&mut heard).await.unwrap() > 0, "the request has arrived");
        fence.set(Until::Never);
        while stream.read(&mut heard).await.is_ok_and(|count| count > 0) {}
    };
    let (outcome, ()) = futures::join!(executor.act(&key, &effects), server);
    assert!(matches!(outcome.failed[0].why, effects::Why::Uncertain(_)), "{outcome:?}");
}

/// Puts something into the lease that no type of ours can hold.
fn spoil(sim: &Sim, metadata: &str, spec: &str) {
    let store = sim.server().store();
    let rest = format!(",\"spec\":{{{spec}}}");
    store.put_raw("coordination.k8s.io/leases", "default", "kruise-manager", metadata, &rest).unwrap();
}

const TIMES: &[&str] =
    &["\"9999-12-31T23:59:59Z\"", "\"10000-01-01T00:00:00Z\"", "\"soon\"", "5", "{}", "null"];

#[tokio::test(start_paused = true)]
async fn a_leader_keeps_a_lease_with_times_that_cannot_be_read() {
    let sim = Sim::builder().seed(5).nodes(0).start();
    let leader = process(&sim, sim.client(), "one", 0);
    sim.advance(Duration::from_secs(3)).await;
    for time in TIMES {
        let metadata = r#"{"name":"kruise-manager","namespace":"default","uid":"u",
            "managedFields":[{"manager":"x","operation":"Update","apiVersion":"v1","time":"9999-12-31T23:59:59Z"}]}"#;
        let times = format!(r#""renewTime":{time},"acquireTime":{time},"leaseTransitions":5"#);
        spoil(&sim, metadata, &format!(r#""holderIdentity":"one","leaseDurationSeconds":15,{times}"#));
        sim.advance(Duration::from_secs(12)).await;
        assert!(leader.fence.is_open(), "{time}");
        assert!(time::saturating(lease(&sim).await["renewTime"].as_str().unwrap()).is_some(), "{time}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_somebody_who_is_gone_is_taken_whatever_its_times_are() {
    for time in TIMES {
        let sim = Sim::builder().seed(6).nodes(0).start();
        let first = process(&sim, sim.client(), "one", 0);
        sim.advance(Duration::from_secs(3)).await;
        drop(first.scope);
        let times = format!(r#""renewTime":{time},"acquireTime":{time},"leaseTransitions":"many""#);
        let spec = format!(r#""holderIdentity":"gone","leaseDurationSeconds":15,{times}"#);
        spoil(&sim, r#"{"name":"kruise-manager","namespace":"default","uid":"u"}"#, &spec);
        let next = process(&sim, sim.client(), "two", 1);
        sim.advance(Duration::from_secs(30)).await;
        assert!(next.fence.is_open(), "{time}");
        assert_eq!(lease(&sim).await["holderIdentity"], "two");
    }
}
