//! A client that calls a sidecar while it is replaced twice and taken back once.
//!
//! Only on a real node: containers of the embedded cluster serve nobody.
//!
//! The images know nothing of hot upgrades, so the set brings a script. Both containers share the network of the pod and
//! cannot have the same port at the same time: a container takes the first of two ports that is free, tells through its
//! `postStart` hook when it serves, and does nothing when its image is the idle one. The client stays with the port that
//! answered last and turns to the other one when it does not: what a proxy would do by its rules.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kruise_testkit::Outcome;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

use crate::{kit::is_ready, scene::Scene, stage::Stage};

const PORTS: [u16; 2] = [18_001, 18_002];

const SCRIPT: &str = r#"server=
trap 'test -n "$server" && kill $server; exit 0' TERM INT
if [ "$IMAGE_NAME" = app ]; then
  mine="$IMAGE_VERSION $SIDECARSET_VERSION $SIDECARSET_VERSION_ALT"
  echo "$mine" > /www/index.html
  for port in 18001 18002; do
    httpd -f -p $port -h /www & server=$!
    sleep 1
    test "$(wget -q -O - http://127.0.0.1:$port/)" = "$mine" && break
  done
fi
touch /tmp/ready
while :; do sleep 1000 & wait $!; done
"#;

/// Calls every 100 ms, and writes down who answered.
struct Client {
    answers: Arc<Mutex<Vec<Option<String>>>>,
    _calls: JoinSet<()>,
}

impl Client {
    fn start(address: String) -> Self {
        let answers: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let written = answers.clone();
        let mut calls = JoinSet::new();
        calls.spawn(async move {
            let mut ports = PORTS;
            let mut clock = tokio::time::interval(Duration::from_millis(100));
            loop {
                clock.tick().await;
                let mut answer = None;
                for _ in PORTS {
                    answer = call(&address, ports[0]).await;
                    if answer.is_some() {
                        break;
                    }
                    ports.reverse();
                }
                written.lock().unwrap().push(answer);
            }
        });
        Self { answers, _calls: calls }
    }

    fn answers(&self) -> Vec<Option<String>> {
        self.answers.lock().unwrap().clone()
    }
}

/// One request: the whole answer, if it came.
async fn call(address: &str, port: u16) -> Option<String> {
    let exchange = async {
        let mut stream = TcpStream::connect((address, port)).await.ok()?;
        let request = format!("GET / HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        (head.contains(" 200 ") && body.ends_with('\n')).then(|| body.trim().to_owned())
    };
    timeout(Duration::from_secs(1), exchange).await.ok().flatten()
}

/// SIDECARSET-34, with a client: two hot upgrades and a way back, and every request is answered.
async fn no_request_is_lost(stage: &mut Stage) -> Outcome {
    let scene = Scene::with_real_containers(stage, "client").await?;
    let serves = "until test -f /tmp/ready; do sleep 0.1; done";
    let sidecar = scene.sidecar(
        "sc",
        "app:v1",
        json!({
            "command": ["/bin/sh", "-c", SCRIPT],
            "lifecycle": {"postStart": {"exec": {"command": ["/bin/sh", "-c", serves]}}},
            "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": scene.image("http:v1")},
        }),
    );
    scene.create_set("s", json!({"spec": {"containers": [sidecar]}})).await;
    scene.create_pods(1).await;
    scene.until_counts("s", [1; 4]).await;
    let pod = scene.pod("pod-0").await;
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap();
    let film = scene.film().await;
    let client = Client::start(address);
    for image in ["app:v2", "app:v3", "app:v2"] {
        tokio::time::sleep(Duration::from_secs(2)).await;
        scene.set_image("s", image).await;
        scene.rests_at("s", [1; 4]).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let answers = client.answers();
    let lost = answers.iter().filter(|answer| answer.is_none()).count();
    assert!(lost == 0, "{lost} of {} requests were lost", answers.len());
    assert!(answers.len() > 100, "{}", answers.len());
    assert!(film.frames().iter().all(|frame| frame.active().all(is_ready)));
    assert_eq!(scene.pod("pod-0").await.metadata.uid, pod.metadata.uid);

    let mut told: Vec<String> = answers.into_iter().flatten().collect();
    told.dedup();
    let told: Vec<Vec<&str>> = told.iter().map(|line| line.split(' ').collect()).collect();
    let images: Vec<&str> = told.iter().map(|line| line[0]).collect();
    assert_eq!(images, ["v1", "v2", "v3", "v2"]);
    assert_eq!(told[0], ["v1", "1", "0"]);
    // Each has learned from its versions that it is the new one and that another one still serves.
    for (before, after) in told.iter().zip(told.iter().skip(1)) {
        let [old, new, other] = [before[1], after[1], after[2]].map(|text| text.parse::<u64>().unwrap());
        assert!(new > other && other == old, "{before:?}, {after:?}");
    }
    Ok(())
}

mod no_request_is_lost {
    #[test]
    #[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
    fn real() {
        crate::stage::real(stringify!(no_request_is_lost), &[], super::no_request_is_lost);
    }
}
