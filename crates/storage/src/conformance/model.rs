//! Random histories: a database has the outcomes and the rows that maps in memory have.

use std::{collections::BTreeSet, num::NonZeroU32};

use serde_json::json;

use super::{
    World,
    fixtures::{
        Dice, everything, hold, kind, later_record, later_result, map, record, record_name, result,
        result_name, time,
    },
};
use crate::{
    memory::Memory,
    seam::{Batch, Change, Hold, Store, WholeVersion},
};
use hindsight_filter::model::{Etag, ParentPattern, Record, RunResult};

async fn change(dice: &mut Dice, model: &Memory, us: i64) -> Change {
    let result_text = format!("p{}/results/r{}", dice.below(2), dice.below(3));
    let record_text = format!("{result_text}/records/x{}", dice.below(4));
    let expect = |dice: &mut Dice, etag: Option<&Etag>| match etag {
        Some(etag) if !dice.once_in(5) => etag.clone(),
        _ => Etag::from_text("another"),
    };
    let result_etag = model.result(&result_name(&result_text)).await.unwrap();
    let result_etag = result_etag.as_ref().map(|value| &value.etag);
    let record_etag = model.record(&record_name(&record_text)).await.unwrap();
    let record_etag = record_etag.as_ref().map(|value| &value.etag);
    let mut of_result = later_result(&result(&result_text, 0), us);
    of_result.annotations = map([("us", us.to_string())]);
    let object = json!({"us": us, "pad": "x".repeat(dice.below(300))});
    let mut of_record = later_record(&record(&record_text, 0, &object), us);
    if dice.once_in(4) {
        // As another server may have made it.
        of_result.etag = Etag::from_text(format!("of {us}"));
        of_record.etag = of_result.etag.clone();
    }
    match dice.below(20) {
        16 | 17 => expire(dice, model, &result_text, us).await,
        18 => Change::InsertHold(hold(&result_text, us, dice.once_in(2).then_some(us + 40))),
        19 => Change::DeleteHold {
            name: result_name(&result_text),
        },
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

/// An expiry of a result as it is, or as it was before its last change.
async fn expire(dice: &mut Dice, model: &Memory, name: &str, us: i64) -> Change {
    let name = result_name(name);
    let found = model.result(&name).await.unwrap();
    let of = found
        .clone()
        .unwrap_or_else(|| result(&name.to_string(), 0));
    let records = model.list_records(&everything()).await.unwrap();
    let records = records.iter().map(|listed| &listed.item);
    let records = records.filter(|record| *record.name.result() == name);
    let skipped = usize::from(dice.once_in(4));
    Change::ExpireResult {
        version: WholeVersion::of(&of, records.skip(skipped).map(|record| record.update_time)),
        name,
        now: time(us),
    }
}

/// Changes of different rows that come together: each has the outcome it would have alone.
pub(super) async fn changes_that_come_together_agree_with_the_model_one_by_one(world: World) {
    let model = Memory::default();
    for seed in 0..40 {
        let mut dice = Dice::new(500 + seed);
        let of_records = dice.once_in(2);
        let mut names = BTreeSet::new();
        let mut changes = Vec::new();
        for at in 0..30_i64 {
            let us = i64::try_from(seed).unwrap() * 100 + at;
            let change = change(&mut dice, &model, us).await;
            let (name, is_record) = about(&change);
            if is_record == of_records && names.insert(name) {
                changes.push(change);
            }
        }
        let wanted: Vec<_> = model.commit_each(&changes).await.iter().map(kind).collect();
        let got = world.store.commit_each(&changes).await;
        let kinds: Vec<_> = got.iter().map(kind).collect();
        assert_eq!(kinds, wanted, "seed {seed}: {changes:?}: {got:?}");
        assert_eq!(
            stored(&*world.store).await,
            stored(&model).await,
            "seed {seed}"
        );
    }
}

/// The name of the row that a change is about, and whether it is a record.
fn about(change: &Change) -> (String, bool) {
    match change {
        Change::InsertResult(value) | Change::ReplaceResult { value, .. } => {
            (value.name.to_string(), false)
        }
        Change::InsertHold(hold) => (hold.result.to_string(), false),
        Change::DeleteResult { name, .. }
        | Change::ExpireResult { name, .. }
        | Change::ArchiveResult { name, .. }
        | Change::ReturnResult { name, .. }
        | Change::DeleteHold { name } => (name.to_string(), false),
        Change::InsertRecord(value)
        | Change::ReturnRecord { value, .. }
        | Change::ReplaceRecord { value, .. } => (value.name.to_string(), true),
        Change::DeleteRecord { name, .. } => (name.to_string(), true),
    }
}

/// Everything that is stored, in the order of names.
async fn stored(store: &dyn Store) -> (Vec<RunResult>, Vec<Record>, Vec<Hold>) {
    let results = store.list_results(&everything()).await.unwrap();
    let records = store.list_records(&everything()).await.unwrap();
    let mut results: Vec<_> = results.into_iter().map(|row| row.item).collect();
    let mut records: Vec<_> = records.into_iter().map(|row| row.item).collect();
    results.sort_by(|a, b| a.name.cmp(&b.name));
    records.sort_by(|a, b| a.name.cmp(&b.name));
    let holds = store.holds(&ParentPattern::Any, 0, NonZeroU32::MAX);
    let mut holds: Vec<_> = holds
        .await
        .unwrap()
        .into_iter()
        .map(|(_, hold)| hold)
        .collect();
    holds.sort_by(|a, b| a.result.cmp(&b.result));
    (results, records, holds)
}

pub(super) async fn random_histories_agree_with_a_model(world: World) {
    let model = Memory::default();
    for seed in 0..6 {
        let mut dice = Dice::new(100 + seed);
        for step in 0..80_i64 {
            let us = i64::try_from(seed).unwrap() * 10_000 + step * 10;
            let count = if dice.once_in(3) {
                1 + dice.below(4)
            } else {
                1
            };
            let mut batch = Batch::default();
            for at in 0..count {
                let us = us + i64::try_from(at).unwrap();
                batch.changes.push(change(&mut dice, &model, us).await);
            }
            let wanted = kind(&model.commit(&batch).await);
            let got = world.store.commit(&batch).await;
            let what = format!("step {step} of seed {seed}: {batch:?}: {got:?}");
            assert_eq!(kind(&got), wanted, "{what}");
        }
        let wanted = stored(&model).await;
        let records = wanted.1.clone();
        assert_eq!(stored(&*world.store).await, wanted, "seed {seed}");
        for value in records {
            assert_eq!(world.record(&value.name).await, Some(value));
        }
    }
}
