//! What operators do with bodies that lie outside: checking, opening, copying.

use super::*;
use crate::{
    codec::objects::Settings,
    driver::options::{Options, Schema},
    store::resolve::open,
    tools::{
        copy::{Depots, Logs, Verify, copy},
        fsck::{Event, Kind, Orphans, fsck, orphans},
        snapshot::Snapshot,
    },
};

super::on_both! {
    checks as damage_of_objects_is_found_on_sqlite
        and damage_of_objects_is_found_on_postgres,
    openings as a_database_is_not_opened_without_its_objects_on_sqlite
        and a_database_is_not_opened_without_its_objects_on_postgres,
}

/// Logs are copied, and all is compared.
const ALL: (Logs, Verify) = (Logs::Yes, Verify::Yes);

/// Kinds of what is found, and of what.
pub(super) async fn finds(url: &str, depth: Depth) -> Vec<(Kind, String)> {
    let mut found = Vec::new();
    let depot = crate::codec::objects::testing::given(url);
    let mut snapshot = Snapshot::open_with(url, depot.as_ref()).await.unwrap();
    let mut tell = |event| {
        if let Event::Found(finding) = event {
            found.push((finding.kind, finding.of));
        }
    };
    fsck(&mut snapshot, depth, &mut tell).await.unwrap();
    let far = Timestamp::MAX;
    orphans(&mut snapshot, far, Orphans::Find, &mut tell)
        .await
        .unwrap();
    snapshot.close().await;
    found
}

async fn checks(url: &str) {
    let (world, store) = faulty(url).await;
    let (x, y) = (big("x", 1, 1), big("y", 1, 2));
    world.given([Change::InsertRecord(x.clone())]).await;
    let of_x = store.names().await.remove(0);
    world.given([Change::InsertRecord(y.clone())]).await;
    for depth in [Depth::Quick, Depth::Full] {
        assert_eq!(finds(url, depth).await, []);
        let bytes = store.bytes(&of_x).await;
        store.spoil(&of_x, None).await;
        let lost = [(Kind::ObjectLost, x.name.to_string())];
        assert_eq!(finds(url, depth).await, lost);
        store.spoil(&of_x, Some(&bytes[1..])).await;
        assert_eq!(finds(url, depth).await, lost);
        store.spoil(&of_x, Some(&bytes)).await;
    }
    // A stranger in the folder, which is removed when that is wanted.
    let folder = of_x.as_ref().split('/').next().unwrap();
    let stranger = format!("{folder}/ff/ffffffffffffffffffffffffffffffff");
    store
        .spoil(&stranger.as_str().into(), Some(b"strange"))
        .await;
    let orphan = [(Kind::ObjectOrphan, format!("memory:/{stranger}"))];
    assert_eq!(finds(url, Depth::Quick).await, orphan);
    let depot = crate::codec::objects::testing::given(url);
    let mut snapshot = Snapshot::open_with(url, depot.as_ref()).await.unwrap();
    let young = orphans(
        &mut snapshot,
        Timestamp::UNIX_EPOCH,
        Orphans::Remove,
        &mut |_| {},
    )
    .await;
    assert_eq!(young.unwrap(), (0, 0), "it is not old enough");
    let removed = orphans(&mut snapshot, Timestamp::MAX, Orphans::Remove, &mut |_| {}).await;
    assert_eq!(removed.unwrap(), (1, 7));
    snapshot.close().await;
    assert_eq!(store.names().await.len(), 2, "only the stranger went");

    // What the database knows of objects, spoilt.
    let loosen = "UPDATE objects SET holder = NULL WHERE holder = 1";
    execute(url, loosen, loosen).await;
    assert_eq!(
        finds(url, Depth::Full).await,
        [(Kind::ObjectUnheld, x.name.to_string())]
    );
    let idle = "INSERT INTO objects (object, size, holder) VALUES (x'00000000000000000000000000000001', 1, 1)";
    let idle_there = "INSERT INTO objects (object, size, holder) VALUES ('\\x00000000000000000000000000000001', 1, 1)";
    execute(url, idle, idle_there).await;
    assert_eq!(
        finds(url, Depth::Quick)
            .await
            .iter()
            .map(|(kind, _)| *kind)
            .collect::<Vec<_>>(),
        [Kind::ObjectIdle, Kind::ObjectUnheld]
    );
    world.maintenance.close().await;
}

