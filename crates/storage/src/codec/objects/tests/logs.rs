//! Chunks of sealed logs that lie outside.

use std::sync::LazyLock;

use hindsight_logs::{Lines, Reader, Selection, ends};

use super::*;
use crate::{
    seam::{LogAppend, LogChunks, LogKey, LogKind, LogSource, LogStore, Purge, StoredLog},
    tools::fsck::Kind,
};

super::on_both! {
    life as a_sealed_log_lives_outside_as_long_as_its_run_on_sqlite
        and a_sealed_log_lives_outside_as_long_as_its_run_on_postgres,
    away as a_log_is_kept_and_read_while_the_bucket_is_away_on_sqlite
        and a_log_is_kept_and_read_while_the_bucket_is_away_on_postgres,
    lost as a_lost_part_of_a_log_is_found_on_sqlite
        and a_lost_part_of_a_log_is_found_on_postgres,
    purged as a_purged_log_leaves_no_object_on_sqlite
        and a_purged_log_leaves_no_object_on_postgres,
}

const MOST: NonZeroU32 = NonZeroU32::MAX;

fn key(run: &str) -> LogKey {
    LogKey {
        run: format!("a/results/r/records/{run}").parse().unwrap(),
        kind: LogKind::Container,
        source: LogSource {
            pod: "pod".to_owned(),
            ..LogSource::default()
        },
    }
}

fn logs(world: &World) -> &dyn LogStore {
    &**world.logs.as_ref().unwrap()
}

/// A text of about 8.3 MiB, so that it has three chunks.
fn text() -> Vec<u8> {
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let noise = Dice::new(5).bytes(8500 << 10);
        let lines = noise.chunks(1 << 10).flat_map(|line| {
            let line = line.iter().map(|byte| byte % 16 + b'a');
            line.chain([b'\n'])
        });
        lines.collect()
    });
    TEXT.clone()
}

async fn append(world: &World, run: &str, first: i64, text: Vec<u8>) -> StoredLog {
    let times = vec![7; ends(&text).count()];
    let append = LogAppend {
        key: key(run),
        parts: vec![Lines::new(first, text.into(), times, Vec::new()).unwrap()],
    };
    let mut outcomes = logs(world).append_logs(&[append], hours(0)).await;
    outcomes.remove(0).unwrap()
}

async fn sealed(world: &World, run: &str) -> StoredLog {
    append(world, run, 0, text()).await;
    logs(world).seal_log(&key(run), hours(0)).await.unwrap()
}

async fn read(world: &World, log: &StoredLog) -> Result<Vec<u8>, Error> {
    let chunks = LogChunks::new(logs(world), log.row);
    let mut reader = Reader::open(&chunks, Selection::default()).await?;
    let mut text = Vec::new();
    while let Some(lines) = reader.next(&chunks).await? {
        text.extend_from_slice(&lines.text);
    }
    Ok(text)
}

async fn life(url: &str) {
    let (world, store) = faulty(url).await;
    let log = sealed(&world, "x").await;
    assert!(store.names().await.is_empty());
    let packed = world.maintenance.pack_logs(hours(1), MOST).await.unwrap();
    assert_eq!(packed, u64::try_from(log.bytes).unwrap());
    assert_eq!(store.names().await.len(), 3);
    assert!(read(&world, &log).await.unwrap() == text());
    assert_eq!((swept(&world, 0).await, swept(&world, 9).await), (0, 0));
    assert_eq!(finds(url, Depth::Full).await, []);

    // What is small stays in the database.
    append(&world, "small", 0, b"one\ntwo\n".to_vec()).await;
    let small = logs(&world)
        .seal_log(&key("small"), hours(0))
        .await
        .unwrap();
    assert_eq!(small.packed, 2);
    assert_eq!(
        world.maintenance.pack_logs(hours(1), MOST).await.unwrap(),
        0
    );
    assert_eq!(store.names().await.len(), 3);

    // Deleted with its record, with its result, and alone.
    let name = key("x").run;
    let run = record(&name.to_string(), 1, &json!({}));
    world.given([Change::InsertRecord(run)]).await;
    world
        .given([Change::DeleteRecord { name, expect: None }])
        .await;
    assert_eq!((swept(&world, 10).await, swept(&world, 11).await), (0, 3));
    sealed(&world, "y").await;
    world.maintenance.pack_logs(hours(1), MOST).await.unwrap();
    assert!(logs(&world).delete_log(&key("y")).await.unwrap());
    assert_eq!((swept(&world, 12).await, swept(&world, 13).await), (0, 3));
    sealed(&world, "z").await;
    world.maintenance.pack_logs(hours(1), MOST).await.unwrap();
    let name = "a/results/r".parse().unwrap();
    world
        .given([Change::DeleteResult { name, expect: None }])
        .await;
    assert_eq!((swept(&world, 14).await, swept(&world, 15).await), (0, 3));
    assert!(store.names().await.is_empty());
    world.maintenance.close().await;
}

