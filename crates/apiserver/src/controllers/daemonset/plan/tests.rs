use super::*;
use proptest::prelude::*;

/// Nodes are written as `name`, `name!` (nobody starts there, pods stay) or `name-` (pods leave); pods as
/// `name@node:old|new:state` with a state of ready, fresh (not yet for long enough), down, failed, done, leaving.
fn parse(nodes: &str, pods: &str) -> (Vec<Node>, Vec<Seen>) {
    let node = |word: &str| Node {
        name: word.trim_end_matches(['!', '-']).to_owned(),
        starts: !word.ends_with(['!', '-']),
        stays: !word.ends_with('-'),
    };
    let pod = |(index, word): (usize, &str)| {
        let (name, rest) = word.split_once('@').unwrap();
        let parts: Vec<&str> = rest.split(':').collect();
        Seen {
            name: name.to_owned(),
            node: parts[0].trim_end_matches('?').to_owned(),
            placed: !parts[0].ends_with('?'),
            updated: parts[1] == "new",
            phase: match parts[2] {
                "failed" => Phase::Failed,
                "done" => Phase::Succeeded,
                _ => Phase::Running,
            },
            deleting: parts[2] == "leaving",
            ready: matches!(parts[2], "ready" | "fresh"),
            available: parts[2] == "ready",
            created: Timestamp::from_second(i64::try_from(index).unwrap()).unwrap(),
        }
    };
    (nodes.split_whitespace().map(node).collect(), pods.split_whitespace().enumerate().map(pod).collect())
}

fn wanted(nodes: &[Node], max_unavailable: i64, max_surge: i64) -> Wanted {
    Wanted {
        rolling: true,
        desired: i64::try_from(nodes.iter().filter(|node| node.starts).count()).unwrap(),
        max_unavailable,
        max_surge,
        surges: max_surge > 0,
    }
}