async fn why_not(url: &str, depot: Option<Arc<ObjectBackend>>) -> String {
    let options = Options {
        schema: Schema::Migrate,
        depot,
        ..Options::default()
    };
    match open(url, &options).await {
        Err(Error::Incompatible(why)) => why,
        other => panic!("{other:?}"),
    }
}

async fn openings(url: &str) {
    let (world, store) = faulty(url).await;
    let over =
        |store: &Arc<Faulty>| ObjectBackend::over(Arc::<Faulty>::clone(store), ABOVE, Some(KEEP));
    // As long as it refers to nothing, it can be opened either way.
    let plain = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    open(url, &plain).await.unwrap().maintenance.close().await;
    let record = big("x", 1, 1);
    world.given([Change::InsertRecord(record.clone())]).await;
    let why = why_not(url, None).await;
    assert!(
        why.contains("keeps 1 objects (5000 bytes)") && why.contains("set objects_url"),
        "{why}"
    );
    let other = Arc::new(Faulty::default());
    let why = why_not(url, Some(over(&other))).await;
    assert!(
        why.contains("does not hold the objects of this database"),
        "{why}"
    );
    // One that does not answer is no reason.
    store.no_gets.store(true, SeqCst);
    let options = Options {
        depot: Some(over(&store)),
        ..plain
    };
    let opened = open(url, &options).await.unwrap();
    assert!(matches!(
        opened.store.record(&record.name).await,
        Err(Error::ObjectStoreUnavailable { .. })
    ));
    opened.maintenance.close().await;
    store.no_gets.store(false, SeqCst);
    let mut snapshot = Snapshot::open(url).await.unwrap();
    let blind = fsck(&mut snapshot, Depth::Full, &mut |_| {}).await;
    assert!(matches!(blind, Err(Error::Incompatible(_))), "{blind:?}");
    snapshot.close().await;
    assert_eq!(
        world
            .maintenance
            .sweep_objects(hours(1), MOST)
            .await
            .unwrap(),
        0
    );
    world.maintenance.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_reads_from_one_object_store_and_writes_into_another() {
    let (from, to, back) = (
        SqliteFile::fresh().await,
        SqliteFile::fresh().await,
        SqliteFile::fresh().await,
    );
    let (world, store) = faulty(&from.url()).await;
    let records: Vec<_> = (0..5).map(|at| big(&format!("x{at}"), 1, at)).collect();
    world
        .given(records.iter().cloned().map(Change::InsertRecord))
        .await;
    world.maintenance.close().await;
    let refused = copy(&from.url(), &to.url(), &Depots::default(), ALL, &mut |_| {}).await;
    assert!(
        matches!(refused, Err(Error::Incompatible(_))),
        "{refused:?}"
    );

    let directory = tempfile::TempDir::new().unwrap();
    let settings = Settings {
        url: format!("file://{}/objects", directory.path().display()),
        above: ABOVE,
        log_above: ABOVE,
        keep: None,
        options: Default::default(),
    };
    let local = ObjectBackend::open(&settings).unwrap();
    let depots = Depots {
        from: crate::codec::objects::testing::given(&from.url()),
        to: Some(Arc::clone(&local)),
    };
    let mut found = Vec::new();
    let mut tell = |event| found.push(format!("{event:?}"));
    let copied = copy(&from.url(), &to.url(), &depots, ALL, &mut tell)
        .await
        .unwrap();
    assert_eq!((copied.records.created, copied.records.refused), (5, 0));
    assert!(
        !found.iter().any(|event| event.contains("Found")),
        "{found:?}"
    );
    assert_eq!(local.counted().written, 5);
    // And into the database itself.
    let depots = Depots {
        from: Some(local),
        to: None,
    };
    copy(&to.url(), &back.url(), &depots, ALL, &mut |_| {})
        .await
        .unwrap();
    let last = World::open(&back.url()).await;
    for record in &records {
        assert_eq!(last.record(&record.name).await.as_ref(), Some(record));
    }
    last.maintenance.close().await;

    // A lost one is refused by name, and the others are copied.
    let path = store.names().await.remove(2);
    store.spoil(&path, None).await;
    let third = SqliteFile::fresh().await;
    let depots = Depots {
        from: crate::codec::objects::testing::given(&from.url()),
        to: None,
    };
    let mut refused = 0;
    let mut tell = |event| {
        refused += u64::from(matches!(event, crate::tools::copy::Event::Refused(_)));
    };
    let copied = copy(&from.url(), &third.url(), &depots, ALL, &mut tell)
        .await
        .unwrap();
    assert_eq!(
        (copied.records.created, copied.records.refused, refused),
        (4, 1, 1)
    );
}
