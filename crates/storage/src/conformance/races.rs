//! Many writers at once: exactly one of those that cannot all win does.

use serde_json::json;

use super::{
    World,
    fixtures::{Dice, everything, kind, later_record, record, record_name, result, result_name},
};
use crate::seam::{Batch, Change};

pub(super) async fn of_many_writers_with_one_etag_one_wins(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let mut current = record("a/results/r/records/x", 1, &json!({"round": 0}));
    world.given([Change::InsertRecord(current.clone())]).await;
    for round in 0..40_i64 {
        let writers: Vec<_> = (0..16_i64)
            .map(|writer| {
                let object = json!({"round": round, "writer": writer});
                let mut value = record("a/results/r/records/x", 1, &object);
                value = later_record(&value, 2 + round * 16 + writer);
                let expect = current.etag.clone();
                let change = Change::ReplaceRecord {
                    expect,
                    value: value.clone(),
                };
                (value, world.start(change))
            })
            .collect();
        let mut winners = Vec::new();
        for (value, writer) in writers {
            match kind(&writer.await.unwrap()) {
                "done" => winners.push(value),
                other => assert_eq!(other, "stale"),
            }
        }
        assert_eq!(winners.len(), 1, "winners of round {round}");
        current = winners.remove(0);
        assert_eq!(world.record(&current.name).await.as_ref(), Some(&current));
    }
}

pub(super) async fn of_many_creators_of_one_name_one_wins(world: World) {
    for round in 0..10 {
        let name = format!("a/results/r{round}");
        let results: Vec<_> = (0..8)
            .map(|us| world.start(Change::InsertResult(result(&name, us))))
            .collect();
        let mut outcomes = Vec::new();
        for one in results {
            outcomes.push(kind(&one.await.unwrap()));
        }
        outcomes.sort_unstable();
        assert_eq!(outcomes[..2], ["done", "exists"]);
        let name = format!("{name}/records/x");
        let records: Vec<_> = (0..8)
            .map(|us| world.start(Change::InsertRecord(record(&name, us, &json!({"us": us})))))
            .collect();
        let mut outcomes = Vec::new();
        for one in records {
            outcomes.push(kind(&one.await.unwrap()));
        }
        outcomes.sort_unstable();
        assert_eq!(outcomes[..2], ["done", "exists"]);
        assert!(outcomes[1..].iter().all(|outcome| *outcome == "exists"));
    }
}

pub(super) async fn no_record_outlives_its_result(world: World) {
    for round in 0..30_i64 {
        let r = result("a/results/r", round);
        world.given([Change::InsertResult(r.clone())]).await;
        let inserting: Vec<_> = (0..6)
            .map(|at| {
                let name = format!("a/results/r/records/{at}");
                world.start(Change::InsertRecord(record(
                    &name,
                    round,
                    &json!({"at": at}),
                )))
            })
            .collect();
        let deleting = world.start(Change::DeleteResult {
            name: r.name.clone(),
            expect: None,
        });
        for one in inserting {
            let outcome = one.await.unwrap();
            assert!(["done", "missing"].contains(&kind(&outcome)), "{outcome:?}");
        }
        assert_eq!(kind(&deleting.await.unwrap()), "done");
        let left = world.store.list_records(&everything()).await.unwrap();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(world.result(&result_name("a/results/r")).await, None);
    }
}

pub(super) async fn a_delete_and_an_update_do_not_both_win(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let name = record_name("a/results/r/records/x");
    for round in 0..40_i64 {
        let x = record("a/results/r/records/x", round, &json!({}));
        world.given([Change::InsertRecord(x.clone())]).await;
        let expect = x.etag.clone();
        let updated = later_record(&x, round + 1_000);
        let update = Change::ReplaceRecord {
            expect: expect.clone(),
            value: updated.clone(),
        };
        let delete = Change::DeleteRecord {
            name: name.clone(),
            expect: Some(expect),
        };
        let (update, delete) = (world.start(update), world.start(delete));
        let (update, delete) = (update.await.unwrap(), delete.await.unwrap());
        let there = world.record(&name).await;
        match (kind(&update), kind(&delete)) {
            ("done", "stale") => {
                assert_eq!(there, Some(updated));
                world
                    .given([Change::DeleteRecord {
                        name: name.clone(),
                        expect: None,
                    }])
                    .await;
            }
            ("missing", "done") => assert_eq!(there, None),
            other => panic!("{other:?}"),
        }
    }
}

