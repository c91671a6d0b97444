use super::*;

const CONFIG: &str = "kruise-daemon-config";

/// A cluster with secrets only.
struct World {
    secrets: BTreeMap<ObjectKey, Value>,
    version: u32,
}

impl World {
    fn new() -> Self {
        Self { secrets: BTreeMap::new(), version: 0 }
    }

    fn put(&mut self, namespace: &str, name: &str, data: &str) {
        let annotations = json!({"n": "2", LAST_APPLIED: "{}"});
        self.store(json!({"metadata": {"name": name, "namespace": namespace, "labels": {"l": "1"}, "annotations": annotations},
            "type": "kubernetes.io/dockerconfigjson", "immutable": true, "data": {".dockerconfigjson": data}}));
    }

    fn store(&mut self, mut secret: Value) {
        self.version += 1;
        secret["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let name = |field: &str| secret["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = ObjectKey::new(name("namespace"), name("name"));
        if secret["metadata"]["uid"].is_null() {
            secret["metadata"]["uid"] = json!(format!("uid-{}", self.version));
        }
        self.secrets.insert(key, secret);
    }

    fn copies(&self) -> Vec<Arc<Metadata>> {
        let own = self.secrets.iter().filter(|(key, _)| key.namespace == CONFIG);
        own.map(|(_, secret)| Arc::new(serde_json::from_value(secret["metadata"].clone()).unwrap())).collect()
    }

    fn see(&self, job: &ObjectKey, names: &[String]) -> Observed {
        let copies = self.copies();
        let source = |name: &String| {
            let key = ObjectKey::new(job.namespace.clone(), name.as_str());
            let copy = copy_of(&copies, &key, job).map(|copy| Arc::new(self.secrets[&copy.key()].clone()));
            let source = self.secrets.get(&key).map(|secret| Arc::new(secret.clone()));
            (
                Text::from(name.as_str()),
                source.map_or(Source::Missing, |source| Source::Read { source, copy }),
            )
        };
        Observed { config_namespace: CONFIG.into(), sources: names.iter().map(source).collect(), copies }
    }

    fn act(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Create { object, .. } => self.store(object),
                Effect::Delete { target, .. } => {
                    let known = self.secrets.remove(&target.key).unwrap();
                    assert_eq!(known["metadata"]["resourceVersion"], json!(target.resource_version));
                }
                Effect::Patch { target, patch: Patch::Merge(change), .. } => {
                    let mut secret = self.secrets[&target.key].clone();
                    assert_eq!(secret["metadata"]["resourceVersion"], json!(target.resource_version));
                    crate::patch_model::merge(&mut secret, &change);
                    self.store(secret);
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn keep(&mut self, job: &str, names: &[&str]) -> Plan {
        let job = ObjectKey::new("ns", job);
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let plan = keep(&job, &names, &self.see(&job, &names));
        self.act(plan.effects.clone());
        plan
    }

    fn release(&mut self, job: &str) {
        let effects = release(&ObjectKey::new("ns", job), &self.copies());
        self.act(effects);
    }

    fn copied(&self) -> Vec<&Value> {
        self.secrets.iter().filter(|(key, _)| key.namespace == CONFIG).map(|(_, secret)| secret).collect()
    }

    fn users(&self) -> Vec<&str> {
        let list = |secret: &&'_ Value| secret["metadata"]["annotations"][PULL_SECRET_REFERENCES].clone();
        assert!(self.copied().iter().all(|secret| list(secret).is_string()));
        self.copied()
            .into_iter()
            .map(|secret| secret["metadata"]["annotations"][PULL_SECRET_REFERENCES].as_str().unwrap())
            .collect()
    }
}

/// IMAGES-16: the copy as the original makes it, and gone when the job is over.
#[test]
fn a_secret_is_copied_while_a_job_runs() {
    let mut world = World::new();
    world.put("ns", "s1", "YQ==");
    let plan = world.keep("job", &["s1"]);
    let copy = world.copied()[0].clone();
    let name = copy["metadata"]["name"].as_str().unwrap().to_owned();
    let digits = name.strip_prefix("s1-").unwrap();
    assert!(digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name}");
    assert_eq!(copy["type"], "kubernetes.io/dockerconfigjson");
    assert_eq!(copy["data"], json!({".dockerconfigjson": "YQ=="}));
    assert_eq!(copy["immutable"], Value::Null);
    assert_eq!(copy["metadata"]["labels"], json!({"l": "1"}));
    assert_eq!(
        copy["metadata"]["annotations"],
        json!({"n": "2", "imagepulljobs.kruise.io/source-key": "ns/s1", "imagepulljobs.kruise.io/references": "ns/job",
            "imagepulljobs.kruise.io/mode": "batch"})
    );
    assert_eq!(
        plan.references,
        [PullSecret { namespace: CONFIG.into(), name: name.as_str().into(), mode: "batch".into() }]
    );
    let again = world.keep("job", &["s1"]);
    assert_eq!((again.effects, again.references), (vec![], plan.references), "nothing is left to do");
    world.release("job");
    assert!(world.copied().is_empty());
}

/// IMAGES-17
#[test]
fn jobs_share_one_copy_and_the_last_one_deletes_it() {
    let mut world = World::new();
    world.put("ns", "s1", "YQ==");
    world.keep("two", &["s1"]);
    world.keep("one", &["s1"]);
    assert_eq!(world.users(), ["ns/one,ns/two"]);
    world.release("one");
    assert_eq!(world.users(), ["ns/two"]);
    world.release("one");
    world.release("two");
    assert!(world.copied().is_empty());
}

/// IMAGES-17: two jobs that begin at once, before either sees what the other wrote, make the same copy.
#[test]
fn the_name_of_a_copy_follows_from_its_source() {
    let mut world = World::new();
    world.put("ns", "s1", "YQ==");
    let names = ["s1".to_owned()];
    let name = |job: &str| {
        let job = ObjectKey::new("ns", job);
        keep(&job, &names, &world.see(&job, &names)).references[0].name.clone()
    };
    assert_eq!(name("one"), name("two"));
    let taken = name("one");
    world.store(json!({"metadata": {"namespace": CONFIG, "name": taken}}));
    assert_ne!(world.keep("one", &["s1"]).references[0].name, taken, "something else has that name");
}

/// IMAGES-18
#[test]
fn a_copy_follows_its_source() {
    let mut world = World::new();
    world.put("ns", "s1", "YQ==");
    world.keep("job", &["s1"]);
    world.put("ns", "s1", "Yg==");
    world.keep("job", &["s1"]);
    assert_eq!(world.copied()[0]["data"], json!({".dockerconfigjson": "Yg=="}));
    let key = ObjectKey::new("ns", "s1");
    world.secrets.get_mut(&key).unwrap()["type"] = json!("Opaque");
    world.keep("job", &["s1"]);
    assert!(world.copied().is_empty(), "a type cannot be changed");
    world.keep("job", &["s1"]);
    assert_eq!(world.copied()[0]["type"], "Opaque");
}

/// IMAGES-19
#[test]
fn a_secret_that_is_missing_is_left_out_until_it_comes() {
    let mut world = World::new();
    let plan = world.keep("job", &["s1"]);
    assert_eq!((plan.references, plan.missing, plan.effects), (vec![], vec!["s1".into()], vec![]));
    world.put("ns", "s1", "YQ==");
    assert_eq!(world.keep("job", &["s1"]).references.len(), 1);
    assert_eq!(world.users(), ["ns/job"]);
}

/// IMAGES-20
#[test]
fn a_job_where_daemons_may_read_needs_no_copy() {
    let mut world = World::new();
    world.put(CONFIG, "s1", "YQ==");
    let job = ObjectKey::new(CONFIG, "job");
    let names = ["s1".to_owned()];
    let plan = keep(&job, &names, &world.see(&job, &names));
    let own = PullSecret { namespace: CONFIG.into(), name: "s1".into(), mode: Text::default() };
    assert_eq!((plan.references, plan.effects), (vec![own], vec![]));
}

#[test]
fn of_several_copies_the_one_that_lists_the_job_is_used_and_the_others_are_left() {
    let mut world = World::new();
    world.put("ns", "s1", "YQ==");
    let mut old = |name: &str, users: &str| {
        world.store(json!({"metadata": {"namespace": CONFIG, "name": name, "annotations": {
            PULL_SECRET_SOURCE_KEY: "ns/s1", PULL_SECRET_REFERENCES: users}},
            "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "YQ=="}}));
    };
    old("s1-aaaaaa", "ns/other");
    old("s1-bbbbbb", "ns/job");
    let plan = world.keep("job", &["s1"]);
    assert_eq!(plan.references[0].name, "s1-bbbbbb");
    assert_eq!(plan.references[0].mode, "", "an old copy has no mode");
    assert_eq!(plan.effects, []);
    assert_eq!(world.keep("new", &["s1"]).references[0].name, "s1-aaaaaa");
    assert_eq!(world.users(), ["ns/new,ns/other", "ns/job"]);
}

#[test]
fn a_secret_that_is_not_wanted_any_more_is_left() {
    let mut world = World::new();
    world.put("ns", "s1", "YQ==");
    world.keep("job", &["s1"]);
    world.keep("job", &[]);
    assert!(world.copied().is_empty());
}

#[test]
fn a_long_name_makes_room_for_the_digits() {
    let source = ObjectKey::new("ns", "x".repeat(253));
    assert_eq!(free_name(&source, &[]).len(), 253);
}
