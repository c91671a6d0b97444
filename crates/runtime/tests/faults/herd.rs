//! A small controller to break things with: a parent ConfigMap wants a number of children with its content.
//!
//! Children have random names, so that a repeated create makes one too many instead of being refused.

use std::time::Duration;

use kruise_core::{
    effect::{Effect, Patch, Target},
    object::{CONFIG_MAP, ObjectKey, ObjectRef},
    text::Text,
};
use kruise_runtime::{
    cache::{self, Cache, Whole},
    clock::Clock,
    controller::{Controller, Environment, Next},
    effects,
    events::Events,
    lease::Fence,
    metrics::{Framework, Registry},
    queue,
    random::Random,
    scope::Stop,
};
use kruise_sim::Sim;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Rules that can be broken on purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Wait until own writes can be read.
    pub(crate) freshness: bool,
}

/// The controller as a process.
pub(crate) struct Process {
    pub(crate) metrics: Framework,
    _tasks: JoinSet<()>,
}

/// What a child looks like to the plan.
struct Child {
    name: Text,
    uid: Text,
    content: String,
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The pure half: more children, fewer children, or another content; and the status as an annotation.
fn plan(parent: &Whole, children: &[Child], random: &Random) -> Vec<Effect> {
    let wanted: usize = text(&parent.object, "/data/children").parse().unwrap_or(0);
    let content = text(&parent.object, "/data/content");
    let namespace = parent.metadata.namespace.clone();
    let key = |name: &Text| ObjectKey { namespace: namespace.clone(), name: name.clone() };
    let target = |child: &Child| Target::with_uid(CONFIG_MAP, key(&child.name), child.uid.clone());
    let owner =
        ObjectRef { resource: CONFIG_MAP, key: parent.metadata.key(), uid: parent.metadata.uid.clone() };
    let mut effects = Vec::new();
    if children.len() < wanted {
        effects.extend((children.len()..wanted).map(|_| Effect::Create {
            resource: CONFIG_MAP,
            namespace: namespace.clone(),
            object: json!({
                "metadata": {
                    "name": format!("{}-{:08x}", parent.metadata.name, random.next_u64() >> 32),
                    "labels": {"role": "child"},
                    "ownerReferences": [owner.controller_reference()],
                },
                "data": {"content": content},
            }),
        }));
    } else if children.len() > wanted {
        let surplus = children.iter().skip(wanted);
        effects.extend(surplus.map(|child| Effect::Delete {
            target: target(child),
            grace: None,
            follows: false,
        }));
    } else {
        let outdated = children.iter().filter(|child| child.content != content);
        effects.extend(outdated.map(|child| Effect::Patch {
            target: target(child),
            subresource: None,
            patch: Patch::Merge(json!({"data": {"content": content}})),
        }));
    }
    let updated = children.iter().filter(|child| child.content == content).count();
    let status = format!("{updated}/{}", children.len());
    if text(&parent.object, "/metadata/annotations/status") != status {
        effects.push(Effect::Patch {
            target: Target::with_uid(CONFIG_MAP, parent.metadata.key(), parent.metadata.uid.clone())
                .at_version(parent.metadata.resource_version.clone()),
            subresource: None,
            patch: Patch::Merge(json!({"metadata": {"annotations": {"status": status}}})),
        });
    }
    effects
}

impl Process {
    /// Starts the process, as after a crash: it knows nothing.
    pub(crate) fn start(sim: &Sim, random: &Random, resync: Option<Duration>, rules: Rules) -> Self {
        let registry = Registry::default();
        let metrics = Framework::new(&registry);
        let now = *sim.clock();
        let clock = Clock::from_fn(move || now.now());
        let client = sim.faulty_client();
        let maps = Cache::<Whole>::new(CONFIG_MAP).with_index("owner", |object, texts| {
            texts.extend(object.metadata.controller().map(|owner| owner.uid.clone()));
        });
        let environment = Environment {
            client: client.clone(),
            clock: clock.clone(),
            random: random.clone(),
            metrics: metrics.clone(),
            events: Events::new(clock, random.clone(), metrics.clone()),
            fence: Fence::default(),
            patience: Duration::from_secs(60),
            writes: effects::Options::default(),
        };
        let mut builder = Controller::new("herd", &environment)
            .queue(queue::Options { max: Duration::from_secs(10), ..queue::Options::default() });
        if rules.freshness {
            builder = builder.follow(&maps);
        }
        let all = maps.clone();
        let controller = builder
            .wake(&maps, |change, wake| {
                let Some(object) = change.latest() else { return };
                match object.metadata.controller() {
                    Some(owner) => {
                        let namespace = object.metadata.namespace.clone();
                        wake(ObjectKey { namespace, name: owner.name.clone() });
                    }
                    None if object.metadata.labels.contains("herd") => wake(change.key.clone()),
                    None => {}
                }
            })
            .reconcile(move |context, key| {
                let all = all.clone();
                async move {
                    let Some(parent) = all.get(&key) else { return Ok(Next::Forget) };
                    let children: Vec<Child> = all
                        .by_index("owner", &parent.metadata.uid)
                        .iter()
                        .filter(|child| !child.metadata.is_deleting())
                        .map(|child| Child {
                            name: child.metadata.name.clone(),
                            uid: child.metadata.uid.clone(),
                            content: text(&child.object, "/data/content"),
                        })
                        .collect();
                    let effects = plan(&parent, &children, context.random());
                    context.act(&key, &effects).await?;
                    Ok(Next::Done)
                }
            });
        let mut tasks = JoinSet::new();
        let options = cache::Options { resync, ..cache::Options::default() };
        tasks.spawn(async move { maps.run(client, options).await });
        tasks.spawn(controller.run(Stop::default(), Duration::from_secs(5)));
        Self { metrics, _tasks: tasks }
    }

    /// How many reconciles there were.
    pub(crate) fn reconciles(&self) -> f64 {
        let results = ["success", "error", "requeue", "requeue_after"];
        results.iter().map(|result| self.metrics.reconcile_total.value(&["herd", result])).sum()
    }
}
