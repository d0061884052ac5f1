//! Policies in the plainest form, over results in a list.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Change, Dice, Mode, World, days, held, now, passed, policies, record, result};

/// Filters, and what they mean.
type Means = fn(&Top) -> bool;
const FILTERS: [(&str, Means); 4] = [
    ("parent == \"a\"", |top| top.parent == "a"),
    ("data.metadata.labels[\"app\"] == \"shop\"", |top| {
        top.app == "shop"
    }),
    ("data.metadata.labels.app in [\"shop\", \"web\"]", |top| {
        !top.app.is_empty()
    }),
    ("run.outcome == FAILURE", |top| top.outcome == "failed"),
];
const OUTCOMES: [&str; 4] = ["succeeded", "failed", "timeout", "cancelled"];

#[derive(Debug, Clone)]
struct Top {
    parent: &'static str,
    app: &'static str,
    outcome: &'static str,
    pipeline: &'static str,
    ended: Option<Timestamp>,
}

#[derive(Debug)]
struct Given {
    name: String,
    tops: Vec<Top>,
    /// The end of a task of the first top run; none if it goes on.
    task: Option<Timestamp>,
    is_held: bool,
}

impl Given {
    fn ended(&self) -> Option<Timestamp> {
        let tops = self.tops.iter().map(|top| top.ended);
        let all: Option<Vec<_>> = tops.chain([self.task]).collect();
        all?.into_iter().max()
    }
}

#[derive(Debug)]
struct Plain {
    name: String,
    when: Option<(&'static str, Means)>,
    outcomes: Vec<&'static str>,
    /// Days by namespace, and those of all others.
    keep_for: (Option<u64>, Option<u64>),
    keep_last: Option<u64>,
}

impl Plain {
    fn drawn(dice: &mut Dice, at: usize) -> Self {
        let when = (dice.below(3) > 0).then(|| dice.one(&FILTERS));
        let mut outcomes: Vec<_> = OUTCOMES
            .into_iter()
            .filter(|_| dice.below(3) == 0)
            .collect();
        if when.is_none() && outcomes.is_empty() {
            outcomes.push("failed");
        }
        let keep_last = (dice.below(2) == 0).then(|| 1 + dice.below(3));
        let days = (keep_last.is_none() || dice.below(2) == 0).then(|| 1 + dice.below(40));
        let in_a = days.filter(|_| dice.below(2) == 0).map(|days| 1 + days / 2);
        Self {
            name: format!("p{at}"),
            when,
            outcomes,
            keep_for: (in_a, days),
            keep_last,
        }
    }

    fn toml(&self, into: &mut String) {
        into.push_str(&format!("[[policies]]\nname = '{}'\n", self.name));
        if let Some((when, _)) = self.when {
            into.push_str(&format!("when = '{when}'\n"));
        }
        if !self.outcomes.is_empty() {
            into.push_str(&format!("outcomes = {:?}\n", self.outcomes));
        }
        self.terms(into);
    }

    fn terms(&self, into: &mut String) {
        if let Some(days) = self.keep_for.1 {
            into.push_str(&format!("keep_for = '{days}d'\n"));
        }
        if let Some(last) = self.keep_last {
            into.push_str(&format!("keep_last = {last}\n"));
        }
    }

    fn governs(&self, top: &Top) -> bool {
        let about = self.outcomes.is_empty() || self.outcomes.contains(&top.outcome);
        about && self.when.is_none_or(|(_, means)| means(top))
    }
}

fn policy<'p>(all: &'p [Plain], top: &Top) -> &'p Plain {
    all.iter().find(|policy| policy.governs(top)).unwrap()
}

/// Whether a top run of a result lets it go.
fn lets_go(all: &[Plain], given: &[Given], of: &Given, top: &Top) -> bool {
    let policy = policy(all, top);
    let ended = of.ended().unwrap();
    let days_kept = match policy.keep_for {
        (Some(in_a), _) if top.parent == "a" => Some(in_a),
        (_, whole) => whole,
    };
    let is_old = ended + days(days_kept.unwrap_or(0)) <= now();
    let Some(last) = policy.keep_last else {
        return is_old;
    };
    if top.pipeline.is_empty() {
        return is_old && days_kept.is_some();
    }
    let is_like = |other: &Top| {
        other.parent == top.parent
            && other.pipeline == top.pipeline
            && self::policy(all, other).name == policy.name
    };
    let later = given.iter().filter(|other| {
        let Some(other_ended) = other.ended() else {
            return false;
        };
        let name = |name: &str| name.parse::<hindsight_filter::model::ResultName>().unwrap();
        (other_ended, name(&other.name)) > (ended, name(&of.name)) && other.tops.iter().any(is_like)
    });
    is_old && later.count() as u64 >= last
}

/// What goes, and by which policy.
fn due(all: &[Plain], given: &[Given]) -> BTreeMap<String, String> {
    let goes = given.iter().filter(|of| {
        let has_ended = of.ended().is_some() && !of.is_held;
        has_ended && of.tops.iter().all(|top| lets_go(all, given, of, top))
    });
    let by = |of: &Given| (of.name.clone(), policy(all, &of.tops[0]).name.clone());
    goes.map(by).collect()
}

