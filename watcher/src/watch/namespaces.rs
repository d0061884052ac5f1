//! Following what namespaces ask for: see [`crate::namespaces`].

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::{
    list_watch::{Event, Limits, ListWatch},
    namespaces::read,
    policy::Tightening,
    shared::Shared,
};

/// After so long a watch of namespaces is begun anew: what a silent connection keeps back is then at
/// most so old.
const WATCH_LASTS: Duration = Duration::from_mins(1);
/// So long what is known counts without news. Each begin of a watch is news.
const COUNTS: Duration = Duration::from_mins(5);

/// Follows what namespaces ask for until `stop`.
pub(crate) async fn follow(shared: Arc<Shared>, stop: CancellationToken) {
    stop.run_until_cancelled(run(&shared)).await;
}

async fn run(shared: &Shared) {
    let tuning = &shared.config.tuning;
    let only = shared.config.namespace.as_ref();
    let only = only.map(|name| format!("metadata.name={name}"));
    let limits = Limits::from(tuning).watch_lasts(WATCH_LASTS);
    let objects = ListWatch::new(shared.cluster.api.namespaces(), limits);
    let mut objects = objects.fields(only.as_deref());
    let (mut failures, mut is_said) = (0, false);
    let mut is_news = true;
    let mut listed: HashMap<String, Tightening> = HashMap::new();
    loop {
        let event = match objects.next().await {
            Ok(event) => event,
            Err(failure) => {
                failures += 1;
                let was_known = shared.cluster.namespaces.doubt();
                // One watch that ends badly is soon replaced.
                if !is_said && (!was_known || failure.is_forbidden()) && !failure.is_expired() {
                    (is_said, is_news) = (true, true);
                    error!(
                        "namespaces cannot be watched; nothing is collected: {failure}; grant \
                         list and watch of namespaces, or set --namespace-overrides=false"
                    );
                }
                tokio::time::sleep(tuning.cluster.after(failures)).await;
                continue;
            }
        };
        if event.is_success() && objects.is_watching() {
            failures = 0;
            is_said = false;
        }
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => listed.extend(read(object)),
            Event::InitDone => replace(shared, std::mem::take(&mut listed)),
            Event::Open | Event::Settled | Event::Bookmark => {}
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
        if objects.is_watching() && shared.cluster.namespaces.confirm(COUNTS) {
            if std::mem::take(&mut is_news) {
                info!("namespaces listed");
            }
            shared.wake_waiting();
        }
    }
}

fn replace(shared: &Shared, listed: HashMap<String, Tightening>) {
    let before = shared.cluster.namespaces.asking();
    for name in before.iter().filter(|name| !listed.contains_key(*name)) {
        set(shared, name, Tightening::default());
    }
    for (name, asked) in listed {
        set(shared, &name, asked);
    }
}

/// Notes what a namespace asks for; its runs are looked at again if that changed.
fn set(shared: &Shared, name: &str, asked: Tightening) {
    if !shared.cluster.namespaces.set(name, asked) {
        return;
    }
    info!(namespace = name, "namespace {name} asks for {asked:?}");
    let there = shared.ledger().in_namespace(name);
    shared.wake(there);
}
