//! Files of an archive that are written again, and removed.

use std::{sync::Arc, time::Duration};

use hindsight_filter::{condition::Condition, model::Record};
use serde_json::json;

use super::{
    World,
    disturbed::Disturbed,
    fixtures::{everything, record, result, result_name, time},
};
use crate::{
    codec::objects::Bucket,
    seam::{
        AggregateQuery, ArchiveFile, ArchiveIndex, Change, Error, ListQuery, Priority, Store,
        WholeVersion,
    },
    tiers::{Archive, Moving, Tiers, Unmovable},
};

/// A store with files, and what they are in.
struct Given {
    store: Arc<dyn Store>,
    tiers: Tiers,
    index: Arc<dyn ArchiveIndex>,
    bucket: Arc<Bucket>,
    archive: Archive,
}

impl Given {
    /// Results of two records each.
    async fn with(world: &World, results: &[&str]) -> Self {
        for name in results {
            let records = ["one", "two"].map(|id| {
                let payload = json!({"kind": "TaskRun", "note": format!("{name}/{id}").repeat(20)});
                Change::InsertRecord(record(&format!("{name}/records/{id}"), 2, &payload))
            });
            world.given([Change::InsertResult(result(name, 1))]).await;
            world.given(records).await;
        }
        let index = world.index.clone().expect("a database has one");
        let bucket = Bucket::slow(Duration::from_millis(5));
        let archive = Archive::new(Arc::clone(&bucket), Arc::clone(&index));
        Self {
            store: Arc::clone(&world.store),
            tiers: Tiers::new(Arc::clone(&world.store), archive.clone()),
            index,
            bucket,
            archive,
        }
    }

    /// Moves results to one file.
    async fn move_to_file(&self, results: &[&str]) {
        for change in self.written(results).await {
            self.store.commit(&change.into()).await.unwrap();
        }
    }

    /// Writes a file of results, and gives the changes by which they are in it.
    async fn written(&self, results: &[&str]) -> Vec<Change> {
        let mut all = Vec::new();
        for name in results {
            all.push(self.moving(name, usize::MAX).await.unwrap());
        }
        self.archive.write(all, time(5)).await.unwrap()
    }

    /// A result as it is now, unless its payloads have more bytes.
    async fn moving(&self, result: &str, most: usize) -> Result<Moving, Unmovable> {
        let name = result_name(result);
        let query = ListQuery {
            scope: (&name).into(),
            ..everything()
        };
        let rows = self.store.list_columns(&query).await.unwrap();
        let updates = rows.iter().map(|row| row.item.record.update_time);
        let result = self.store.result(&name).await.unwrap().unwrap();
        let version = WholeVersion::of(&result, updates);
        let moving = Moving::within(&*self.store, result, version, most).await;
        moving.unwrap()
    }

    async fn delete(&self, result: &str) {
        let change = Change::DeleteResult {
            name: result_name(result),
            expect: None,
        };
        self.store.commit(&change.into()).await.unwrap();
    }

    async fn compact(&self) -> usize {
        let groups = self.archive.compactable().await.unwrap();
        for files in &groups {
            self.archive.compact(files, time(6)).await.unwrap();
        }
        groups.len()
    }

    async fn listed(&self) -> Vec<Record> {
        let listed = self.tiers.list_records(&everything()).await.unwrap();
        listed.into_iter().map(|row| row.item).collect()
    }

    /// How many results each file has, of how many that it was written with.
    async fn occupied(&self) -> Vec<(u64, u64)> {
        let files = self.index.results_of_files().await.unwrap();
        let mut all: Vec<_> = files
            .iter()
            .map(|(file, now)| (*now, file.results))
            .collect();
        all.sort_unstable();
        all
    }

