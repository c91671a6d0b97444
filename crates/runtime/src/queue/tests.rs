use std::time::Duration;

use super::*;

fn queue() -> Queue {
    let options =
        Options { base: Duration::from_secs(1), max: Duration::from_secs(5), qps: 1000.0, burst: 1000 };
    Queue::new("test", options, None)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

async fn next(queue: &Queue) -> String {
    queue.next().await.expect("open").name.as_str().to_owned()
}

async fn nothing_for(queue: &Queue, time: Duration) -> bool {
    tokio::time::timeout(time, queue.next()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_once_and_comes_again_when_it_changed_while_worked_on() {
    let queue = queue();
    queue.add(key("a"));
    queue.add(key("a"));
    assert_eq!(next(&queue).await, "a");
    queue.add(key("a"));
    assert!(nothing_for(&queue, Duration::from_secs(60)).await, "never worked on twice at once");
    queue.succeeded(&key("a"));
    assert_eq!(next(&queue).await, "a");
    queue.succeeded(&key("a"));
    assert!(nothing_for(&queue, Duration::from_secs(60)).await);
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_first_list_wait_behind_those_that_changed() {
    let queue = queue();
    for name in ["a", "b", "c"] {
        queue.add_with(key(name), Priority::Low);
    }
    queue.add(key("d"));
    queue.add(key("c"));
    let mut order = String::new();
    for _ in 0..4 {
        order.push_str(&next(&queue).await);
    }
    assert_eq!(order, "dcab");
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn failures_push_a_key_back_until_it_succeeds() {
    let queue = queue();
    queue.add(key("a"));
    let mut delays = Vec::new();
    for _ in 0..4 {
        next(&queue).await;
        delays.push(queue.failed(&key("a"), Duration::ZERO).as_secs());
    }
    assert_eq!(delays, [1, 2, 4, 5]);
    let before = Instant::now();
    next(&queue).await;
    assert_eq!(before.elapsed().as_secs(), 5);
    queue.succeeded(&key("a"));
    queue.add(key("a"));
    next(&queue).await;
    assert_eq!(queue.failed(&key("a"), Duration::ZERO).as_secs(), 1);
    assert_eq!(next(&queue).await, "a");
    assert_eq!(queue.failed(&key("a"), Duration::from_secs(30)).as_secs(), 30, "as the server asked");
}

/// A quota that is raised would otherwise be noticed after minutes: the pods that it allowed have just started.
#[tokio::test(start_paused = true)]
async fn failures_while_news_come_in_do_not_add_up() {
    let queue = queue();
    queue.add(key("a"));
    next(&queue).await;
    assert_eq!(queue.failed(&key("a"), Duration::ZERO).as_millis(), 1000);
    for left in [900, 800, 700] {
        tokio::time::sleep(Duration::from_millis(100)).await;
        queue.add(key("a"));
        next(&queue).await;
        assert_eq!(queue.failed(&key("a"), Duration::ZERO).as_millis(), left);
    }
    let before = Instant::now();
    next(&queue).await;
    assert_eq!(before.elapsed().as_millis(), 700);
    assert_eq!(queue.failed(&key("a"), Duration::ZERO).as_millis(), 2000, "tried again in time");
}

#[tokio::test(start_paused = true)]
async fn of_several_delays_the_earliest_counts() {
    let queue = queue();
    queue.add_after(key("a"), Duration::from_secs(10));
    queue.add_after(key("a"), Duration::from_secs(3));
    queue.add_after(key("a"), Duration::from_secs(20));
    let before = Instant::now();
    next(&queue).await;
    assert_eq!(before.elapsed().as_secs(), 3);
    queue.succeeded(&key("a"));
    assert!(nothing_for(&queue, Duration::from_secs(60)).await);
}

#[tokio::test(start_paused = true)]
async fn many_failing_keys_share_one_bucket() {
    let options = Options { base: Duration::from_millis(5), qps: 10.0, burst: 2, ..Options::default() };
    let queue = Queue::new("test", options, None);
    for name in 0..5 {
        queue.failed(&key(&name.to_string()), Duration::ZERO);
    }
    let began = Instant::now();
    let mut times = Vec::new();
    for _ in 0..5 {
        next(&queue).await;
        times.push(began.elapsed().as_millis());
    }
    assert_eq!(times, [5, 5, 105, 205, 305]);
}

/// A token that a key took at its failure would be lost to all others for the minutes until it is tried again.
#[tokio::test(start_paused = true)]
async fn a_key_in_back_off_holds_no_token() {
    let options = Options { qps: 1.0, burst: 1, ..Options::default() };
    let queue = Queue::new("test", options, None);
    for name in 0..300 {
        queue.failed(&key(&format!("bad-{name}")), Duration::from_secs(600));
    }
    queue.failed(&key("soon"), Duration::ZERO);
    queue.conflicted(&key("conflict"));
    let began = Instant::now();
    assert_eq!([next(&queue).await, next(&queue).await], ["conflict", "soon"]);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn keys_that_failed_come_behind_all_others_but_are_not_forgotten() {
    let queue = queue();
    for name in 0..3 {
        queue.failed(&key(&format!("bad-{name}")), Duration::ZERO);
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    queue.add(key("bad-2"));
    for name in 0..6 {
        queue.add(key(&format!("good-{name}")));
    }
    let mut order = Vec::new();
    while let Some(Some(key)) = futures::FutureExt::now_or_never(queue.next()) {
        order.push(key.name.as_str().to_owned());
    }
    let expected = ["good-0", "good-1", "good-2", "good-3", "bad-2", "good-4", "good-5", "bad-0", "bad-1"];
    assert_eq!(order, expected);
    queue.succeeded(&key("bad-1"));
    queue.add(key("good-0"));
    queue.add(key("bad-1"));
    queue.set_aside(&key("good-0"));
    assert_eq!(next(&queue).await, "bad-1", "a key that succeeded is like all others");
}

#[tokio::test(start_paused = true)]
async fn namespaces_take_turns() {
    let queue = queue();
    for name in ["a", "b", "c"] {
        queue.add(ObjectKey::new("crowded", name));
    }
    queue.add(ObjectKey::new("calm", "x"));
    let mut order = String::new();
    for _ in 0..4 {
        order.push_str(&next(&queue).await);
    }
    assert_eq!(order, "axbc");
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_worker_that_is_gone_come_again() {
    let queue = queue();
    queue.add(key("a"));
    assert_eq!(next(&queue).await, "a");
    assert!(nothing_for(&queue, Duration::from_secs(60)).await);
    queue.reclaim();
    assert_eq!(next(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_hands_out_nothing() {
    let queue = queue();
    queue.add(key("a"));
    queue.close();
    assert_eq!(queue.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_rests_comes_once_for_all_that_happened_meanwhile() {
    let queue = Queue::new("test", Options::default(), None);
    let (web, other) = (ObjectKey::new("a", "web"), ObjectKey::new("a", "other"));
    queue.add(web.clone());
    assert_eq!(queue.next().await, Some(web.clone()));
    queue.rest(&web, Duration::from_millis(100));
    queue.add(web.clone());
    queue.succeeded(&web);
    queue.add(web.clone());
    queue.add_after(web.clone(), Duration::from_millis(30));
    queue.add(other.clone());
    let began = Instant::now();
    assert_eq!(queue.next().await, Some(other.clone()), "others do not wait for it");
    queue.succeeded(&other);
    assert_eq!(queue.next().await, Some(web.clone()));
    assert_eq!(began.elapsed(), Duration::from_millis(100));
    queue.succeeded(&web);
    assert!(queue.is_empty());
    queue.add(web.clone());
    assert_eq!(queue.next().await, Some(web), "and is rested then");
    assert_eq!(began.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_held_does_not_come_whoever_adds_it() {
    let queue = queue();
    queue.add(key("a"));
    assert_eq!(next(&queue).await, "a");
    queue.hold(&key("a"));
    queue.add(key("a"));
    queue.add_after(key("a"), Duration::from_secs(3));
    queue.set_aside(&key("a"));
    assert!(nothing_for(&queue, Duration::from_secs(60)).await);
    queue.release(&key("a"));
    queue.add(key("a"));
    assert_eq!(next(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_bucket_tells_how_much_it_has_room_for() {
    let mut bucket = Bucket::new(30.0, 50);
    let second = Duration::from_secs(1);
    assert_eq!(bucket.room(Instant::now(), second), 80);
    for _ in 0..50 {
        bucket.take(Instant::now());
    }
    assert_eq!(bucket.room(Instant::now(), second), 30);
    bucket.give_back();
    assert_eq!(bucket.room(Instant::now(), second), 31);
    for _ in 0..100 {
        bucket.take(Instant::now());
    }
    assert_eq!(bucket.room(Instant::now(), second), 1, "others have taken what comes next");
    assert_eq!(Bucket::new(0.0, 1).room(Instant::now(), second), usize::MAX, "no rate, no limit");
}

/// Times come from fields that people write, and the largest number means "never".
#[tokio::test(start_paused = true)]
async fn a_key_that_is_put_off_for_ever_still_comes_when_it_changes() {
    let queue = queue();
    queue.add_after(key("a"), Duration::MAX);
    assert!(nothing_for(&queue, Duration::from_secs(3600)).await);
    queue.add(key("a"));
    assert_eq!(next(&queue).await, "a");
    queue.rest(&key("a"), Duration::MAX);
    queue.failed(&key("a"), Duration::MAX);
    assert!(queue.is_idle());
}
