//! Several replicas, any order of steps, and someone who deletes and overwrites: whatever a replica serves is trusted.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use kruise_webhook::certificates::plan::SETTLE;
use kruise_webhook::certificates::store::Store;
use proptest::prelude::*;

use crate::world::{NAME, Replica, World, authorities};

/// How much later than others a server may learn of a change; less than what a swap waits for.
const LAG: Duration = Duration::from_secs(4);

#[derive(Clone, Debug)]
enum Turn {
    Step(usize),
    Pass(Duration),
    DeleteSecret,
    /// Someone puts another certificate there and knows nothing of ours.
    OverwriteSecret,
    Restart(usize),
    RenewBefore(u32),
}

fn turns(replicas: usize) -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        40 => (0..replicas).prop_map(Turn::Step),
        8 => (0u64..7000).prop_map(|millis| Turn::Pass(Duration::from_millis(millis))),
        1 => Just(Turn::DeleteSecret),
        1 => Just(Turn::OverwriteSecret),
        1 => (0..replicas).prop_map(Turn::Restart),
        1 => (1u32..3600).prop_map(Turn::RenewBefore),
    ];
    prop::collection::vec(turn, 1..250)
}

/// What was published, and until when a slow server believes it.
struct History(VecDeque<(Timestamp, Vec<String>)>);

impl History {
    fn record(&mut self, world: &World) {
        let bundles = world.bundles();
        if self.0.back().is_none_or(|(_, last)| *last != bundles) {
            self.0.push_back((world.now, bundles));
        }
        // The newest that is old enough for every server to know it is the first that counts.
        while self.0.get(1).is_some_and(|(since, _)| world.now.duration_since(*since).unsigned_abs() >= LAG) {
            self.0.pop_front();
        }
    }
}

fn check(world: &World, replicas: &[Replica], history: &History) {
    for (i, replica) in replicas.iter().enumerate() {
        // Certificates live for years and these stories for minutes, so all of them hold.
        let Some(authority) = replica.authority() else { continue };
        let bundles: BTreeSet<String> = world.bundles().into_iter().collect();
        for bundle in bundles {
            assert!(authorities(&bundle).contains(&authority), "replica {i} serves what is not trusted");
        }
        for (_, bundles) in history.0.iter().filter(|_| replica.swapped) {
            for bundle in bundles {
                assert!(
                    authorities(bundle).contains(&authority),
                    "replica {i} swapped before slow servers knew"
                );
            }
        }
    }
}

fn run(replicas: usize, turns: &[Turn]) {
    let mut world = World::new();
    let mut replicas: Vec<Replica> = (0..replicas).map(|_| Replica::new()).collect();
    let mut history = History(VecDeque::new());
    let mut upsets = 0;
    for turn in turns {
        match turn {
            Turn::Step(i) => _ = replicas[*i].step(&mut world),
            Turn::Pass(time) => world.pass(*time),
            // As many authorities are remembered as anyone needs, not as many as a test can think of.
            Turn::DeleteSecret if upsets < 5 => {
                upsets += 1;
                world.set_secret(None);
            }
            Turn::OverwriteSecret if upsets < 5 => {
                upsets += 1;
                let stranger = Store::make(None, Vec::new(), NAME, world.now).unwrap();
                world.set_secret(Some(stranger.write()));
            }
            Turn::RenewBefore(days) if upsets < 5 => {
                upsets += 1;
                world.environment.renew_before = *days * crate::world::DAY;
            }
            Turn::Restart(i) => replicas[*i] = Replica::new(),
            Turn::DeleteSecret | Turn::OverwriteSecret | Turn::RenewBefore(_) => {}
        }
        history.record(&world);
        check(&world, &replicas, &history);
    }
    for _ in 0..6 {
        for replica in &mut replicas {
            replica.sync(&mut world);
            history.record(&world);
        }
        check(&world, &replicas, &history);
        world.pass(SETTLE);
    }
    let stored = world.stored().pair;
    assert!(
        replicas.iter().all(|replica| replica.served.as_ref() == Some(&stored)),
        "all serve what is stored"
    );
    let bundles = world.bundles();
    assert!(bundles.iter().all(|bundle| *bundle == bundles[0]));
    let writes = world.writes;
    replicas.iter_mut().for_each(|replica| replica.sync(&mut world));
    assert_eq!(world.writes, writes, "silence");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn whatever_happens_in_whatever_order_served_certificates_are_trusted(turns in turns(3)) {
        run(3, &turns);
    }
}

/// PLATFORM-2
#[test]
fn of_two_replicas_that_start_at_once_exactly_one_makes_the_certificate() {
    // Every way to mix the first steps of two replicas.
    for order in 0u32..1 << 8 {
        let mut world = World::new();
        let mut replicas = [Replica::new(), Replica::new()];
        let mut seen = Vec::new();
        for step in 0..8 {
            replicas[usize::from(order >> step & 1 == 1)].step(&mut world);
            if let Some((data, _)) = &world.secret
                && seen.last() != Some(data)
            {
                seen.push(data.clone());
            }
        }
        for _ in 0..2 {
            replicas.iter_mut().for_each(|replica| replica.sync(&mut world));
        }
        let (data, _) = world.secret.clone().unwrap();
        assert!(seen.iter().all(|other| *other == data), "a second certificate was stored");
        assert!(!data.contains_key("previous-ca-certs.pem"));
        let stored = world.stored().pair;
        assert!(replicas.iter().all(|replica| replica.served.as_ref() == Some(&stored)));
    }
}
