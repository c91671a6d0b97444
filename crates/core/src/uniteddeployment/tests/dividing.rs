//! Tables of the specification, and divisions recorded from the original.

use jiff::Timestamp;
use kruise_api::int_or_percent::IntOrString;
use serde_json::Value;

use crate::uniteddeployment::allocation::{Mode, Share, Subset, Workload, allocate, sentence};

fn value(text: &str) -> Option<IntOrString> {
    match text {
        "" | "-" => None,
        text => Some(text.parse::<i64>().map_or_else(|_| IntOrString::from(text), IntOrString::Int)),
    }
}

/// A subset as `name current own min max`, with `-` for what is absent.
fn subset(text: &str) -> Subset {
    let words: Vec<&str> = text.split_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or("-");
    let current = word(1).parse::<i64>().ok();
    Subset {
        name: word(0).to_owned(),
        replicas: value(word(2)),
        min: value(word(3)),
        max: value(word(4)),
        workload: current.map(|replicas| Workload { replicas, ..Workload::default() }),
    }
}

fn numbers(shares: &[Share]) -> String {
    shares.iter().map(|share| share.replicas.to_string()).collect::<Vec<_>>().join(",")
}

#[track_caller]
fn check(total: i64, subsets: &str, expected: &str) {
    let subsets: Vec<Subset> = subsets.split(", ").map(subset).collect();
    let found = match allocate(total, Mode::Fixed, &subsets) {
        Ok(shares) => numbers(&shares),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected);
}

/// UNITED-1, UNITED-2, UNITED-3, UNITED-4
#[test]
fn numbers_of_the_author_come_first_and_the_rest_is_even() {
    check(7, "a 0, b 0, c 0", "2,2,3");
    check(5, "a 1, b 4, c 2", "1,2,2");
    check(10, "a 2 1, b 2 50%, c 6", "1,5,4");
    check(10, "a 1, b 5, c 4", "3,4,3");
    check(2, "a 0, b 0, c 0", "0,1,1");
    check(8, "a 0, b 1, c 1 33%", "2,3,3");
    check(3, "a - 25%, b - 25%, c -", "1,1,1");
    check(10, "a - 2, b - 50%, c -", "2,5,3");
    check(10, "a 2 1, b 5 40%, c 3", "1,4,5");
    check(
        5,
        "a - 50%, b - 50%",
        "specified subsets' replica (6) is greater than UnitedDeployment replica (5)",
    );
    check(
        10,
        "a - 33%, b - 33%, c - 34%",
        "specified subsets' replica (9) is less than UnitedDeployment replica (10)",
    );
}

/// UNITED-7, UNITED-12
#[test]
fn minimums_come_first_and_then_maximums_in_order() {
    let limits = "a - - 1 4, b - - 2 3, c - - 0";
    check(2, limits, "1,1,0");
    check(9, limits, "4,3,2");
    check(20, limits, "4,3,13");
    check(10, "a - - 10% 25%, b - - 15% 35%, c - - 0", "3,4,3");
    check(1, "a - - 50%, b - - 50%, c - - 0", "1,0,0");
    check(4, "a - - 3 50%, b -", "subset[0].maxReplicas(2) must be more than or equal to minReplicas(3)");
}

/// A subset of 6.3 as `name max ready min`, with `!` where it cannot take pods.
#[track_caller]
fn adaptive(total: i64, subsets: &str, expected: &str) {
    let subsets: Vec<Subset> = subsets
        .split(", ")
        .map(|text| {
            let words: Vec<&str> = text.trim_start_matches('!').split_whitespace().collect();
            let ready = words[2].parse().unwrap();
            Subset {
                name: words[0].to_owned(),
                max: value(words[1]),
                min: words.get(3).and_then(|word| value(word)),
                replicas: None,
                workload: Some(Workload {
                    replicas: ready,
                    ready,
                    unschedulable: text.starts_with('!').then_some(Timestamp::UNIX_EPOCH),
                    ..Workload::default()
                }),
            }
        })
        .collect();
    let shares = allocate(total, Mode::Adaptive, &subsets).unwrap();
    assert_eq!(numbers(&shares), expected);
}

/// UNITED-20, UNITED-21, UNITED-22
#[test]
fn subsets_that_cannot_take_pods_keep_their_ready_ones() {
    adaptive(6, "a 3 3, !b - 0, c - 0", "3,0,3");
    adaptive(9, "a 3 3, !b - 0, c - 3", "3,0,6");
    adaptive(9, "a 3 3, b - 0, c - 3", "3,3,3");
    adaptive(4, "a 3 3, b - 0, c - 6", "3,0,1");
    adaptive(6, "!a 4 0 2, b - 2 0", "2,4");
    adaptive(3, "a - 0, !b - 0 1, c - 0", "2,1,0");
}

