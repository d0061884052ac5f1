//! Which rule a run fits, and that a namespace can only add.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;

fn run() -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "a", "namespace": "team-a", "uid": "u",
            "labels": {"tekton.dev/pipeline": "nightly", "tier": "test"}},
        "spec": {"params": [{"name": "keep", "value": "no"}]},
        "status": {"conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed"}]},
    })
}

fn minutes(n: i64) -> SignedDuration {
    SignedDuration::from_mins(n)
}

fn rule(change: impl FnOnce(&mut Rule)) -> Rule {
    let mut rule = Rule {
        grace: Some(minutes(60)),
        ..Rule::default()
    };
    change(&mut rule);
    rule
}

#[track_caller]
fn check(rule: Rule, fits: bool) {
    let collect = Collect {
        rules: vec![rule],
        ..Collect::default()
    };
    let run = run();
    let terms = collect.terms(&View::new(&run), &Tightening::default());
    assert_eq!(terms.grace, minutes(if fits { 60 } else { 10 }));
    assert_eq!(terms.rule.is_some(), fits);
}

#[test]
fn a_rule_is_for_some_kinds_namespaces_labels_and_outcomes() {
    let kind = |name: &str| {
        let known = hindsight_run::KINDS.iter();
        known.filter(|kind| kind.kind == name).collect::<Vec<_>>()
    };
    check(rule(|_| ()), true);
    check(rule(|r| r.kinds = kind("PipelineRun")), true);
    check(rule(|r| r.kinds = kind("TaskRun")), false);
    check(
        rule(|r| r.namespaces = vec!["x".into(), "team-*".into()]),
        true,
    );
    check(rule(|r| r.namespaces = vec!["team".into()]), false);
    check(rule(|r| r.selector = "tier=test".parse().unwrap()), true);
    check(rule(|r| r.selector = "tier!=test".parse().unwrap()), false);
    check(rule(|r| r.outcomes = [Outcome::Failure].into()), true);
    check(rule(|r| r.outcomes = [Outcome::Success].into()), false);
}

#[test]
fn the_first_rule_that_fits_counts_and_leaves_open_what_it_does_not_say() {
    let first = Rule {
        keep_last: Some(5),
        ..Rule::default()
    };
    let collect = Collect {
        keep_last: 1,
        rules: vec![
            rule(|r| r.namespaces = vec!["other".into()]),
            first,
            rule(|_| ()),
        ],
        ..Collect::default()
    };
    let run = run();
    let terms = collect.terms(&View::new(&run), &Tightening::default());
    assert_eq!(
        (terms.rule, terms.grace, terms.keep_last),
        (Some(1), minutes(10), 5)
    );
}

#[test]
fn a_namespace_can_only_keep_runs_longer() {
    let run = run();
    let check = |asked: Tightening, grace, keep_last, never| {
        let collect = Collect {
            keep_last: 3,
            ..Collect::default()
        };
        let terms = collect.terms(&View::new(&run), &asked);
        assert_eq!(
            (terms.grace, terms.keep_last, terms.never),
            (minutes(grace), keep_last, never)
        );
    };
    let asks = |grace, keep_last, paused| Tightening {
        paused,
        grace: Some(minutes(grace)),
        keep_last,
    };
    check(Tightening::default(), 10, 3, false);
    check(asks(60, 9, false), 60, 9, false);
    check(asks(-5, 1, false), 10, 3, false);
    check(asks(0, 0, true), 10, 3, true);
}

#[test]
fn what_an_expression_cannot_tell_keeps_the_run() {
    let run = run();
    for (text, holds) in [
        ("outcome == 'failure' && pipeline == 'nightly'", true),
        (
            "kind == 'PipelineRun' && object.metadata.namespace == 'team-a'",
            true,
        ),
        (
            "object.spec.params.exists(p, p.name == 'keep' && p.value == 'no')",
            true,
        ),
        ("outcome == 'success'", false),
        ("object.metadata.annotations['x'] == 'y'", false),
        ("object.spec", false),
    ] {
        let collect = Collect {
            when: Some(Expression::compile(text, VARIABLES).unwrap()),
            ..Collect::default()
        };
        let view = View::new(&run);
        let terms = collect.terms(&view, &Tightening::default());
        assert_eq!(terms.hold(&view), holds, "{text}");
    }
}
