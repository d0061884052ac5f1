//! Single writers: what is written is there, and what is refused changes nothing.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    World,
    fixtures::{
        everything, kind, later_record, later_result, map, record, record_name, result,
        result_name, summary, time,
    },
};
use crate::seam::{Batch, Change, Error};
use hindsight_filter::model::{Etag, Payload, Record, RunResult};

fn full_result() -> RunResult {
    let mut value = result("cluster/east/ns/ci/results/r", 1);
    value.annotations = map([("", ""), ("a", "日本 ' \" \0 \u{1}"), ("\0", "b")]);
    let mut about = summary(&value.name, Some(5), None);
    about.status = -7;
    about.data_type = "odd \0 type".to_owned();
    about.annotations = map([("x", "y"), ("$.x", "'")]);
    value.summary = Some(about);
    value.uid = "uid \0 '".to_owned();
    value.etag = Etag::from_text("any \u{1} text");
    value
}

pub(super) async fn what_is_written_is_read_back(world: World) {
    let bare = result("a/results/bare", 2);
    let mut empty = result("a/results/empty", 3);
    empty.summary = Some(summary(&empty.name, None, Some(9)));
    let full = full_result();
    for value in [&bare, &empty, &full] {
        world.given([Change::InsertResult(value.clone())]).await;
        assert_eq!(world.result(&value.name).await.as_ref(), Some(value));
    }

    let mut odd = record(
        "a/results/bare/records/odd",
        4,
        &json!({"metadata": {"name": "é"}}),
    );
    odd.uid = "\0".to_owned();
    let mut none = record("a/results/bare/records/none", 5, &json!({}));
    none.data = None;
    for value in [&odd, &none] {
        world.given([Change::InsertRecord(value.clone())]).await;
        assert_eq!(world.record(&value.name).await.as_ref(), Some(value));
    }

    let listed = world.store.list_results(&everything()).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|row| row.item).collect();
    assert_eq!(listed, [empty, bare, full]);
    let listed = world.store.list_records(&everything()).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|row| row.item).collect();
    assert_eq!(listed, [none, odd]);
}

pub(super) async fn a_name_is_taken_once(world: World) {
    let first = result("a/results/r", 1);
    let one = record("a/results/r/records/x", 1, &json!({"kind": "One"}));
    world
        .given([
            Change::InsertResult(first.clone()),
            Change::InsertRecord(one.clone()),
        ])
        .await;

    let again = world
        .try_to(Change::InsertResult(result("a/results/r", 2)))
        .await;
    assert!(matches!(again, Err(Error::Exists(name)) if name == "a/results/r"));
    let two = record("a/results/r/records/x", 2, &json!({"kind": "Two"}));
    let again = world.try_to(Change::InsertRecord(two)).await;
    assert!(matches!(again, Err(Error::Exists(name)) if name == "a/results/r/records/x"));
    assert_eq!(world.result(&first.name).await, Some(first));
    assert_eq!(world.record(&one.name).await, Some(one));

    world
        .given([Change::InsertResult(result("b/results/r", 2))])
        .await;
    world
        .given([Change::InsertResult(result("a/results/R", 2))])
        .await;
    let elsewhere = record("b/results/r/records/x", 2, &json!({}));
    world.given([Change::InsertRecord(elsewhere)]).await;
}

pub(super) async fn a_record_needs_its_result(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let x = record("a/results/r/records/x", 1, &json!({"kind": "X"}));
    world.given([Change::InsertRecord(x.clone())]).await;
    let orphan = record("a/results/none/records/x", 1, &json!({"kind": "Y"}));
    let refused = world.try_to(Change::InsertRecord(orphan.clone())).await;
    assert!(matches!(refused, Err(Error::Missing(name)) if name == "a/results/none"));
    assert_eq!(world.record(&orphan.name).await, None);
    assert_eq!(world.record(&x.name).await, Some(x));
}

