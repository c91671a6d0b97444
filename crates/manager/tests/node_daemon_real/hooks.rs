//! Hooks run before their container is stopped, whatever becomes of them.

use kruise_testkit::{Outcome, Skip};
use serde_json::{Value, json};

use crate::{
    node::on_a_node,
    stage::Stage,
    words::{Room, ended_at, made_at, states, status},
};

/// A container that says when it is asked to stop, and every request that it gets.
fn talking(hook: &Value) -> Value {
    let script = "trap 'echo stops; exit 0' TERM; httpd -f -vv -p 8080 -h /www & while :; do sleep 1000 & wait $!; done";
    json!({"command": ["sh", "-c", script], "lifecycle": {"preStop": hook}})
}

/// Where two texts stand, one after the other.
#[track_caller]
fn first_then(said: &str, first: &str, then: &str) {
    let (one, two) = (said.find(first), said.find(then));
    assert!(one.is_some() && one < two, "{first:?} before {then:?} in:\n{said}");
}

/// CRR-6: a command runs to its end, then the container is asked to stop.
async fn a_command_runs_before_the_stop(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "exec-hook").await?;
    let hook = json!({"exec": {"command": ["sh", "-c", "sleep 4; echo the hook ran > /proc/1/fd/1"]}});
    room.pod("web", room.two(&talking(&hook), &json!({})), json!({})).await;
    let made = room.ask("again", "web", &["app"], &json!({})).await;
    assert_eq!(states(&room.ended("again").await), ["app Succeeded killed"]);
    let pod = room.after_stop("web", &["app"]).await;
    first_then(&room.said_before("web", "app").await, "the hook ran", "stops");
    let lasted = ended_at(&pod, "app").duration_since(made_at(&made));
    assert!(lasted.as_secs() >= 4, "{lasted:?}");
    Ok(())
}
on_a_node!(a_command_runs_before_the_stop);

/// CRR-10: a request to a port by its name reaches the pod before the stop, though nobody names a host.
async fn a_request_reaches_the_pod_before_the_stop(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "http-hook").await?;
    let hook = json!({"httpGet": {"path": "/healthz?bye", "port": "web"}});
    room.pod("web", room.two(&talking(&hook), &json!({})), json!({})).await;
    room.ask("again", "web", &["app"], &json!({})).await;
    assert_eq!(states(&room.ended("again").await), ["app Succeeded killed"]);
    first_then(&room.said_before("web", "app").await, "url:/healthz", "stops");
    let events = room.sandbox.events().await;
    assert!(events.iter().all(|event| event.reason != "FailedPreStopHook"), "{events:?}");
    Ok(())
}
on_a_node!(a_request_reaches_the_pod_before_the_stop);

/// CRR-11: a hook that only waits.
async fn a_hook_may_sleep(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "sleep-hook").await?;
    if !stage.cluster.is_at_least(1, 30) {
        let server = stage.cluster.version().to_owned();
        return Err(Skip { needs: "hooks that sleep".to_owned(), server });
    }
    room.pod("web", room.two(&talking(&json!({"sleep": {"seconds": 5}})), &json!({})), json!({})).await;
    let made = room.ask("again", "web", &["app"], &json!({})).await;
    assert_eq!(states(&room.ended("again").await), ["app Succeeded killed"]);
    let pod = room.after_stop("web", &["app"]).await;
    let lasted = ended_at(&pod, "app").duration_since(made_at(&made));
    assert!(lasted.as_secs() >= 5, "{lasted:?}");
    Ok(())
}
on_a_node!(a_hook_may_sleep);

/// CRR-9: a hook that fails is told, and keeps nobody alive. CRR-7: neither does one that takes too long.
async fn hooks_that_fail_or_take_too_long_do_not_matter(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bad-hooks").await?;
    let fails = json!({"exec": {"command": ["sh", "-c", "echo no >&2; exit 1"]}});
    let takes_long = json!({"exec": {"command": ["sleep", "20"]}});
    tokio::join!(
        room.pod("fails", room.two(&talking(&fails), &json!({})), json!({})),
        room.pod("long", room.two(&talking(&takes_long), &json!({})), json!({})),
    );
    room.ask("of-fails", "fails", &["app"], &json!({})).await;
    let made = room
        .ask("of-long", "long", &["app"], &json!({"strategy": {"terminationGracePeriodSeconds": 3}}))
        .await;
    assert_eq!(states(&room.ended("of-fails").await), ["app Succeeded killed"]);
    let events = room.sandbox.events().await;
    let failed = events.iter().find(|event| event.reason == "FailedPreStopHook").expect("it is told");
    assert_eq!((failed.kind.as_str(), failed.about.as_str()), ("Warning", "Pod/fails"));
    let text = "Exec lifecycle hook ([sh -c echo no >&2; exit 1]) for Container \"app\" in Pod \"fails_";
    assert!(failed.message.starts_with(text), "{}", failed.message);
    assert_eq!(states(&room.ended("of-long").await), ["app Succeeded killed"]);
    let pod = room.after_stop("long", &["app"]).await;
    let lasted = ended_at(&pod, "app").duration_since(made_at(&made)).as_secs();
    assert!((3..10).contains(&lasted), "{lasted} s");
    assert_eq!(status(&pod, "sidecar").restart_count, 0);
    Ok(())
}
on_a_node!(hooks_that_fail_or_take_too_long_do_not_matter);
