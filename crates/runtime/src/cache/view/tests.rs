use kruise_core::object::ObjectKey;

use super::*;

#[derive(Clone, Debug, Deserialize)]
struct Numbered {
    number: u8,
    #[serde(default)]
    status: Option<Counted>,
}

#[derive(Clone, Debug, Deserialize)]
struct Counted {
    count: Option<u8>,
}

fn guarded(text: &str) -> (Guarded<Numbered>, Vec<Unread>) {
    let Read { view, unread } = read::<Guarded<Numbered>>(text);
    (view.expect("it has a name"), unread)
}

#[test]
fn a_broken_object_is_kept_with_what_is_wrong() {
    let (good, unread) = guarded(r#"{"metadata":{"name":"a","managedFields":[]},"number":7}"#);
    assert_eq!((good.object.expect("good").number, unread.len()), (7, 0));
    let (bad, unread) = guarded(r#"{"metadata":{"name":"b"},"number":"many"}"#);
    assert_eq!(bad.metadata.name, "b");
    assert!(bad.metadata.unreadable);
    assert!(bad.object.expect_err("bad").contains("many"));
    assert_eq!(unread[0].path.to_string(), "number");
}

#[test]
fn of_one_of_our_kinds_a_status_is_read_as_far_as_it_goes() {
    let (read, unread) = guarded(r#"{"metadata":{"name":"a"},"number":7,"status":{"count":"x"}}"#);
    let object = read.object.expect("its spec can be read");
    assert_eq!(object.status.as_ref().expect("it is there").count, None);
    assert_eq!(unread.len(), 1);
    assert!(!read.metadata.unreadable);
    let (read, _) = guarded(r#"{"metadata":{"name":"a","labels":{"a":1}},"number":7}"#);
    assert!(read.object.is_err(), "what it is called by is not known");
}

/// What is left of an object of each sort.
fn every<V: View>(text: &str) -> Option<V> {
    read::<V>(text).view
}

#[test]
fn whatever_is_stored_is_read_or_left_out() {
    for text in
        ["7", "null", "[]", r#""x""#, "{}", r#"{"metadata":5}"#, r#"{"metadata":{"name":{}}}"#, "1e999"]
    {
        assert!(every::<Pod>(text).is_none(), "{text}");
        assert!(every::<Node>(text).is_none(), "{text}");
        assert!(every::<NodeImage>(text).is_none(), "{text}");
        assert!(every::<Revision>(text).is_none(), "{text}");
        assert!(every::<Plain>(text).is_none(), "{text}");
        assert!(every::<Whole>(text).is_none(), "{text}");
        assert!(every::<Guarded<Numbered>>(text).is_none(), "{text}");
        assert!(!read::<Pod>(text).unread.is_empty(), "{text}");
    }
}

#[test]
fn an_object_of_which_nothing_fits_keeps_its_name_and_uid() {
    fn check<V: View>() {
        let labels: serde_json::Map<String, Value> =
            (0..100).map(|index| (format!("l{index}"), Value::from(index))).collect();
        let text = serde_json::json!({"metadata": {"namespace": "ns", "name": "a", "uid": "u",
            "resourceVersion": "5", "labels": {"a": 5}}, "spec": labels, "status": "x", "data": 5, "revision": "x"});
        let Read { view, unread } = read::<V>(&text.to_string());
        let view = view.expect("it has a name");
        let metadata = view.metadata();
        assert_eq!(metadata.key(), ObjectKey::new("ns", "a"));
        assert_eq!((metadata.uid.as_str(), metadata.resource_version.as_str()), ("u", "5"));
        assert!(metadata.unreadable && !unread.is_empty());
    }
    check::<Pod>();
    check::<Node>();
    check::<NodeImage>();
    check::<Revision>();
    check::<Job>();
    check::<Plain>();
    check::<Whole>();
    check::<Guarded<Numbered>>();
}

/// Found by `cargo xtask fuzz objects --seed 2`.
#[test]
fn an_object_with_hundreds_of_fields_that_do_not_fit_keeps_its_name_and_labels() {
    let many: serde_json::Map<String, Value> =
        (0..500).map(|index| (format!("k{index}"), Value::from(index))).collect();
    let text = serde_json::json!({"metadata": {"name": "a", "labels": {"app": "web"}, "annotations": many},
        "number": 7});
    let (view, unread) = guarded(&text.to_string());
    let app = view.metadata.labels.get("app").map(ToString::to_string);
    assert_eq!((view.metadata.name.as_str(), app.as_deref()), ("a", Some("web")));
    assert!(view.metadata.unreadable && view.object.is_err());
    assert!(unread.iter().any(|field| field.path.to_string() == "metadata.annotations"), "{unread:?}");
}

#[test]
fn a_time_beyond_the_calendar_hides_nothing() {
    let text = r#"{"metadata":{"name":"n","uid":"u","labels":{"a":"b"}},"status":{"conditions":[
        {"type":"Ready","status":"True","lastTransitionTime":"9999-12-31T23:59:59Z"}]}}"#;
    let Read { view, unread } = read::<Node>(text);
    let node = view.expect("it has a name");
    assert_eq!(node.status.ready_since, Some(jiff::Timestamp::MAX));
    assert!(unread.is_empty() && !node.metadata.unreadable);
    let revision = r#"{"metadata":{"name":"r","creationTimestamp":"9999-12-31T23:59:59Z"},"revision":3}"#;
    let revision = read::<Revision>(revision).view.expect("it has a name");
    assert_eq!((revision.number, revision.metadata.creation_timestamp), (3, Some(jiff::Timestamp::MAX)));
}

#[test]
fn a_view_that_panics_is_an_object_that_cannot_be_read() {
    #[derive(Clone, Debug)]
    struct Touchy;
    impl<'de> Deserialize<'de> for Touchy {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("never again");
        }
    }
    let Read { view, unread } = read::<Guarded<Touchy>>(r#"{"metadata":{"name":"a"}}"#);
    let view = view.expect("it has a name");
    assert!(view.metadata.unreadable && view.object.is_err());
    assert!(unread[0].why.contains("panicked"));
}