pub(super) async fn what_is_not_there_is_missing(world: World) {
    let r = result("a/results/r", 1);
    let x = record("a/results/r/records/x", 1, &json!({}));
    let replace_result = Change::ReplaceResult {
        expect: r.etag.clone(),
        value: r.clone(),
    };
    let replace_record = Change::ReplaceRecord {
        expect: x.etag.clone(),
        value: x.clone(),
    };
    let delete_record = |expect| Change::DeleteRecord {
        name: x.name.clone(),
        expect,
    };
    let delete_result = |expect| Change::DeleteResult {
        name: r.name.clone(),
        expect,
    };
    for with_result in [false, true] {
        if with_result {
            world.given([Change::InsertResult(r.clone())]).await;
        } else {
            for change in [&replace_result, &delete_result(None)] {
                let refused = world.try_to(change.clone()).await;
                assert!(matches!(refused, Err(Error::Missing(name)) if name == "a/results/r"));
            }
            assert_eq!(world.result(&r.name).await, None);
        }
        for change in [
            replace_record.clone(),
            delete_record(None),
            delete_record(Some(x.etag.clone())),
        ] {
            let refused = world.try_to(change).await;
            assert!(matches!(refused, Err(Error::Missing(n)) if n == "a/results/r/records/x"));
        }
        assert_eq!(world.record(&x.name).await, None);
    }
}

pub(super) async fn a_stale_etag_changes_nothing(world: World) {
    let r = result("a/results/r", 1);
    let x = record("a/results/r/records/x", 1, &json!({"kind": "A"}));
    world
        .given([
            Change::InsertResult(r.clone()),
            Change::InsertRecord(x.clone()),
        ])
        .await;
    let stale = Etag::from_text("an older one");
    let later = later_record(
        &record("a/results/r/records/x", 1, &json!({"kind": "B"})),
        2,
    );
    for change in [
        Change::ReplaceRecord {
            expect: stale.clone(),
            value: later,
        },
        Change::DeleteRecord {
            name: x.name.clone(),
            expect: Some(stale.clone()),
        },
        Change::ReplaceResult {
            expect: stale.clone(),
            value: later_result(&r, 2),
        },
        Change::DeleteResult {
            name: r.name.clone(),
            expect: Some(stale.clone()),
        },
    ] {
        let refused = world.try_to(change).await;
        assert!(
            matches!(&refused, Err(Error::Stale { expected, .. }) if *expected == stale),
            "{refused:?}"
        );
    }
    assert_eq!(world.result(&r.name).await, Some(r));
    assert_eq!(world.record(&x.name).await, Some(x));
}

pub(super) async fn an_update_keeps_what_the_first_write_fixed(world: World) {
    let r = result("a/results/r", 1);
    let x = record("a/results/r/records/x", 1, &json!({"kind": "A"}));
    world
        .given([
            Change::InsertResult(r.clone()),
            Change::InsertRecord(x.clone()),
        ])
        .await;

    let mut next = later_result(&r, 7);
    next.annotations = map([("k", "v")]);
    next.summary = Some(summary(&r.name, Some(1), Some(2)));
    let other = RunResult {
        uid: "other".into(),
        create_time: time(99),
        ..next.clone()
    };
    world
        .given([Change::ReplaceResult {
            expect: r.etag.clone(),
            value: other,
        }])
        .await;
    assert_eq!(world.result(&r.name).await, Some(next.clone()));
    let bare = RunResult {
        summary: None,
        annotations: BTreeMap::new(),
        ..later_result(&next, 8)
    };
    world
        .given([Change::ReplaceResult {
            expect: next.etag,
            value: bare.clone(),
        }])
        .await;
    assert_eq!(world.result(&r.name).await, Some(bare));

    let mut next = later_record(&x, 7);
    next.data = Some(Payload::new("t".into(), b"new".to_vec().into()));
    let other = Record {
        uid: "other".into(),
        create_time: time(99),
        ..next.clone()
    };
    world
        .given([Change::ReplaceRecord {
            expect: x.etag.clone(),
            value: other,
        }])
        .await;
    assert_eq!(world.record(&x.name).await, Some(next));
}

