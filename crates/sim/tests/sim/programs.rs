//! What containers run, how they end, and what their probes and hooks find.

use kruise_sim::{Machine, Sim};
use serde_json::{Value, json};

use super::{condition, create, create_pod, delete, events, get, list, patch, seconds};

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

async fn pod_with(sim: &Sim, name: &str, image: &str, container: Value, policy: &str) {
    create_pod(sim, name, image, |pod| {
        pod["spec"]["restartPolicy"] = json!(policy);
        for (field, value) in container.as_object().unwrap() {
            pod["spec"]["containers"][0][field] = value.clone();
        }
    })
    .await;
}

fn phase(sim: &Sim, name: &str) -> String {
    get(sim, "pods", name)["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

async fn log(sim: &Sim, name: &str, params: kube::api::LogParams) -> String {
    let api: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::namespaced(sim.client(), "default");
    api.logs(name, &params).await.unwrap()
}

/// Runs a script in the container of a pod, as `kubectl exec` does.
async fn exec(sim: &Sim, name: &str, script: &str) -> (String, i32) {
    let pod = get(sim, "pods", name);
    let machine: Machine = sim.machine(pod["spec"]["nodeName"].as_str().unwrap());
    let id = container(&pod)["containerID"].as_str().unwrap().trim_start_matches("containerd://").to_owned();
    let words = ["sh", "-c", script].map(str::to_owned);
    let said = machine.run(&id, &words, None).await.unwrap();
    (said.stdout, said.code)
}

#[tokio::test(start_paused = true)]
async fn init_containers_end() {
    let sim = Sim::builder().start();
    let sh = |script: &str| json!(["sh", "-c", script]);
    create_pod(&sim, "web", "registry.example/web:v1", |pod| {
        pod["spec"]["initContainers"] = json!([
            {"name": "plain", "image": "registry.example/setup:v1"},
            {"name": "migrate", "image": "registry.example/web:v1", "command": ["/migrate"]},
            {"name": "copy", "image": "registry.example/web:v1", "command": sh("cp /app/conf /shared/ && chown 1 /shared/conf")},
            {"name": "wait", "image": "busybox:1.36", "command": sh("until nslookup db; do echo waiting for db; sleep 2; done")},
        ]);
    })
    .await;
    seconds(&sim, 60).await;
    let statuses = |pod: &Value| {
        let all = pod["status"]["initContainerStatuses"].as_array().unwrap().clone();
        all.iter().map(|one| one["state"]["terminated"]["exitCode"].clone()).collect::<Vec<Value>>()
    };
    let pod = get(&sim, "pods", "web");
    assert_eq!(statuses(&pod), [json!(0), json!(0), json!(0), json!(null)], "{pod:#}");
    let of = kube::api::LogParams { container: Some("wait".to_owned()), ..Default::default() };
    assert!(log(&sim, "web", of).await.ends_with("NXDOMAIN\n\nwaiting for db\n"));
    let service =
        json!({"metadata": {"name": "db"}, "spec": {"selector": {"app": "db"}, "ports": [{"port": 5432}]}});
    create(&sim, "services", service).await;
    seconds(&sim, 10).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "Ready"), "True");
}

