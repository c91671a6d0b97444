//! The check behind readiness.

use kruise_webhook::certificates::authority::Authority;
use kruise_webhook::listener;
use kruise_webhook::selfcheck::Check;
use tokio::task::JoinSet;

use crate::load::{serve, show, webhooks};
use crate::world::{NAME, Replica, World};

fn made() -> Replica {
    let mut replica = Replica::new();
    replica.sync(&mut World::lately());
    replica
}

#[tokio::test]
async fn readiness_tells_what_is_missing_step_by_step() {
    let mut tasks = JoinSet::new();
    let served = serve(webhooks(), &mut tasks, listener::Limits::default()).await;
    let check = Check::default();
    let error = check.ready(served.port).await.unwrap_err();
    assert_eq!(error.to_string(), "webhook controller has not initialized");

    let replica = made();
    check.trust("");
    let error = check.ready(served.port).await.unwrap_err();
    assert_eq!(error.to_string(), "the authority of the webhooks cannot be used: it holds no certificate");

    check.trust(&replica.served.as_ref().unwrap().authority);
    let error = check.ready(served.port).await.unwrap_err().to_string();
    assert!(error.starts_with("the webhooks' certificate does not hold for localhost: "), "{error}");

    show(&served, replica.served.as_ref());
    check.ready(served.port).await.unwrap();

    show(&served, made().served.as_ref());
    let error = check.ready(served.port).await.unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "only our own authority is trusted: {error}");

    served.stop.notify_one();
    while tasks.join_next().await.is_some() {}
    let error = check.ready(served.port).await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot connect to the webhooks at localhost:{}", served.port)),
        "{error}"
    );
}

/// PLATFORM-6
#[tokio::test]
async fn a_certificate_without_localhost_is_not_ready_and_the_name_is_told() {
    let now = World::lately().now;
    let authority = Authority::make(now).unwrap();
    let mut pair = authority.sign(NAME, now).unwrap();
    // The same authority, a certificate of someone who forgot `localhost`.
    let issuer = rcgen::Issuer::from_ca_cert_pem(
        &authority.certificate,
        rcgen::KeyPair::from_pem(&authority.key).unwrap(),
    )
    .unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new([NAME.to_owned()]).unwrap();
    pair.certificate = params.signed_by(&key, &issuer).unwrap().pem();
    pair.key = key.serialize_pem();

    let mut tasks = JoinSet::new();
    let served = serve(webhooks(), &mut tasks, listener::Limits::default()).await;
    show(&served, Some(&pair));
    let check = Check::default();
    check.trust(&pair.authority);
    let error = check.ready(served.port).await.unwrap_err().to_string();
    assert!(error.contains("not valid for name \"localhost\""), "{error}");
    assert!(error.contains(NAME), "what it is valid for: {error}");
    served.stop.notify_one();
    while tasks.join_next().await.is_some() {}
}

/// PLATFORM-33
#[tokio::test]
async fn checks_leave_no_sockets_behind() {
    let mut tasks = JoinSet::new();
    let served = serve(webhooks(), &mut tasks, listener::Limits::default()).await;
    let replica = made();
    show(&served, replica.served.as_ref());
    let check = Check::default();
    check.trust(&replica.served.as_ref().unwrap().authority);
    let sockets = || {
        let links = std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|entry| entry.unwrap().path().read_link().ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    };
    let before = sockets();
    let mut most = 0;
    for _ in 0..400 {
        check.ready(served.port).await.unwrap();
        most = most.max(sockets());
    }
    // The other side of the last connections may take a moment to notice, and other tests have sockets of their own.
    assert!(most < before + 60, "{before} sockets became {most} over 400 checks");
    served.stop.notify_one();
    while tasks.join_next().await.is_some() {}
}