pub(super) async fn an_update_never_makes_a_deleted_row_again(world: World) {
    let r = result("a/results/r", 1);
    let x = record("a/results/r/records/x", 1, &json!({}));
    world
        .given([
            Change::InsertResult(r.clone()),
            Change::InsertRecord(x.clone()),
        ])
        .await;
    world
        .given([Change::DeleteRecord {
            name: x.name.clone(),
            expect: None,
        }])
        .await;
    let update = Change::ReplaceRecord {
        expect: x.etag.clone(),
        value: later_record(&x, 2),
    };
    assert_eq!(kind(&world.try_to(update).await), "missing");
    assert_eq!(world.record(&x.name).await, None);
    world
        .given([Change::DeleteResult {
            name: r.name.clone(),
            expect: Some(r.etag.clone()),
        }])
        .await;
    let update = Change::ReplaceResult {
        expect: r.etag.clone(),
        value: later_result(&r, 2),
    };
    assert_eq!(kind(&world.try_to(update).await), "missing");
    assert_eq!(world.result(&r.name).await, None);
}

pub(super) async fn deleting_a_result_deletes_its_records(world: World) {
    let kept = record("a/results/other/records/x", 1, &json!({"k": 1}));
    world
        .given([
            Change::InsertResult(result("a/results/r", 1)),
            Change::InsertResult(result("a/results/other", 1)),
            Change::InsertRecord(kept.clone()),
        ])
        .await;
    let many = (0..50).map(|i| record(&format!("a/results/r/records/{i}"), i, &json!({"i": i})));
    world.given(many.map(Change::InsertRecord)).await;
    world
        .given([Change::DeleteResult {
            name: result_name("a/results/r"),
            expect: None,
        }])
        .await;
    let left = world.store.list_records(&everything()).await.unwrap();
    assert_eq!(
        left.into_iter().map(|row| row.item).collect::<Vec<_>>(),
        [kept]
    );
    // The names are free again, and nothing of the old bodies shows.
    world
        .given([Change::InsertResult(result("a/results/r", 2))])
        .await;
    let mut again = record("a/results/r/records/1", 3, &json!({}));
    again.data = Some(Payload::new("t".into(), bytes::Bytes::new()));
    world.given([Change::InsertRecord(again.clone())]).await;
    assert_eq!(world.record(&again.name).await, Some(again));
}

pub(super) async fn a_batch_happens_whole_or_not_at_all(world: World) {
    let r = result("a/results/r", 1);
    let x = record("a/results/r/records/x", 1, &json!({}));
    world
        .given([
            Change::InsertResult(r.clone()),
            Change::InsertRecord(x.clone()),
        ])
        .await;
    let y = record("a/results/r/records/y", 1, &json!({"y": 1}));
    let stale = Etag::from_text("stale");
    let refusals = [
        Change::InsertRecord(x.clone()),
        Change::InsertRecord(record("a/results/none/records/x", 1, &json!({}))),
        Change::ReplaceRecord {
            expect: stale.clone(),
            value: later_record(&x, 2),
        },
        Change::DeleteResult {
            name: result_name("a/results/none"),
            expect: None,
        },
    ];
    for refused in refusals {
        let changes = vec![
            Change::InsertRecord(y.clone()),
            Change::ReplaceResult {
                expect: r.etag.clone(),
                value: later_result(&r, 5),
            },
            Change::ReplaceRecord {
                expect: x.etag.clone(),
                value: later_record(&x, 5),
            },
            refused.clone(),
            Change::InsertResult(result("a/results/after", 1)),
        ];
        let outcome = world.store.commit(&Batch { changes }).await;
        // What the fourth change meets is what the third one left.
        assert!(outcome.is_err(), "{refused:?} was taken");
        assert_eq!(world.record(&y.name).await, None);
        assert_eq!(world.result(&r.name).await.as_ref(), Some(&r));
        assert_eq!(world.record(&x.name).await.as_ref(), Some(&x));
    }
    world
        .store
        .commit(&Batch::default())
        .await
        .expect("an empty batch is done already");
}

