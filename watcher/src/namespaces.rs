//! What namespaces ask for their runs, by annotation: that nothing is collected, a longer grace,
//! more runs that stay. They can only ask for more care than the configuration takes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use hindsight_config::signed_duration;
use hindsight_run::View;

use crate::{
    cluster,
    list_watch::{Event, Limits, ListWatch},
    object::Object,
    policy::{GRACE, KEEP_LAST, PAUSE, Tightening},
    queue::Work,
    shared::Shared,
};

/// After so long a watch of namespaces is begun anew: what a silent connection keeps back is then at
/// most so old.
const WATCH_LASTS: Duration = Duration::from_mins(1);
/// So long what is known counts without news. Each begin of a watch is news.
const COUNTS: Duration = Duration::from_mins(5);

/// What is known of them.
#[derive(Debug, Default)]
pub(crate) struct Namespaces(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Until when what is known counts, unless the API server says more; `None` while it does not.
    until: Option<Instant>,
    /// Those that ask for something.
    asking: HashMap<String, Tightening>,
}

impl Namespaces {
    /// What `namespace` asks for; `None` while that is not known, or was not heard of for long.
    pub(crate) fn ask(&self, namespace: &str) -> Option<Tightening> {
        let known = self.lock();
        let asked = known.asking.get(namespace).copied().unwrap_or_default();
        let is_known = known.until.is_some_and(|until| Instant::now() < until);
        is_known.then_some(asked)
    }

    /// All is known up to now, and counts for a while. Whether it did not before.
    fn confirm(&self, lasts: Duration) -> bool {
        let now = Instant::now();
        let before = self.lock().until.replace(now + lasts);
        before.is_none_or(|until| until <= now)
    }

    /// Nothing is known for certain. Whether it was before.
    fn doubt(&self) -> bool {
        self.lock().until.take().is_some()
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
    let tuning = &shared.config.tuning;
    let only = shared.config.namespace.as_ref();
    let only = only.map(|name| format!("metadata.name={name}"));
    let limits = Limits::from(tuning).watch_lasts(WATCH_LASTS);
    let objects = ListWatch::new(shared.cluster.namespaces(), limits);
    let mut objects = objects.fields(only.as_deref());
    let (mut failures, mut is_said) = (0, false);
    let mut is_news = true;
    let mut listed: HashMap<String, Tightening> = HashMap::new();
    loop {
        let event = match objects.next().await {
            Ok(event) => event,
            Err(failure) => {
                failures += 1;
                let was_known = shared.namespaces.doubt();
                // One watch that ends badly is soon replaced.
                if !is_said && (!was_known || failure.is_forbidden()) && !failure.is_expired() {
                    (is_said, is_news) = (true, true);
                    error!(
                        "namespaces cannot be watched, so nothing is collected: {failure}; grant \
                         list and watch of namespaces, or set --namespace-overrides=false"
                    );
                }
                tokio::time::sleep(tuning.cluster.after(failures)).await;
                continue;
            }
        };
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => listed.extend(read(object)),
            Event::InitDone => replace(shared, std::mem::take(&mut listed)),
            Event::Open | Event::Bookmark => {}
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
        if objects.is_watching() {
            failures = 0;
            is_said = false;
            if shared.namespaces.confirm(COUNTS) {
                if std::mem::take(&mut is_news) {
                    info!("namespaces are known");
                }
                shared.wake_waiting();
            }
        }
    }
}

fn replace(shared: &Shared, listed: HashMap<String, Tightening>) {
    let before: Vec<String> = shared.namespaces.lock().asking.keys().cloned().collect();
    for name in before.iter().filter(|name| !listed.contains_key(*name)) {
        set(shared, name, Tightening::default());
    }
    for (name, asked) in listed {
        set(shared, &name, asked);
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
        match signed_duration(text) {
            Ok(span) => grace = Some(span),
            Err(why) => wrong(GRACE, &why.to_string()),
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

    #[tokio::test(start_paused = true)]
    async fn what_namespaces_asked_for_counts_only_as_long_as_it_is_confirmed() {
        let namespaces = Namespaces::default();
        assert_eq!(namespaces.ask("ci"), None);
        assert!(namespaces.confirm(COUNTS));
        assert_eq!(namespaces.ask("ci"), Some(Tightening::default()));
        tokio::time::advance(COUNTS / 2).await;
        assert!(!namespaces.confirm(COUNTS));
        tokio::time::advance(COUNTS).await;
        assert_eq!(namespaces.ask("ci"), None, "it is too old");
        assert!(namespaces.confirm(COUNTS));
        assert!(namespaces.doubt());
        assert_eq!(namespaces.ask("ci"), None, "the watch is broken");
    }

    #[test]
    fn what_cannot_be_read_keeps_all_runs() {
        assert!(asked(json!({"hindsight.dev/grace": "soon"})).paused);
        assert!(asked(json!({"hindsight.dev/keep-last": "-1"})).paused);
    }
}