#[tokio::test(start_paused = true)]
async fn jobs_complete_and_count_failures() {
    let sim = Sim::builder().start();
    let job = |name: &str, container: Value| {
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        json!({"metadata": {"name": name}, "spec": {"backoffLimit": 1, "template": template}})
    };
    let perl = json!(["perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"]);
    create(&sim, "batch/jobs", job("pi", json!({"name": "pi", "image": "perl:5.34.0", "command": perl})))
        .await;
    create(&sim, "batch/jobs", job("plain", json!({"name": "c", "image": "registry.example/job:v1"}))).await;
    let bad = json!({"name": "c", "image": "registry.example/job:v1", "command": ["/does-not-exist"]});
    create(&sim, "batch/jobs", job("bad", bad)).await;
    seconds(&sim, 90).await;
    for name in ["pi", "plain"] {
        assert_eq!(
            condition(&get(&sim, "batch/jobs", name), "Complete"),
            "True CompletionsReached",
            "{name}"
        );
    }
    assert_eq!(condition(&get(&sim, "batch/jobs", "bad"), "Failed"), "True BackoffLimitExceeded");
    assert_eq!(get(&sim, "batch/jobs", "bad")["status"]["failed"], 2);
    let pods = list(&sim, "pods");
    let pi = pods.iter().find(|pod| pod["metadata"]["labels"]["job-name"] == "pi").unwrap();
    let text = log(&sim, pi["metadata"]["name"].as_str().unwrap(), kube::api::LogParams::default()).await;
    assert_eq!((text.len(), text.starts_with("3.14159265358979")), (2002, true), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_exist_is_a_start_error_with_the_words_of_the_runtime() {
    let sim = Sim::builder().start();
    for (name, image, program) in [("path", "app:1", "/nonexistent"), ("name", "busybox:1.36", "foo")] {
        pod_with(&sim, name, image, json!({"command": [program, "-x"]}), "Always").await;
    }
    pod_with(&sim, "never", "alpine", json!({"command": ["foo"]}), "Never").await;
    seconds(&sim, 20).await;
    for (name, why) in [
        ("path", "exec: \"/nonexistent\": stat /nonexistent: no such file or directory: unknown"),
        ("name", "exec: \"foo\": executable file not found in $PATH: unknown"),
    ] {
        let pod = get(&sim, "pods", name);
        assert_eq!(container(&pod)["state"]["waiting"]["reason"], "CrashLoopBackOff", "{pod:#}");
        let ended = &container(&pod)["lastState"]["terminated"];
        assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(128), &json!("StartError")));
        assert!(ended["message"].as_str().unwrap().ends_with(why), "{ended}");
        let said = events(&sim, name);
        assert!(said.iter().any(|text| text.starts_with("Failed: Error: failed to create containerd task")));
        assert!(!said.iter().any(|text| text.starts_with("Started")), "{said:#?}");
    }
    assert_eq!(phase(&sim, "never"), "Failed");
}