pub(super) async fn batches_in_crossed_order_all_end(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    let ids = ["u", "v", "w", "x", "y"];
    let name = |id: &str| format!("a/results/r/records/{id}");
    for id in ids {
        world
            .given([Change::InsertRecord(record(&name(id), 0, &json!({})))])
            .await;
    }
    // Each writer deletes and makes all records again, in an order of its own.
    let mut dice = Dice::new(17);
    let mut writers = Vec::new();
    for writer in 0..8_i64 {
        let mut left = ids.to_vec();
        let mut changes = Vec::new();
        while !left.is_empty() {
            let id = left.remove(dice.below(left.len()));
            changes.push(Change::DeleteRecord {
                name: record_name(&name(id)),
                expect: None,
            });
            changes.push(Change::InsertRecord(record(
                &name(id),
                writer,
                &json!({"by": writer}),
            )));
        }
        let world = world.clone();
        writers.push(tokio::spawn(async move {
            // Losing against another writer is an answer, too; waiting for ever is none.
            for _ in 0..20 {
                let batch = Batch {
                    changes: changes.clone(),
                };
                let outcome = kind(&world.store.commit(&batch).await);
                assert!(
                    ["done", "missing", "exists"].contains(&outcome),
                    "{outcome}"
                );
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let rows = world.store.list_records(&everything()).await.unwrap();
    assert_eq!(rows.len(), ids.len());
    assert!(
        rows.iter()
            .all(|row| row.item.create_time == rows[0].item.create_time)
    );
}

pub(super) async fn a_refused_batch_does_not_harm_its_neighbours(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    let taken = record("a/results/r/records/taken", 0, &json!({}));
    world.given([Change::InsertRecord(taken.clone())]).await;
    let mut tasks = Vec::new();
    for at in 0..120_i64 {
        let good = record(&format!("a/results/r/records/{at}"), at, &json!({"at": at}));
        let mut changes = vec![Change::InsertRecord(good.clone())];
        match at % 3 {
            0 => {}
            1 => changes.push(Change::InsertRecord(taken.clone())),
            _ => changes = vec![Change::InsertRecord(taken.clone())],
        }
        let world = world.clone();
        tasks.push(tokio::spawn(async move {
            let outcome = world.store.commit(&Batch { changes }).await;
            let there = world.record(&good.name).await;
            match at % 3 {
                0 => assert_eq!((kind(&outcome), there), ("done", Some(good))),
                _ => assert_eq!((kind(&outcome), there), ("exists", None)),
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// Two writers of each name, and all with one id.
pub(super) async fn rows_of_one_id_that_come_at_once_have_an_outcome_each(world: World) {
    let results: Vec<_> = (0..20)
        .map(|at| result(&format!("p{}/results/r", at % 10), at))
        .collect();
    let won = async |changes: Vec<Change>| {
        let (first, second) = changes.split_at(10);
        let each = |changes| world.store.commit_each(changes);
        let outcomes = futures::join!(each(first), each(second));
        let won = (0..10).map(|at| match [kind(&outcomes.0[at]), kind(&outcomes.1[at])] {
            ["done", "exists"] => at,
            ["exists", "done"] => at + 10,
            other => panic!("{at}: {other:?}"),
        });
        won.collect::<Vec<_>>()
    };
    let inserts = results.iter().cloned().map(Change::InsertResult).collect();
    for at in won(inserts).await {
        let wanted = &results[at];
        assert_eq!(world.result(&wanted.name).await.as_ref(), Some(wanted));
    }
    let labels = |at: i64| json!({"metadata": {"labels": {"at": at.to_string()}}});
    let records: Vec<_> = (0..20)
        .map(|at| {
            record(
                &format!("p{}/results/r/records/x", at % 10),
                at,
                &labels(at),
            )
        })
        .collect();
    let inserts = records.iter().cloned().map(Change::InsertRecord).collect();
    for at in won(inserts).await {
        let wanted = &records[at];
        assert_eq!(world.record(&wanted.name).await.as_ref(), Some(wanted));
    }
}