fn render(plan: &Plan) -> String {
    let ended = plan
        .ended
        .iter()
        .map(|ended| format!("{} {}", if ended.failed { "kill" } else { "clear" }, ended.name));
    let create = plan.create.iter().map(|node| format!("create {node}"));
    let delete = plan.delete.iter().map(|pod| format!("delete {pod}"));
    create.chain(ended).chain(delete).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(limits: (i64, i64), nodes: &str, pods: &str, expected: &str) {
    let (nodes, pods) = parse(nodes, pods);
    assert_eq!(render(&plan(&wanted(&nodes, limits.0, limits.1), &nodes, &pods)), expected);
}

#[test]
fn every_node_that_fits_gets_one_pod() {
    check((1, 0), "a b c!", "x@a:new:ready", "create b");
    check((1, 0), "a", "x@a:new:leaving", "");
    check((1, 0), "a! b-", "x@a:new:ready y@b:new:ready", "delete y");
    check((1, 0), "a", "x@a:new:ready y@a:new:ready", "delete y");
    check((1, 0), "a b", "x@a:new:failed y@b:new:done", "kill x, clear y");
    check((1, 0), "a", "x@a:new:ready y@gone?:new:down", "delete y");
    check((1, 0), "a", "x@a?:new:down", "");
}

#[test]
fn old_pods_are_replaced_within_the_limit() {
    check((1, 0), "a b c", "x@a:old:ready y@b:old:ready z@c:old:ready", "delete x");
    check((1, 0), "a b", "x@a:new:fresh y@b:old:ready", "");
    check((2, 0), "a b c", "x@a:new:down y@b:old:ready z@c:old:ready", "delete y");
    check((1, 0), "a b", "x@a:old:down y@b:old:ready", "delete x");
    check((1, 0), "a b", "x@a:new:ready y@b:new:ready", "");
    check((1, 0), "a b", "x@a:old:leaving y@b:old:ready", "");
}

#[test]
fn with_a_surge_the_old_pod_serves_until_the_new_one_does() {
    check((0, 1), "a b", "x@a:old:ready y@b:old:ready", "create a");
    check((0, 1), "a b", "x@a:old:ready n@a:new:down y@b:old:ready", "");
    check((0, 1), "a b", "x@a:old:ready n@a:new:fresh y@b:old:ready", "");
    check((0, 1), "a b", "x@a:old:ready n@a:new:ready y@b:old:ready", "delete x");
    check((0, 1), "a b", "x@a:old:leaving n@a:new:ready y@b:old:ready", "create b");
    check((0, 1), "a b", "x@a:old:down y@b:old:down", "create a, create b");
    check((0, 1), "a", "x@a:old:down n@a:new:down", "delete x");
    check((0, 1), "a! b", "x@a:old:ready y@b:new:ready", "delete x");
    check((0, 1), "a! b", "x@a:old:ready y@b:new:down", "");
}

#[test]
fn on_delete_waits_for_the_hand_of_somebody() {
    let (nodes, pods) = parse("a b", "x@a:old:ready");
    let by_hand = Wanted { rolling: false, ..wanted(&nodes, 0, 0) };
    assert_eq!(render(&plan(&by_hand, &nodes, &pods)), "create b");
    let (nodes, pods) = parse("a", "x@a:old:ready");
    assert_eq!(render(&plan(&by_hand, &nodes, &pods)), "");
}

fn any_pods() -> impl Strategy<Value = Vec<Seen>> {
    let states = prop::sample::select(vec!["ready", "fresh", "down", "failed", "done", "leaving"]);
    let one = (0..4usize, any::<bool>(), states);
    prop::collection::vec(one, 0..8).prop_map(|pods| {
        let words: Vec<String> = pods
            .into_iter()
            .enumerate()
            .map(|(at, (node, new, state))| {
                format!("p{at}@n{node}:{}:{state}", if new { "new" } else { "old" })
            })
            .collect();
        parse("", &words.join(" ")).1
    })
}

proptest! {
    #[test]
    fn never_takes_more_serving_pods_than_the_limit(pods in any_pods(), limit in 1..4i64) {
        let (nodes, _) = parse("n0 n1 n2 n3", "");
        let plan = plan(&wanted(&nodes, limit, 0), &nodes, &pods);
        // Where nodes have one pod each, what goes and what is down already stay within the limit.
        let single = nodes.iter().all(|node| pods.iter().filter(|pod| pod.node == node.name).count() == 1);
        if single && plan.ended.is_empty() {
            let taken = plan.delete.iter().filter(|name| pods.iter().any(|pod| pod.name == **name && pod.available));
            let taken = i64::try_from(taken.count()).unwrap();
            let down = i64::try_from(pods.iter().filter(|pod| !pod.available).count()).unwrap();
            prop_assert!(taken == 0 || taken + down <= limit, "{}", render(&plan));
        }
    }

    #[test]
    fn plans_lead_to_one_new_pod_on_each_node_and_then_to_nothing(
        pods in any_pods(), limits in prop::sample::select(vec![(1, 0), (2, 0), (0, 1), (0, 3)]),
    ) {
        let (nodes, _) = parse("n0 n1 n2 n3-", "");
        let wanted = wanted(&nodes, limits.0, limits.1);
        let mut pods = pods;
        for round in 0..60usize {
            let plan = plan(&wanted, &nodes, &pods);
            let settled = pods.iter().all(|pod| pod.available && !pod.deleting);
            if plan.is_empty() && settled {
                break;
            }
            prop_assert!(round < 59, "no rest: {}", render(&plan));
            // Everything leaves or starts at once.
            let gone: Vec<&String> = plan.delete.iter().chain(plan.ended.iter().map(|ended| &ended.name)).collect();
            pods.retain(|pod| !pod.deleting && !gone.contains(&&pod.name));
            for pod in pods.iter_mut().filter(|pod| !matches!(pod.phase, Phase::Failed | Phase::Succeeded)) {
                (pod.ready, pod.available) = (true, true);
            }
            for (at, node) in plan.create.iter().enumerate() {
                let made = parse("", &format!("m{round}-{at}@{node}:new:down")).1;
                pods.extend(made);
            }
        }
        let mut on: Vec<&str> = pods.iter().map(|pod| pod.node.as_str()).collect();
        on.sort_unstable();
        prop_assert_eq!(on, ["n0", "n1", "n2"]);
        prop_assert!(pods.iter().all(|pod| pod.updated));
    }
}
