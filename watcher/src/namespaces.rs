//! What namespaces ask for their runs, by annotation: that nothing is collected, a longer grace,
//! more runs that stay. They can only ask for more care than the configuration takes.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tracing::warn;

use hindsight_config::signed_duration;
use hindsight_run::View;

use crate::{
    cluster,
    object::Object,
    policy::{GRACE, KEEP_LAST, PAUSE, Tightening},
};

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
    pub(crate) fn confirm(&self, lasts: Duration) -> bool {
        let now = Instant::now();
        let before = self.lock().until.replace(now + lasts);
        before.is_none_or(|until| until <= now)
    }

    /// Nothing is known for certain. Whether it was before.
    pub(crate) fn doubt(&self) -> bool {
        self.lock().until.take().is_some()
    }

    /// Notes what a namespace asks for. Whether that is news.
    pub(crate) fn set(&self, name: &str, asked: Tightening) -> bool {
        let mut known = self.lock();
        let before = match asked == Tightening::default() {
            true => known.asking.remove(name),
            false => known.asking.insert(name.to_owned(), asked),
        };
        before.unwrap_or_default() != asked
    }

    /// The namespaces that ask for something.
    pub(crate) fn asking(&self) -> Vec<String> {
        self.lock().asking.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A namespace that asks for something that cannot be read keeps all of its runs.
pub(crate) fn read(object: Object) -> Option<(String, Tightening)> {
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

    const COUNTS: Duration = Duration::from_mins(5);

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