#[tokio::test(start_paused = true)]
async fn commands_end_with_their_own_codes() {
    let sim = Sim::builder().start();
    for (name, command) in [
        ("ls", json!(["ls", "/nowhere"])),
        ("inner", json!(["sh", "-c", "echo begun; foo-bar; exit 0"])),
        ("unknown", json!(["sh", "-c", "cd / && foo"])),
        ("arguments", json!(["sh", "-c", "test $0 = a -a $1 = b", "a", "b"])),
        ("substituted", json!(["sh", "-c", "exit $(CODE)"])),
    ] {
        let more = json!({"command": command, "env": [{"name": "CODE", "value": "7"}]});
        pod_with(&sim, name, "busybox", more, "Never").await;
    }
    for (name, command) in [
        ("server", json!(["/app/server", "--port=80"])),
        ("scripted", json!(["sh", "-ec", "mkdir -p /x; exec /app/server"])),
    ] {
        pod_with(&sim, name, "registry.example/app:v1", json!({"command": command}), "Always").await;
    }
    seconds(&sim, 300).await;
    let code = |name: &str| container(&get(&sim, "pods", name))["state"]["terminated"]["exitCode"].clone();
    assert_eq!(
        [code("ls"), code("inner"), code("unknown"), code("arguments"), code("substituted")],
        [2, 0, 127, 0, 7]
    );
    for name in ["server", "scripted"] {
        let pod = get(&sim, "pods", name);
        assert_eq!(
            (condition(&pod, "Ready").as_str(), &container(&pod)["restartCount"]),
            ("True", &json!(0))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn images_that_everybody_knows_do_what_they_do_elsewhere() {
    let sim = Sim::builder().start();
    for (name, image, container, policy) in [
        ("shell", "busybox:1.36", json!({}), "Always"),
        ("talks", "docker.io/library/alpine", json!({"stdin": true, "tty": true}), "Never"),
        ("serves", "nginx:1.27", json!({}), "Never"),
        ("curl", "curlimages/curl:8", json!({}), "Never"),
        ("bare", "postgres:17", json!({}), "Never"),
        ("good", "postgres:17", json!({"env": [{"name": "POSTGRES_PASSWORD", "value": "x"}]}), "Never"),
    ] {
        pod_with(&sim, name, image, container, policy).await;
    }
    seconds(&sim, 60).await;
    let shell = get(&sim, "pods", "shell");
    assert_eq!(container(&shell)["state"]["waiting"]["reason"], "CrashLoopBackOff");
    assert_eq!(container(&shell)["lastState"]["terminated"]["reason"], "Completed");
    let phases = ["talks", "serves", "curl", "bare", "good"].map(|name| phase(&sim, name));
    assert_eq!(phases, ["Running", "Running", "Failed", "Failed", "Running"]);
    assert_eq!(container(&get(&sim, "pods", "curl"))["state"]["terminated"]["exitCode"], 2);
    let why = log(&sim, "bare", kube::api::LogParams::default()).await;
    assert!(why.starts_with("Error: Database is uninitialized"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_a_command_writes_is_its_log_as_time_passes() {
    let sim = Sim::builder().start();
    let script =
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $NAME $i; sleep 10; done; echo problem >&2; exit 5";
    let more = json!({"command": ["sh", "-c", script], "env": [{"name": "NAME", "value": "turn"}]});
    pod_with(&sim, "web", "app:1", more, "Always").await;
    seconds(&sim, 15).await;
    assert_eq!(log(&sim, "web", kube::api::LogParams::default()).await, "turn 1\nturn 2\n");
    seconds(&sim, 25).await;
    let pod = get(&sim, "pods", "web");
    assert_eq!(container(&pod)["lastState"]["terminated"]["exitCode"], 5, "{pod:#}");
    let previous = kube::api::LogParams { previous: true, ..Default::default() };
    assert_eq!(log(&sim, "web", previous).await, "turn 1\nturn 2\nturn 3\nproblem\n");
}

#[tokio::test(start_paused = true)]
async fn the_pauses_after_crashes_double_up_to_five_minutes_and_begin_anew_after_ten() {
    let sim = Sim::builder().start();
    pod_with(&sim, "web", "app:1", json!({"command": ["false"]}), "Always").await;
    pod_with(&sim, "long", "app:1", json!({"command": ["sleep", "660"]}), "Always").await;
    let mut pauses: Vec<String> = Vec::new();
    for _ in 0..1500 {
        seconds(&sim, 1).await;
        let pod = get(&sim, "pods", "web");
        let message = container(&pod)["state"]["waiting"]["message"].as_str().unwrap_or_default();
        let pause = message.strip_prefix("back-off ").and_then(|text| text.split(' ').next());
        if let Some(pause) = pause.filter(|pause| pauses.last().is_none_or(|last| last != pause)) {
            pauses.push(pause.to_owned());
        }
    }
    assert_eq!(pauses, ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s"]);
    let long = get(&sim, "pods", "long");
    assert_eq!(container(&long)["restartCount"], 2);
    assert!(!events(&sim, "long").iter().any(|text| text.starts_with("BackOff")));
}

#[tokio::test(start_paused = true)]
async fn probes_run_their_commands_in_the_container() {
    let sim = Sim::builder().start();
    let probe =
        |words: &[&str]| json!({"exec": {"command": words}, "periodSeconds": 5, "failureThreshold": 3});
    let sleeps = json!(["sleep", "3600"]);
    for (name, kind, words) in [
        ("never", "readinessProbe", vec!["/bin/false"]),
        ("later", "readinessProbe", vec!["test", "-f", "/data/ready"]),
        ("slow", "readinessProbe", vec!["sleep", "3"]),
        ("foreign", "readinessProbe", vec!["/app/check"]),
        ("start", "startupProbe", vec!["cat", "/tmp/up"]),
    ] {
        let mut probe = probe(&words);
        if kind == "startupProbe" {
            probe["failureThreshold"] = json!(30);
        }
        pod_with(&sim, name, "app:1", json!({"command": sleeps, kind: probe}), "Always").await;
    }
    // The example of a liveness probe of Kubernetes' documentation.
    let script = "touch /tmp/healthy; sleep 30; rm -f /tmp/healthy; sleep 600";
    let liveness = json!({"command": ["sh", "-c", script], "livenessProbe": probe(&["cat", "/tmp/healthy"])});
    pod_with(&sim, "live", "app:1", liveness, "Always").await;
    let page =
        json!({"readinessProbe": {"httpGet": {"path": "/status/500", "port": 80}, "periodSeconds": 5}});
    pod_with(&sim, "page", "app:1", page, "Always").await;
    seconds(&sim, 12).await;
    let ready = |name: &str| condition(&get(&sim, "pods", name), "Ready") == "True";
    let all = ["never", "later", "slow", "foreign", "start", "live", "page"].map(&ready);
    assert_eq!(all, [false, false, false, true, false, true, false]);
    assert_eq!(exec(&sim, "later", "touch /data/ready").await.1, 0);
    assert_eq!(exec(&sim, "start", "touch /tmp/up").await.1, 0);
    seconds(&sim, 8).await;
    assert!(ready("later") && ready("start") && !ready("never") && !ready("slow") && !ready("page"));
    assert_eq!(exec(&sim, "later", "rm /data/ready").await.1, 0);
    seconds(&sim, 20).await;
    assert!(!ready("later"), "three failures make it unready");
    seconds(&sim, 40).await;
    let live = get(&sim, "pods", "live");
    assert_eq!(container(&live)["restartCount"], 1, "{live:#}");
    let said = events(&sim, "live");
    let missing =
        "Unhealthy: Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory\n";
    assert!(said.contains(&missing.to_owned()), "{said:#?}");
    assert!(said.contains(&"Killing: Container app failed liveness probe, will be restarted".to_owned()));
    let slow = events(&sim, "slow");
    let late = "Unhealthy: Readiness probe failed: command timed out: \"sleep 3\" timed out after 1s";
    assert!(slow.contains(&late.to_owned()), "{slow:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_startup_probe_that_never_passes_restarts_the_container() {
    let sim = Sim::builder().start();
    let probe = json!({"exec": {"command": ["false"]}, "periodSeconds": 2, "failureThreshold": 2});
    pod_with(&sim, "web", "app:1", json!({"startupProbe": probe}), "Always").await;
    seconds(&sim, 15).await;
    assert!(container(&get(&sim, "pods", "web"))["restartCount"].as_u64().unwrap() > 0);
    assert!(events(&sim, "web").contains(&"Unhealthy: Startup probe failed: ".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn hooks_run_in_the_container_and_can_fail() {
    let sim = Sim::builder().start();
    let exec_hook = |script: &str| json!({"exec": {"command": ["sh", "-c", script]}});
    let good =
        json!({"postStart": exec_hook("echo hello > /tmp/greeting"), "preStop": exec_hook("sleep 10")});
    pod_with(&sim, "good", "app:1", json!({"lifecycle": good}), "Always").await;
    pod_with(&sim, "bad", "app:1", json!({"lifecycle": {"postStart": exec_hook("exit 1")}}), "Always").await;
    pod_with(&sim, "rude", "app:1", json!({"lifecycle": {"preStop": exec_hook("exit 1")}}), "Always").await;
    seconds(&sim, 20).await;
    assert_eq!(exec(&sim, "good", "cat /tmp/greeting").await, ("hello\n".to_owned(), 0));
    let bad = get(&sim, "pods", "bad");
    assert_eq!(container(&bad)["state"]["waiting"]["reason"], "CrashLoopBackOff", "{bad:#}");
    assert!(events(&sim, "bad").contains(&"FailedPostStartHook: PostStartHook failed".to_owned()));
    delete(&sim, "pods", "good").await;
    delete(&sim, "pods", "rude").await;
    seconds(&sim, 5).await;
    assert_eq!((phase(&sim, "good").as_str(), phase(&sim, "rude").as_str()), ("Running", ""));
    assert!(events(&sim, "rude").contains(&"FailedPreStopHook: PreStopHook failed".to_owned()));
    seconds(&sim, 10).await;
    assert_eq!(phase(&sim, "good"), "");
}

#[tokio::test(start_paused = true)]
async fn images_of_no_registry_and_with_no_name_are_not_pulled() {
    let sim = Sim::builder().start();
    for (name, image) in
        [("first", "invalid.example.com/app:v1"), ("last", "registry.invalid/app:v1"), ("named", "App:v1")]
    {
        create_pod(&sim, name, image, |_| {}).await;
    }
    seconds(&sim, 10).await;
    let waiting = |name: &str| container(&get(&sim, "pods", name))["state"]["waiting"].clone();
    for name in ["first", "last"] {
        let waiting = waiting(name);
        assert_eq!(waiting["reason"], "ImagePullBackOff", "{waiting}");
        assert!(waiting["message"].as_str().unwrap().contains("no such host"), "{waiting}");
    }
    assert_eq!(waiting("named")["reason"], "InvalidImageName");
    patch(&sim, "pods", "named", None, json!({"spec": {"containers": [{"name": "app", "image": "app:v1"}]}}))
        .await;
    seconds(&sim, 15).await;
    assert_eq!(condition(&get(&sim, "pods", "named"), "Ready"), "True");
}

#[tokio::test(start_paused = true)]
async fn two_names_of_one_image_have_one_id() {
    let sim = Sim::builder().start();
    create_pod(&sim, "one", "registry.example/app:v1", |_| {}).await;
    create_pod(&sim, "two", "registry.example/app:v1-again", |_| {}).await;
    seconds(&sim, 15).await;
    let id = |name: &str| container(&get(&sim, "pods", name))["imageID"].as_str().unwrap().to_owned();
    assert_eq!(id("one"), id("two"));
    create_pod(&sim, "three", &id("one"), |_| {}).await;
    seconds(&sim, 15).await;
    assert_eq!(id("three"), id("one"));
}

/// Whoever waits for a restart compares these times, which are in whole seconds.
#[tokio::test(start_paused = true)]
async fn starts_and_ends_of_containers_are_never_in_the_same_second() {
    let sim = Sim::builder().start();
    pod_with(&sim, "short", "app:1", json!({"command": ["true"]}), "Always").await;
    create_pod(&sim, "web", "app:1", |_| {}).await;
    seconds(&sim, 10).await;
    let check = |pod: &Value| {
        let status = container(pod);
        let ended = &status["lastState"]["terminated"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let times = [
            text(&ended["startedAt"]),
            text(&ended["finishedAt"]),
            text(&status["state"]["running"]["startedAt"]),
        ];
        assert!(times[0] < times[1] && (times[2].is_empty() || times[1] < times[2]), "{times:?}");
    };
    for _ in 0..20 {
        sim.kill_container("default", "web", "app");
        seconds(&sim, 4).await;
        check(&get(&sim, "pods", "web"));
        check(&get(&sim, "pods", "short"));
    }
    // A restart takes the time of a kubelet that has to notice the end first.
    let before = get(&sim, "pods", "web");
    sim.kill_container("default", "web", "app");
    sim.advance(std::time::Duration::from_millis(1200)).await;
    assert_eq!(container(&get(&sim, "pods", "web"))["restartCount"], container(&before)["restartCount"]);
}