async fn away(url: &str) {
    let (world, store) = faulty(url).await;
    let log = sealed(&world, "x").await;
    store.no_puts.store(true, SeqCst);
    let refused = world.maintenance.pack_logs(hours(1), MOST).await;
    assert!(
        matches!(&refused, Err(Error::ObjectStoreUnavailable { object, .. }) if object.starts_with("memory:/")),
        "{refused:?}"
    );
    // Lines in the database are read, and others are taken.
    assert!(read(&world, &log).await.unwrap() == text());
    append(&world, "other", 0, b"one\n".to_vec()).await;
    store.no_puts.store(false, SeqCst);
    world.maintenance.pack_logs(hours(1), MOST).await.unwrap();
    store.no_gets.store(true, SeqCst);
    let refused = read(&world, &log).await;
    assert!(
        matches!(refused, Err(Error::ObjectStoreUnavailable { .. })),
        "{refused:?}"
    );
    let more = append(&world, "other", 1, b"two\n".to_vec()).await;
    assert_eq!(read(&world, &more).await.unwrap(), b"one\ntwo\n");
    store.no_gets.store(false, SeqCst);
    assert!(read(&world, &log).await.unwrap() == text());

    // A packer that dies after its upload leaves an object that nobody holds.
    let log = sealed(&world, "y").await;
    store.mute_puts.store(true, SeqCst);
    let uploaded = async {
        while store.names().await.len() < 4 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        packed = world.maintenance.pack_logs(hours(1), MOST) => panic!("{packed:?}"),
        () = uploaded => {}
    }
    store.mute_puts.store(false, SeqCst);
    assert!(read(&world, &log).await.unwrap() == text());
    world.maintenance.pack_logs(hours(1), MOST).await.unwrap();
    // That one, and the one that was noted and could not be uploaded.
    assert_eq!((swept(&world, 0).await, swept(&world, 1).await), (0, 2));
    assert!(read(&world, &log).await.unwrap() == text());
    assert_eq!(finds(url, Depth::Full).await, []);
    world.maintenance.close().await;
}

async fn lost(url: &str) {
    let (world, store) = faulty(url).await;
    let log = sealed(&world, "x").await;
    world.maintenance.pack_logs(hours(1), MOST).await.unwrap();
    let path = store.names().await.remove(1);
    let bytes = store.bytes(&path).await;
    let mut other = bytes.to_vec();
    other[1000] ^= 1;
    let name = key("x").run.to_string();
    for (spoilt, is_quick) in [(&other[..], false), (&other[..99], true)] {
        store.spoil(&path, Some(spoilt)).await;
        let told = read(&world, &log).await;
        assert!(
            matches!(&told, Err(Error::MissingObject(why)) if why.contains(path.as_ref())),
            "{told:?}"
        );
        let damage = vec![(Kind::ObjectLost, name.clone())];
        assert_eq!(finds(url, Depth::Full).await, damage);
        let quick = if is_quick { damage } else { Vec::new() };
        assert_eq!(finds(url, Depth::Quick).await, quick);
    }
    store.spoil(&path, Some(&bytes)).await;
    let loosen = "UPDATE objects SET holder = NULL, log_line = NULL WHERE log_line = 0";
    execute(url, loosen, loosen).await;
    let damage = [(Kind::ObjectUnheld, name.clone())];
    assert_eq!(finds(url, Depth::Quick).await, damage);
    let another = "UPDATE objects SET log_line = 1 WHERE log_line > 0";
    execute(url, another, another).await;
    let kinds = finds(url, Depth::Quick)
        .await
        .into_iter()
        .map(|(kind, _)| kind);
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        [
            Kind::ObjectIdle,
            Kind::ObjectIdle,
            Kind::ObjectUnheld,
            Kind::ObjectUnheld,
            Kind::ObjectUnheld
        ]
    );
    world.maintenance.close().await;
}

async fn purged(url: &str) {
    let (world, store) = faulty(url).await;
    let result = Purge::Result("a/results/r".parse().unwrap());
    for run in ["x", "y"] {
        sealed(&world, run).await;
        let run = record(&key(run).run.to_string(), 1, &json!({}));
        world.given([Change::InsertRecord(run)]).await;
    }
    world.maintenance.pack_logs(hours(1), MOST).await.unwrap();
    assert_eq!(store.names().await.len(), 6);
    let one = Purge::Record(key("x").run);
    assert_eq!(world.maintenance.purgeable(&one).await.unwrap().objects, 3);
    assert_eq!(
        world
            .maintenance
            .purge(&one, hours(0))
            .await
            .unwrap()
            .objects,
        3
    );
    assert_eq!(store.names().await.len(), 3);
    assert_eq!(
        world
            .maintenance
            .purge(&result, hours(0))
            .await
            .unwrap()
            .objects,
        3
    );
    assert!(store.names().await.is_empty());
    world.maintenance.close().await;
}