/// Large and small ones, some of which are refused at their ends, and single changes.
pub(super) async fn batches_that_come_together_leave_one_another_alone(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let made = |batch: usize, at: usize| {
        record(
            &format!("a/results/r/records/{batch}-{at}"),
            1,
            &json!({"batch": batch}),
        )
    };
    let size = |batch: usize| [1, 2, 40, 100][batch % 4];
    let is_refused = |batch: usize| batch % 3 == 1;
    let commits = (0..24).map(|batch| {
        let mut changes: Vec<_> = (0..size(batch))
            .map(|at| Change::InsertRecord(made(batch, at)))
            .collect();
        if is_refused(batch) {
            changes.push(Change::InsertRecord(made(batch, 0)));
        }
        let store = std::sync::Arc::clone(&world.store);
        tokio::spawn(async move { store.commit(&Batch { changes }).await })
    });
    let commits: Vec<_> = commits.collect();
    for (batch, commit) in commits.into_iter().enumerate() {
        let outcome = commit.await.expect("a commit does not panic");
        match is_refused(batch) {
            true => assert!(
                matches!(outcome, Err(Error::Exists(_))),
                "{batch}: {outcome:?}"
            ),
            false => assert!(outcome.is_ok(), "{batch}: {outcome:?}"),
        }
        for at in 0..size(batch) {
            let wanted = made(batch, at);
            let stored = world.record(&wanted.name).await;
            let wanted = (!is_refused(batch)).then_some(wanted);
            assert_eq!(stored, wanted, "{at} of batch {batch}");
        }
    }
}

pub(super) async fn a_batch_sees_its_own_changes(world: World) {
    let r = result("a/results/r", 1);
    let x = record("a/results/r/records/x", 1, &json!({}));
    let next = later_record(&x, 2);
    world
        .given([
            Change::InsertResult(r.clone()),
            Change::InsertRecord(x.clone()),
            Change::ReplaceRecord {
                expect: x.etag.clone(),
                value: next.clone(),
            },
            Change::DeleteRecord {
                name: x.name.clone(),
                expect: Some(next.etag.clone()),
            },
            Change::InsertRecord(x.clone()),
        ])
        .await;
    assert_eq!(world.record(&x.name).await, Some(x));
}

/// As many as drivers send at once, all alike but for a few that are refused.
pub(super) async fn of_many_that_come_at_once_each_has_its_outcome(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let named = |at: i64| match at {
        // There is no such result.
        40 => "a/results/none/records/x40".to_owned(),
        _ => format!("a/results/r/records/x{at}"),
    };
    let made = |at: i64, note: &str| record(&named(at), at, &json!({"note": note, "at": at}));
    world.given([Change::InsertRecord(made(20, "first"))]).await;
    let inserts: Vec<_> = (0..64)
        .map(|at| Change::InsertRecord(made(at, "new")))
        .collect();
    let outcomes = world.store.commit_each(&inserts).await;
    for (at, outcome) in outcomes.iter().enumerate() {
        match at {
            20 => assert!(matches!(outcome, Err(Error::Exists(_))), "{outcome:?}"),
            40 => assert!(matches!(outcome, Err(Error::Missing(_))), "{outcome:?}"),
            _ => assert!(outcome.is_ok(), "{at}: {outcome:?}"),
        }
    }
    let there = world.record(&record_name(&named(20))).await;
    assert_eq!(there, Some(made(20, "first")), "it keeps its payload");
    let replace = |at: i64| Change::ReplaceRecord {
        expect: match at {
            7 => Etag::from_text("another"),
            _ => made(at, "").etag,
        },
        value: made(at, "changed"),
    };
    let replaces: Vec<_> = (0..64).filter(|at| *at != 40).map(replace).collect();
    let outcomes = world.store.commit_each(&replaces).await;
    let refused: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().err())
        .collect();
    assert!(matches!(refused[..], [Error::Stale { .. }]), "{refused:?}");
    for at in (0..64).filter(|at| *at != 40) {
        let note = if at == 7 { "new" } else { "changed" };
        let stored = world
            .record(&record_name(&named(at)))
            .await
            .expect("it is there");
        assert_eq!(stored, made(at, note));
    }
}
