//! Random histories of a [world](super::model). Whatever happened, once all is calm every finished
//! run that is there is stored and annotated, nothing is left to do, no finalizer of ours is left
//! on a run that somebody deletes; and it makes no difference how often the watcher died.

use std::collections::HashMap;

use proptest::{prelude::*, test_runner::TestCaseError};
use serde_json::{Value, json};

use hindsight_run::View;

use super::model::{Event, OTHER, World, event, finalizers};
use crate::{
    content::same_content,
    policy::{Collect, Policy, STORED_DIGEST},
};

fn policy(collect: bool, store_incomplete: bool, finalizers: bool) -> Policy {
    let collect = collect.then(Collect::default);
    Policy {
        collect,
        store_incomplete,
        finalizers,
        // As good as any other coin.
        store_events: finalizers,
        ..Policy::default()
    }
}

type Ends = Result<(), TestCaseError>;

/// Runs `check` on random `histories`: as many as take a few seconds, or as the variable
/// `PROPTEST_CASES` says. `make model` tries a million.
fn try_all<S: Strategy>(histories: &S, check: impl Fn(S::Value) -> Ends) {
    let standard = ProptestConfig::default();
    let config = ProptestConfig {
        cases: standard.cases.max(20_000),
        failure_persistence: None,
        ..standard
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    if let Err(failure) = runner.run(histories, check) {
        panic!("{failure}");
    }
}

fn ends_well((events, collect, store_incomplete, hold): (Vec<Event>, bool, bool, bool)) -> Ends {
    let mut world = World::new(policy(collect, store_incomplete, hold));
    for event in &events {
        world.happen(event);
    }
    world.calm_down();
    let Some(live) = &world.live else {
        return Ok(());
    };
    let view = View::new(live);
    if view.finish().done {
        let uid = view.uid().unwrap();
        let is_it = |copy: &&Value| View::new(copy).uid() == Some(uid);
        let copy = world.server.values().find(is_it);
        prop_assert!(
            copy.is_some_and(|copy| same_content(copy, live)),
            "not stored"
        );
        // What is deleted at once is not annotated before.
        if !collect {
            prop_assert_eq!(view.annotation("results.tekton.dev/stored"), Some("true"));
            let events = view.annotation("results.tekton.dev/eventlist");
            prop_assert!(!hold || world.events.contains(events.unwrap_or_default()));
        }
        prop_assert!(!collect || view.deletion().is_some(), "not collected");
    }
    if view.deletion().is_some() {
        let mut live = live.clone();
        prop_assert_eq!(
            finalizers(&mut live).clone(),
            vec![json!(OTHER)],
            "it is wedged"
        );
    }
    Ok(())
}

type Cuts = Vec<(usize, bool)>;

/// Cutting the work anywhere and planning again ends where uncut work ends. Left out are a server
/// that forgets, and another watcher that puts finalizers on at the same time: whether its
/// finalizer is met before or after our delete decides whether the copy tells of the delete.
fn ends_the_same((before, cuts, collect, hold): (Vec<Event>, Cuts, bool, bool)) -> Ends {
    let end = |cuts: &[(usize, bool)]| {
        let mut world = World::new(policy(collect, false, hold));
        for event in &before {
            if !matches!(event, Event::ServerForgets | Event::Hold(true)) {
                world.happen(event);
            }
        }
        world.server_away = false;
        for (steps, restart) in cuts {
            world.notice();
            world.work(*steps);
            if *restart && world.live.is_some() {
                world
                    .seen
                    .retain(|_, (_, memory)| memory.presence.is_gone());
            }
        }
        world.calm_down();
        let server = world.server.into_iter();
        (
            world.live.map(bare),
            server.map(|(name, copy)| (name, bare(copy))).collect(),
        )
    };
    let uncut: (Option<Value>, HashMap<String, Value>) = end(&[]);
    prop_assert_eq!(end(&cuts), uncut);
    Ok(())
}

fn whole() -> impl Strategy<Value = (Vec<Event>, bool, bool, bool)> {
    let events = proptest::collection::vec(event(), 1..60);
    (events, any::<bool>(), any::<bool>(), any::<bool>())
}

fn cut() -> impl Strategy<Value = (Vec<Event>, Cuts, bool, bool)> {
    let before = proptest::collection::vec(event(), 1..20);
    let cuts = proptest::collection::vec((0usize..4, any::<bool>()), 0..8);
    (before, cuts, any::<bool>(), any::<bool>())
}

#[test]
fn no_history_leads_to_an_unproven_delete() {
    try_all(&whole(), ends_well);
}

#[test]
fn a_lost_suffix_of_steps_changes_nothing_in_the_end() {
    try_all(&cut(), ends_the_same);
}

/// Without what depends on how often and when something was written.
fn bare(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    metadata.remove("finalizers");
    if let Some(asked) = metadata.get_mut("deletionTimestamp") {
        *asked = json!("set");
    }
    metadata["annotations"]
        .as_object_mut()
        .unwrap()
        .retain(|key, _| !key.starts_with("results.tekton.dev/") && key != STORED_DIGEST);
    object
}
