//! Random histories against a store that is two maps in memory.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{
    World,
    fixtures::{
        Dice, everything, kind, later_record, later_result, map, record, record_name, result,
        result_name,
    },
};
use crate::seam::{Batch, Change};
use hindsight_filter::model::{Etag, Record, RunResult};

#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    results: BTreeMap<String, RunResult>,
    records: BTreeMap<String, Record>,
}

impl Model {
    fn commit(&mut self, batch: &Batch) -> &'static str {
        let mut next = self.clone();
        for change in &batch.changes {
            let outcome = next.change(change);
            if outcome != "done" {
                return outcome;
            }
        }
        *self = next;
        "done"
    }

    fn change(&mut self, change: &Change) -> &'static str {
        match change.clone() {
            Change::InsertResult(value) => {
                let name = value.name.to_string();
                if self.results.contains_key(&name) {
                    return "exists";
                }
                self.results.insert(name, value);
            }
            Change::ReplaceResult { expect, value } => {
                let Some(was) = self.results.get_mut(&value.name.to_string()) else {
                    return "missing";
                };
                if was.etag != expect {
                    return "stale";
                }
                *was = RunResult {
                    uid: was.uid.clone(),
                    create_time: was.create_time,
                    ..value
                };
            }
            Change::DeleteResult { name, expect } => {
                let Some(was) = self.results.get(&name.to_string()) else {
                    return "missing";
                };
                if expect.is_some_and(|etag| etag != was.etag) {
                    return "stale";
                }
                self.results.remove(&name.to_string());
                self.records
                    .retain(|_, record| *record.name.result() != name);
            }
            Change::InsertRecord(value) => {
                let name = value.name.to_string();
                if !self.results.contains_key(&value.name.result().to_string()) {
                    return "missing";
                }
                if self.records.contains_key(&name) {
                    return "exists";
                }
                self.records.insert(name, value);
            }
            Change::ReplaceRecord { expect, value } => {
                let Some(was) = self.records.get_mut(&value.name.to_string()) else {
                    return "missing";
                };
                if was.etag != expect {
                    return "stale";
                }
                *was = Record {
                    uid: was.uid.clone(),
                    create_time: was.create_time,
                    ..value
                };
            }
            Change::DeleteRecord { name, expect } => {
                let Some(was) = self.records.get(&name.to_string()) else {
                    return "missing";
                };
                if expect.is_some_and(|etag| etag != was.etag) {
                    return "stale";
                }
                self.records.remove(&name.to_string());
            }
        }
        "done"
    }
}

fn change(dice: &mut Dice, model: &Model, us: i64) -> Change {
    let result_text = format!("p{}/results/r{}", dice.below(2), dice.below(3));
    let record_text = format!("{result_text}/records/x{}", dice.below(4));
    let expect = |dice: &mut Dice, etag: Option<&Etag>| match etag {
        Some(etag) if !dice.once_in(5) => etag.clone(),
        _ => Etag::from_text("another"),
    };
    let result_etag = model.results.get(&result_text).map(|value| &value.etag);
    let record_etag = model.records.get(&record_text).map(|value| &value.etag);
    let mut of_result = later_result(&result(&result_text, 0), us);
    of_result.annotations = map([("us", us.to_string())]);
    let object = json!({"us": us, "pad": "x".repeat(dice.below(300))});
    let mut of_record = later_record(&record(&record_text, 0, &object), us);
    if dice.once_in(4) {
        // As another server may have made it.
        of_result.etag = Etag::from_text(format!("of {us}"));
        of_record.etag = of_result.etag.clone();
    }
    match dice.below(16) {
        0..=2 => Change::InsertResult(of_result),
        3 | 4 => Change::ReplaceResult {
            expect: expect(dice, result_etag),
            value: of_result,
        },
        5 => {
            let expect = dice.once_in(2).then(|| expect(dice, result_etag));
            Change::DeleteResult {
                name: result_name(&result_text),
                expect,
            }
        }
        6..=10 => Change::InsertRecord(of_record),
        11..=13 => Change::ReplaceRecord {
            expect: expect(dice, record_etag),
            value: of_record,
        },
        _ => {
            let expect = dice.once_in(2).then(|| expect(dice, record_etag));
            Change::DeleteRecord {
                name: record_name(&record_text),
                expect,
            }
        }
    }
}

/// Changes of different rows that come together: each has the outcome it would have alone.
pub(super) async fn changes_that_come_together_agree_with_the_model_one_by_one(world: World) {
    let mut model = Model::default();
    for seed in 0..40 {
        let mut dice = Dice::new(500 + seed);
        let of_records = dice.once_in(2);
        let mut names = BTreeSet::new();
        let changes: Vec<_> = (0..30_i64)
            .map(|at| change(&mut dice, &model, i64::try_from(seed).unwrap() * 100 + at))
            .filter(|change| {
                let (name, is_record) = about(change);
                is_record == of_records && names.insert(name)
            })
            .collect();
        let wanted: Vec<_> = changes.iter().map(|change| model.change(change)).collect();
        let got = world.store.commit_each(&changes).await;
        let kinds: Vec<_> = got.iter().map(kind).collect();
        assert_eq!(kinds, wanted, "seed {seed}: {changes:?}: {got:?}");
        assert_eq!(stored(&world).await, model, "after seed {seed}");
    }
}

/// The name of the row that a change is about, and whether it is a record.
fn about(change: &Change) -> (String, bool) {
    match change {
        Change::InsertResult(value) | Change::ReplaceResult { value, .. } => {
            (value.name.to_string(), false)
        }
        Change::DeleteResult { name, .. } => (name.to_string(), false),
        Change::InsertRecord(value) | Change::ReplaceRecord { value, .. } => {
            (value.name.to_string(), true)
        }
        Change::DeleteRecord { name, .. } => (name.to_string(), true),
    }
}

/// Everything that is stored.
async fn stored(world: &World) -> Model {
    let results = world.store.list_results(&everything()).await.unwrap();
    let records = world.store.list_records(&everything()).await.unwrap();
    Model {
        results: results
            .into_iter()
            .map(|r| (r.item.name.to_string(), r.item))
            .collect(),
        records: records
            .into_iter()
            .map(|r| (r.item.name.to_string(), r.item))
            .collect(),
    }
}

pub(super) async fn random_histories_agree_with_a_model(world: World) {
    let mut model = Model::default();
    for seed in 0..6 {
        let mut dice = Dice::new(100 + seed);
        for step in 0..80_i64 {
            let us = i64::try_from(seed).unwrap() * 10_000 + step * 10;
            let count = if dice.once_in(3) {
                1 + dice.below(4)
            } else {
                1
            };
            let changes = (0..count)
                .map(|at| change(&mut dice, &model, us + i64::try_from(at).unwrap()))
                .collect();
            let batch = Batch { changes };
            let wanted = model.commit(&batch);
            let got = world.store.commit(&batch).await;
            assert_eq!(
                kind(&got),
                wanted,
                "step {step} of seed {seed}: {batch:?}: {got:?}"
            );
        }
        assert_eq!(stored(&world).await, model, "after seed {seed}");
        for value in model.records.values() {
            assert_eq!(world.record(&value.name).await.as_ref(), Some(value));
        }
    }
}
