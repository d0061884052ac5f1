//! What namespaces ask for their runs, by annotation: that nothing is collected, a longer grace,
//! more runs that stay. They can only ask for more care than the configuration takes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use hindsight_proto::run::View;

use crate::{
    cluster,
    config::texts::duration,
    object::Object,
    policy::{GRACE, KEEP_LAST, PAUSE, Tightening},
    queue::Work,
    shared::Shared,
};

/// What is known of them.
#[derive(Debug, Default)]
pub(crate) struct Namespaces(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    is_listed: bool,
    /// Those that ask for something.
    asking: HashMap<String, Tightening>,
}

impl Namespaces {
    /// What `namespace` asks for; `None` while that is not known.
    pub(crate) fn ask(&self, namespace: &str) -> Option<Tightening> {
        let known = self.lock();
        let asked = known.asking.get(namespace).copied().unwrap_or_default();
        known.is_listed.then_some(asked)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows what namespaces ask for until `stop`.
pub(crate) async fn follow(shared: Arc<Shared>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = run(&shared) => {}
    }
}

async fn run(shared: &Shared) {
    let mut config = watcher::Config::default().page_size(shared.config.tuning.page_size);
    if let Some(only) = &shared.config.namespace {
        config = config.fields(&format!("metadata.name={only}"));
    }
    let mut stream = std::pin::pin!(watcher(shared.cluster.namespaces(), config));
    let mut failures = 0;
    let mut listed: HashMap<String, Tightening> = HashMap::new();
    while let Some(event) = stream.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                failures += 1;
                if let Some(refused) = cluster::refusal(&error).filter(|_| failures == 1) {
                    error!(
                        "namespaces cannot be watched, so nothing is collected: {refused}; allow \
                         list and watch of namespaces, or set --namespace-overrides=false"
                    );
                }
                tokio::time::sleep(shared.config.tuning.cluster.after(failures)).await;
                continue;
            }
        };
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => {
                if let Some((name, asked)) = read(object) {
                    listed.insert(name, asked);
                }
            }
            Event::InitDone => {
                failures = 0;
                replace(shared, std::mem::take(&mut listed));
            }
            Event::Apply(object) => {
                if let Some((name, asked)) = read(object) {
                    set(shared, &name, asked);
                }
            }
            Event::Delete(object) => {
                if let Some((name, _)) = read(object) {
                    set(shared, &name, Tightening::default());
                }
            }
        }
    }
}

fn replace(shared: &Shared, listed: HashMap<String, Tightening>) {
    let (was_listed, before) = {
        let mut known = shared.namespaces.lock();
        let was_listed = std::mem::replace(&mut known.is_listed, true);
        (was_listed, known.asking.keys().cloned().collect::<Vec<_>>())
    };
    for name in before.iter().filter(|name| !listed.contains_key(*name)) {
        set(shared, name, Tightening::default());
    }
    for (name, asked) in listed {
        set(shared, &name, asked);
    }
    if !was_listed {
        info!("namespaces are known");
        let waiting = shared.ledger().waiting();
        for uid in waiting {
            shared.push(&uid, Work::default());
        }
    }
}

/// Notes what a namespace asks for; its runs are looked at again if that changed.
fn set(shared: &Shared, name: &str, asked: Tightening) {
    let before = {
        let mut known = shared.namespaces.lock();
        match asked == Tightening::default() {
            true => known.asking.remove(name),
            false => known.asking.insert(name.to_owned(), asked),
        }
    };
    if before.unwrap_or_default() == asked {
        return;
    }
    info!(namespace = name, "namespace {name} asks for {asked:?}");
    let there = shared.ledger().in_namespace(name);
    for uid in there {
        shared.push(&uid, Work::default());
    }
}

/// A namespace that asks for something that cannot be read keeps all of its runs.
fn read(object: Object) -> Option<(String, Tightening)> {
    let object = object.into_value(&cluster::namespace());
    let view = View::new(&object);
    let name = view.name()?.to_owned();
    let mut asked = Tightening {
        paused: view.annotation(PAUSE).is_some_and(|text| text != "false"),
        ..Tightening::default()
    };
    let mut wrong = |key: &str, why: &str| {
        warn!("annotation {key} of namespace {name}: {why}; nothing is collected there");
        asked.paused = true;
    };
    let mut grace = None;
    if let Some(text) = view.annotation(GRACE) {
        match duration(text) {
            Ok(span) => grace = Some(span),
            Err(why) => wrong(GRACE, &why),
        }
    }
    let mut keep_last = 0;
    if let Some(text) = view.annotation(KEEP_LAST) {
        match text.parse() {
            Ok(number) => keep_last = number,
            Err(_) => wrong(KEEP_LAST, "want a number"),
        }
    }
    asked.grace = grace;
    asked.keep_last = keep_last;
    Some((name, asked))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::*;

    fn asked(annotations: Value) -> Tightening {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "ci", "annotations": annotations}});
        let object = serde_json::from_value(namespace).unwrap();
        read(object).unwrap().1
    }

    #[test]
    fn a_namespace_asks_by_annotation() {
        assert_eq!(asked(json!({"other": "x"})), Tightening::default());
        let all = json!({"hindsight.dev/pause": "true", "hindsight.dev/grace": "2h",
            "hindsight.dev/keep-last": "5"});
        let wanted = Tightening {
            paused: true,
            grace: Some(SignedDuration::from_hours(2)),
            keep_last: 5,
        };
        assert_eq!(asked(all), wanted);
        assert!(!asked(json!({"hindsight.dev/pause": "false"})).paused);
    }

    #[test]
    fn what_cannot_be_read_keeps_all_runs() {
        assert!(asked(json!({"hindsight.dev/grace": "soon"})).paused);
        assert!(asked(json!({"hindsight.dev/keep-last": "-1"})).paused);
    }
}