/// The subset of 6.4 is `replicas/reserved`, `!` where it was marked, or `-` where it does not exist.
#[track_caller]
fn reserving(total: i64, subsets: &str, expected: &str) {
    let subsets: Vec<Subset> = subsets
        .split(' ')
        .enumerate()
        .map(|(index, text)| {
            let workload = text.trim_start_matches('!').split_once('/').map(|(replicas, reserved)| {
                let (replicas, reserved) = (replicas.parse().unwrap(), reserved.parse().unwrap());
                Workload {
                    replicas,
                    reserved,
                    ready: replicas - reserved,
                    unschedulable: (reserved > 0).then_some(Timestamp::UNIX_EPOCH),
                    marked: text.starts_with('!'),
                }
            });
            Subset { name: format!("s{index}"), workload, ..Subset::default() }
        })
        .collect();
    let shares = allocate(total, Mode::Reserving, &subsets).unwrap();
    assert_eq!(numbers(&shares), expected);
}

/// UNITED-24, UNITED-25, UNITED-27
#[test]
fn pods_that_hang_get_stand_ins() {
    reserving(3, "- - -", "3,0,0");
    reserving(3, "!3/3 0/0 0/0", "3,3,0");
    reserving(3, "!3/3 !3/1 0/0", "3,3,1");
    reserving(5, "!3/3 !3/1 1/0", "3,3,3");
    reserving(3, "!3/2 !3/1 1/0", "3,2,0");
    reserving(3, "!3/0 !3/1 1/0", "3,0,0");
    reserving(5, "!3/0 2/0 0/0", "5,2,0");
    reserving(5, "!5/2 2/0 0/0", "5,2,0");
    reserving(5, "5/0 2/0 0/0", "5,0,0");
}

/// UNITED-20: why every subset has its number.
#[test]
fn the_sentence_says_why() {
    let since = Timestamp::from_second(1_800_000_000).unwrap();
    let mut subsets: Vec<Subset> = ["a 2 - 0 2", "b 1 - 0 2", "c 0 - 0"].map(subset).into();
    for (subset, ready) in subsets.iter_mut().zip([2, 0, 0]) {
        subset.workload.as_mut().unwrap().ready = ready;
    }
    subsets[1].workload.as_mut().unwrap().unschedulable = Some(since);
    let shares = allocate(3, Mode::Adaptive, &subsets).unwrap();
    assert_eq!(
        sentence(3, &subsets, &shares),
        "3 replicas: a 2 (keeps its 2 ready pods), b 1 -> 0 (unschedulable since 2027-01-15T08:00:00Z: only its 0 ready pods \
         count), c 0 -> 1 (takes the rest)",
    );
    let why = |text: &str, total, mode| {
        let subsets: Vec<Subset> = text.split(", ").map(subset).collect();
        let shares = allocate(total, mode, &subsets).unwrap();
        shares.iter().map(|share| share.why.to_string()).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(why("a - 50%, b -, c -", 5, Mode::Fixed), "replicas: 50%; even share; even share");
    assert_eq!(why("a -, b -, c -", 4, Mode::Fixed), "even share; even share; even share, one extra");
    assert_eq!(
        why("a - - 1 4, b - - 2 3, c - - 0", 9, Mode::Fixed),
        "full: maxReplicas 4; full: maxReplicas 3; takes the rest"
    );
    assert_eq!(
        why("a - - 1 4, b - - 2 3, c - - 0", 2, Mode::Fixed),
        "minReplicas 1; minReplicas 2; minReplicas 0"
    );
    let many: Vec<Subset> = (0..12).map(|index| subset(&format!("s{index} 0"))).collect();
    let shares = allocate(0, Mode::Fixed, &many).unwrap();
    assert!(sentence(0, &many, &shares).ends_with("s9 0 (even share), and 2 more subsets"));
}

/// Recorded from the original.
#[test]
fn divisions_equal_those_of_the_original() {
    let recorded = include_str!("../../../tests/recorded/uniteddeployment-allocation.tsv");
    let mut count = 0;
    for line in recorded.lines().skip(1).filter(|line| !line.is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        let json = |at: usize| serde_json::from_str::<Value>(cells[at]).unwrap();
        // One of them was refused by admission.
        let is_refused = cells[3].starts_with("refused");
        let (before, subsets) = (json(0), json(2));
        let after = if is_refused { Value::Null } else { json(3) };
        let spec = |subset: &Value, field: &str| {
            subset.get(field).map(|value| serde_json::from_value::<IntOrString>(value.clone()).unwrap())
        };
        let subsets: Vec<Subset> = subsets
            .as_array()
            .unwrap()
            .iter()
            .map(|subset| {
                let name = subset["name"].as_str().unwrap();
                let replicas = before[name].as_i64();
                Subset {
                    name: name.to_owned(),
                    replicas: spec(subset, "replicas"),
                    min: spec(subset, "minReplicas"),
                    max: spec(subset, "maxReplicas"),
                    workload: replicas.map(|replicas| Workload { replicas, ..Workload::default() }),
                }
            })
            .collect();
        let divided = allocate(cells[1].parse().unwrap(), Mode::Fixed, &subsets);
        assert_eq!(divided.is_err(), is_refused, "{line}");
        let Ok(shares) = divided else { continue };
        for (subset, share) in subsets.iter().zip(&shares) {
            assert_eq!(Some(share.replicas), after[&subset.name].as_i64(), "{line}");
        }
        count += 1;
    }
    assert_eq!(count, 44);
}