    async fn is_there(&self, file: &ArchiveFile) -> bool {
        match self.bucket.get(&file.path).await {
            Ok(_bytes) => true,
            Err(Error::MissingObject(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

pub(super) async fn small_files_are_joined_and_what_left_them_is_in_none(world: World) {
    let results = [
        "a/results/1",
        "a/results/2",
        "a/results/3",
        "a/results/4",
        "b/results/5",
    ];
    let given = Given::with(&world, &results).await;
    let before = given.listed().await;
    for result in &results[..3] {
        given.move_to_file(&[result]).await;
    }
    assert_eq!(given.compact().await, 0, "three are not many");
    for result in &results[3..] {
        given.move_to_file(&[result]).await;
    }
    let files = given.index.archive_files().await.unwrap();
    assert_eq!(given.compact().await, 1);
    assert_eq!(
        given.occupied().await,
        [(0, 1), (0, 1), (0, 1), (0, 1), (1, 1), (4, 4)]
    );
    assert_eq!(given.listed().await, before);
    assert_eq!(given.compact().await, 0, "once is enough");

    // Condemned first, removed later.
    assert_eq!(given.archive.sweep(time(6), time(7)).await.unwrap(), 0);
    assert_eq!(given.archive.sweep(time(7), time(8)).await.unwrap(), 0);
    assert!(given.is_there(&files[0]).await);
    assert_eq!(given.archive.sweep(time(8), time(9)).await.unwrap(), 4);
    assert!(!given.is_there(&files[0]).await);
    assert_eq!(given.listed().await, before);

    given.delete(results[1]).await;
    assert_eq!(given.compact().await, 0, "most of it is there");
    given.delete(results[2]).await;
    assert_eq!(given.compact().await, 1);
    assert_eq!(given.occupied().await, [(0, 4), (1, 1), (2, 2)]);
    let left = before.iter().filter(|record| {
        let result = record.name.result().to_string();
        ![results[1], results[2]].contains(&result.as_str())
    });
    assert!(given.listed().await.iter().eq(left));
}

pub(super) async fn full_files_are_not_joined_and_small_ones_once(world: World) {
    let results = ["a/results/1", "a/results/2", "a/results/3", "a/results/4"];
    let mut given = Given::with(&world, &results).await;
    let before = given.listed().await;
    // A result has some 700 bytes.
    given.archive = given.archive.with_file_bytes(1_000);
    for result in results {
        given.move_to_file(&[result]).await;
    }
    assert_eq!(given.compact().await, 0, "each is full");
    given.archive = given.archive.with_file_bytes(2_000);
    assert_eq!(given.compact().await, 1);
    assert_eq!(given.compact().await, 0, "once is enough");
    assert_eq!(given.listed().await, before);
}

pub(super) async fn a_result_that_went_while_its_file_was_written_is_in_no_file(world: World) {
    let results = ["a/results/1", "a/results/2"];
    let given = Given::with(&world, &results).await;
    let written = given.written(&results).await;
    given.delete(results[0]).await;
    let before = given.listed().await;
    let [Change::ArchiveResult { file, .. }, _] = written[..] else {
        panic!("{written:?}")
    };
    for (change, is_moved) in written.into_iter().zip([false, true]) {
        let moved = given.store.commit(&change.into()).await;
        assert_eq!(moved.is_ok(), is_moved, "{moved:?}");
    }
    let first = given.index.archive_files().await.unwrap().remove(0);
    given.archive.erase_from(file, time(7)).await.unwrap();
    assert!(!given.is_there(&first).await);
    assert_eq!(given.occupied().await, [(1, 1)]);
    assert_eq!(given.listed().await, before);
    given.archive.erase_from(file, time(7)).await.unwrap();
    assert_eq!(given.occupied().await, [(1, 1)]);
}

pub(super) async fn a_file_that_is_erased_while_it_is_written_is_not_left(world: World) {
    let given = Given::with(&world, &["a/results/1"]).await;
    let index = Disturbed::new(&given.index);
    let archive = Archive::new(Arc::clone(&given.bucket), Arc::clone(&index) as _);
    let (begun, known) = std::sync::mpsc::channel();
    let (eraser, noted) = (given.archive.clone(), Arc::clone(&given.index));
    index.after_begun(async move {
        for file in noted.archive_files().await.unwrap() {
            begun.send(file).unwrap();
        }
        let left = eraser.erase(&"a".parse().unwrap(), time(7)).await;
        assert_eq!(left.unwrap(), []);
    });
    let moving = given.moving("a/results/1", usize::MAX).await.unwrap();
    let written = archive.write(vec![moving], time(7)).await.unwrap();
    assert!(index.is_done() && written.is_empty(), "{written:?}");
    assert!(!given.is_there(&known.recv().unwrap()).await);
}

pub(super) async fn bytes_that_a_crash_leaves_of_an_erased_file_are_swept(world: World) {
    let given = Given::with(&world, &["a/results/1"]).await;
    given.move_to_file(&["a/results/1"]).await;
    let kept = given.index.archive_files().await.unwrap().remove(0);
    let begun = ArchiveFile {
        path: kept.path.replace(".parquet", "-begun.parquet"),
        ..kept.clone()
    };
    given.index.begin_file(&begun, time(6)).await.unwrap();
    let left = given.archive.erase(&"a".parse().unwrap(), time(7)).await;
    assert_eq!(left.unwrap(), []);
    let bytes = given.bucket.get(&kept.path).await.unwrap();
    given.bucket.put_new(&begun.path, bytes).await.unwrap();
    assert_eq!(given.archive.sweep(time(8), time(9)).await.unwrap(), 1);
    assert!(!given.is_there(&begun).await);
    assert!(given.is_there(&kept).await);
}

pub(super) async fn a_result_that_is_too_large_is_not_moved(world: World) {
    let given = Given::with(&world, &["a/results/1"]).await;
    let listed = given.listed().await;
    let payloads = listed.iter().flat_map(|record| &record.data);
    let bytes: usize = payloads.map(|payload| payload.value.len()).sum();
    given.moving("a/results/1", bytes).await.unwrap();
    let refused = given.moving("a/results/1", bytes - 1).await.map(drop);
    assert_eq!(refused, Err(Unmovable::TooLarge { most: bytes - 1 }));
}

pub(super) async fn what_is_erased_is_in_no_file(world: World) {
    let results = [
        "a/results/1",
        "a/results/2",
        "a/results/3",
        "b/results/4",
        "b/results/5",
    ];
    let given = Given::with(&world, &results).await;
    given.move_to_file(&results[..3]).await;
    given.move_to_file(&results[3..]).await;
    // Written, and no result is in it: a write came in between.
    given
        .archive
        .restore(&*given.store, &result_name(results[2]))
        .await
        .unwrap();
    given.written(&results[2..3]).await;
    given.delete(results[0]).await;
    given.delete(results[4]).await;
    let (before, files) = (
        given.listed().await,
        given.index.archive_files().await.unwrap(),
    );
    assert_eq!(given.occupied().await, [(0, 1), (1, 2), (1, 3)]);

    let left = given
        .archive
        .erase(&"a".parse().unwrap(), time(7))
        .await
        .unwrap();
    assert_eq!(left, []);
    assert_eq!(given.occupied().await, [(1, 1), (1, 2)]);
    for file in files {
        assert_eq!(
            given.is_there(&file).await,
            file.parent.as_str() == "b",
            "{file:?}"
        );
    }
    assert_eq!(given.listed().await, before);
    assert_eq!(
        given
            .archive
            .erase(&"a".parse().unwrap(), time(7))
            .await
            .unwrap(),
        []
    );
}

pub(super) async fn no_result_gets_into_a_file_that_is_removed(world: World) {
    let given = Given::with(&world, &["a/results/1"]).await;
    let before = given.listed().await;
    let late = given.written(&["a/results/1"]).await;
    given
        .archive
        .erase(&"a".parse().unwrap(), time(7))
        .await
        .unwrap();
    for change in late {
        let outcome = given.store.commit(&change.into()).await;
        assert!(
            matches!(outcome, Err(Error::Stale { .. } | Error::Missing(_))),
            "{outcome:?}"
        );
    }
    assert_eq!(given.listed().await, before);
}

pub(super) async fn lists_are_whole_while_files_are_written_again_and_removed(world: World) {
    let results = ["a/results/1", "a/results/2", "a/results/3"];
    let given = Given::with(&world, &results).await;
    let before = given.listed().await;
    given.move_to_file(&results).await;
    let count = AggregateQuery {
        scope: "-/results/-".parse().unwrap(),
        condition: Condition::All,
        keys: Vec::new(),
        counts: Vec::new(),
        amounts: Vec::new(),
        priority: Priority::Normal,
    };
    let counted = format!("{:?}", given.tiers.aggregate(&count).await.unwrap());
    // One that is being written is known before its bytes are there.
    let file = given.index.archive_files().await.unwrap().remove(0);
    let begun = ArchiveFile {
        path: file.path.replace(".parquet", "-begun.parquet"),
        ..file
    };
    given.index.begin_file(&begun, time(7)).await.unwrap();
    let groups = given.tiers.aggregate(&count).await.unwrap();
    assert_eq!(format!("{groups:?}"), counted);
    assert_eq!(given.listed().await, before);
    for round in 0..24 {
        let result = results[round % results.len()];
        let name = result_name(result);
        let changes = async {
            let restored = given.archive.restore(&*given.store, &name).await;
            assert!(restored.unwrap());
            given.move_to_file(&[result]).await;
            let left = given.archive.erase(&"a".parse().unwrap(), time(7)).await;
            assert_eq!(left.unwrap(), []);
        };
        // Sooner or later than the changes.
        let lists = async {
            tokio::time::sleep(Duration::from_millis(7 * (round as u64 % 8))).await;
            tokio::join!(given.listed(), given.tiers.aggregate(&count))
        };
        let ((), (listed, groups)) = tokio::join!(changes, lists);
        assert_eq!(listed, before, "round {round}");
        assert_eq!(format!("{:?}", groups.unwrap()), counted, "round {round}");
    }
}

pub(super) async fn what_comes_back_from_a_file_meanwhile_is_in_answers_about_its_result(
    world: World,
) {
    let given = Given::with(&world, &["a/results/1"]).await;
    let before = given.listed().await;
    let index = Disturbed::new(&given.index);
    let tiers = Tiers::new(
        Arc::clone(&given.store),
        Archive::new(Arc::clone(&given.bucket), Arc::clone(&index) as _),
    );
    let comes_back = async || {
        given.move_to_file(&["a/results/1"]).await;
        let (archive, store) = (given.archive.clone(), Arc::clone(&given.store));
        index.before_file(async move {
            let restored = archive.restore(&*store, &result_name("a/results/1")).await;
            assert!(restored.unwrap());
        });
    };
    let mut of_result = everything();
    of_result.scope = "a/results/1".parse().unwrap();
    comes_back().await;
    let listed = tiers.list_records(&of_result).await.unwrap();
    let listed: Vec<Record> = listed.into_iter().map(|row| row.item).collect();
    assert_eq!(listed, before);
    assert!(index.is_done());
    comes_back().await;
    let record = tiers.record(&before[0].name).await.unwrap();
    assert_eq!(record.as_ref(), Some(&before[0]));
    assert!(index.is_done());
}

pub(super) async fn a_sum_about_a_result_is_whole_while_its_file_is_written_again(world: World) {
    let given = Given::with(&world, &["a/results/1"]).await;
    given.move_to_file(&["a/results/1"]).await;
    let count = AggregateQuery {
        scope: "a/results/1".parse().unwrap(),
        condition: Condition::All,
        keys: Vec::new(),
        counts: Vec::new(),
        amounts: Vec::new(),
        priority: Priority::Normal,
    };
    let counted = format!("{:?}", given.tiers.aggregate(&count).await.unwrap());
    let file = given.index.archive_files().await.unwrap().remove(0);
    let again = ArchiveFile {
        path: file.path.replace(".parquet", "-again.parquet"),
        ..file.clone()
    };
    let to = given.index.begin_file(&again, time(7)).await.unwrap();
    let bytes = given.bucket.get(&file.path).await.unwrap();
    given.bucket.put_new(&again.path, bytes).await.unwrap();
    let disturbed = Disturbed::new(&given.index);
    let tiers = Tiers::new(
        Arc::clone(&given.store),
        Archive::new(Arc::clone(&given.bucket), Arc::clone(&disturbed) as _),
    );
    let index = Arc::clone(&given.index);
    disturbed.before_sum(async move {
        let ids = ["1".to_owned()];
        index.change_file(file.id, to, &ids).await.unwrap();
    });
    let groups = tiers.aggregate(&count).await.unwrap();
    assert_eq!(format!("{groups:?}"), counted);
    assert!(disturbed.is_done());
}