fn object(kind: &str, top: &Top, labels: &Value, held: bool) -> Value {
    let (status, reason) = match top.outcome {
        "succeeded" => ("True", "Succeeded"),
        "failed" => ("False", "Failed"),
        "timeout" => ("False", "PipelineRunTimeout"),
        _ => ("False", "Cancelled"),
    };
    let mut object = json!({"kind": kind, "metadata": {"name": "x", "labels": labels}, "status": {
        "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]}});
    if let Some(ended) = top.ended {
        object["status"]["completionTime"] = ended.to_string().into();
        object["status"]["conditions"][0]["status"] = status.into();
        object["status"]["conditions"][0]["reason"] = reason.into();
    }
    if held {
        object["metadata"]["annotations"] = json!({"hindsight.dev/hold": "an audit"});
    }
    object
}

fn drawn(dice: &mut Dice, at: usize) -> (Given, Vec<Change>) {
    let parent = dice.one(&["a", "b"]);
    let name = format!("{parent}/results/r{at}");
    let ended = |dice: &mut Dice| (dice.below(9) > 0).then(|| now() - days(dice.below(45)));
    let count = 1 + dice.below(5) / 4;
    let draw = |dice: &mut Dice| Top {
        parent,
        app: dice.one(&["", "shop", "web"]),
        outcome: dice.one(&OUTCOMES),
        pipeline: dice.one(&["", "build", "build", "release"]),
        ended: ended(dice),
    };
    let tops: Vec<_> = (0..count).map(|_| draw(dice)).collect();
    let task = ended(dice);
    let how = dice.below(12);
    let annotations = match how {
        0 => [("hindsight.dev/hold".to_owned(), "an audit".to_owned())].into(),
        _ => BTreeMap::new(),
    };
    let mut changes = vec![Change::InsertResult(result(&name, annotations))];
    for (number, top) in tops.iter().enumerate() {
        let mut labels = json!({});
        for (key, value) in [("app", top.app), ("tekton.dev/pipeline", top.pipeline)] {
            if !value.is_empty() {
                labels[key] = value.into();
            }
        }
        let object = object("PipelineRun", top, &labels, how == 1);
        let name = format!("{name}/records/top{number}");
        let record = record(&name, "tekton.dev/v1.PipelineRun", &object);
        changes.push(Change::InsertRecord(record));
    }
    let of_task = Top {
        ended: task,
        outcome: "succeeded",
        ..tops[0].clone()
    };
    let object = object(
        "TaskRun",
        &of_task,
        &json!({"tekton.dev/pipelineRun": "x"}),
        false,
    );
    let of = record(
        &format!("{name}/records/task"),
        "tekton.dev/v1.TaskRun",
        &object,
    );
    changes.push(Change::InsertRecord(of));
    match how {
        2 => changes.push(held(&name.parse().unwrap(), None)),
        3 => changes.push(held(&name.parse().unwrap(), Some(now() + days(1)))),
        4 => changes.push(held(&name.parse().unwrap(), Some(now() - days(1)))),
        _ => {}
    }
    let is_held = how < 4;
    let given = Given {
        name,
        tops,
        task,
        is_held,
    };
    (given, changes)
}

/// Draws policies and runs, and compares; says how many are due.
pub(super) async fn agrees(url: &str, seed: u64) -> usize {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut all: Vec<_> = (0..dice.below(4))
        .map(|_| Plain::drawn(&mut dice, 0))
        .collect();
    for (at, policy) in all.iter_mut().enumerate() {
        policy.name = format!("p{at}");
    }
    let mut rules = "run_at = '0 3 * * * UTC'\npause = '0s'\n".to_owned();
    all.iter().for_each(|policy| policy.toml(&mut rules));
    let default = Plain {
        name: "default".to_owned(),
        when: None,
        outcomes: Vec::new(),
        ..Plain::drawn(&mut dice, 0)
    };
    rules.push_str("[default]\n");
    default.terms(&mut rules);
    all.push(default);
    for policy in &all {
        if let Some(days) = policy.keep_for.0 {
            let name = &policy.name;
            rules.push_str(&format!("[namespaces.a.{name}]\nkeep_for = '{days}d'\n"));
        }
    }
    let world = World::open(url).await;
    let mut given = Vec::new();
    for at in 0..60 {
        let (one, changes) = drawn(&mut dice, at);
        world.given(changes).await;
        given.push(one);
    }
    let wanted = due(&all, &given);
    let retention = world.retention(&rules, usize::MAX);
    let (planned, plan) = passed(&retention, Mode::Plan).await;
    assert_eq!(policies(&plan), wanted, "seed {seed}: {rules}\n{given:#?}");
    let planned = planned.unwrap();
    assert_eq!((planned.seen, planned.failed), (60, 0));
    let (done, gone) = passed(&retention, Mode::Delete).await;
    assert_eq!(gone, plan, "seed {seed}: what was planned goes");
    assert_eq!(done.unwrap(), planned);
    let rest: BTreeSet<_> = given.iter().map(|of| of.name.clone()).collect();
    let rest: BTreeSet<_> = rest
        .into_iter()
        .filter(|name| !wanted.contains_key(name))
        .collect();
    assert_eq!(world.left().await, rest, "seed {seed}");
    let (_, again) = passed(&retention, Mode::Plan).await;
    assert!(again.is_empty(), "seed {seed}: {again:?}");
    world.close().await;
    wanted.len()
}
