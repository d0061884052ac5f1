//! What is indexed is found by whoever asks, whatever wrote it.

use std::{num::NonZeroU32, path::Path as File, sync::Arc};

use serde_json::{Value, json};

use super::look;
use crate::{
    conformance::{
        backends::{Database, PostgresDatabase, SqliteFile},
        fixtures::{everything, later_record, record, result, time},
        tests::postgres_server,
    },
    driver::{
        Database as Driver,
        options::{Options, Schema},
        postgres, sqlite,
    },
    seam::{Batch, Change, Error, ListQuery, Maintenance, Store},
    sql::{row::SqlRow as _, statement::Statement},
    store::{SqlStore, resolve::over},
    tools::{
        fsck::{Depth, Event, Kind as Class, fsck},
        snapshot::Snapshot,
    },
};
use hindsight_filter::model::{Record, Resource, Tier};
use hindsight_filter::{Body, Filter, Row, indexed::Kind};

const PATH: &str = "data.spec.params[name==\"env\"].value";
const FEW: NonZeroU32 = NonZeroU32::new(3).unwrap();

fn migrating() -> Options {
    Options {
        schema: Schema::Migrate,
        ..Options::default()
    }
}

async fn store<D: Driver>(db: D) -> SqlStore<D> {
    over(db, &migrating()).await.unwrap()
}

/// A case runs on two stores, as two servers have them, of one database.
macro_rules! on_both {
    ($case:ident) => {
        mod $case {
            use super::*;

            #[tokio::test]
            async fn on_sqlite() {
                let database = SqliteFile::fresh().await;
                let url = database.url();
                let file = File::new(url.strip_prefix("sqlite:").unwrap());
                let one = store(sqlite::open(file, &migrating()).await.unwrap().0).await;
                let other = store(sqlite::open(file, &migrating()).await.unwrap().0).await;
                super::$case(&one, &other, &url).await;
                one.close().await;
                other.close().await;
                database.remove().await;
            }

            #[tokio::test]
            async fn on_postgres() {
                let Some(server) = postgres_server() else {
                    return;
                };
                let database = PostgresDatabase::fresh(&server).await;
                let url = database.url();
                let one = store(postgres::open(&url, &migrating()).await.unwrap().0).await;
                let other = store(postgres::open(&url, &migrating()).await.unwrap().0).await;
                super::$case(&one, &other, &url).await;
                one.close().await;
                other.close().await;
                database.remove().await;
            }
        }
    };
}

/// A record whose parameter `env` is this.
fn run(at: i64, env: &str) -> Record {
    let object = json!({"spec": {"params": [{"name": "env", "value": env}]}, "n": at});
    record(&format!("p/results/r/records/{at}"), at, &object)
}

async fn given(store: &SqlStore<impl Driver>, changes: Vec<Change>) {
    store.commit(&Batch { changes }).await.unwrap();
}

async fn begin(store: &SqlStore<impl Driver>) {
    let made = Change::InsertResult(result("p/results/r", 0));
    given(store, vec![made]).await;
}

async fn insert(store: &SqlStore<impl Driver>, records: impl IntoIterator<Item = Record>) {
    given(
        store,
        records.into_iter().map(Change::InsertRecord).collect(),
    )
    .await;
}

async fn create_index(store: &SqlStore<impl Driver>) -> i64 {
    let path = PATH.parse().unwrap();
    let made = store
        .create_index(&path, Kind::Text, time(0))
        .await
        .unwrap();
    made.id
}

async fn index_all(store: &SqlStore<impl Driver>) {
    let field = create_index(store).await;
    while !store.build_index(field, FEW).await.unwrap().ready {}
}

/// The ids of the records with this value, and how many the store returned for that.
async fn found(store: &SqlStore<impl Driver>, env: &str) -> (Vec<String>, usize) {
    let text = format!(
        "data.spec.params.exists(p, p.name == 'env' && p.value == {})",
        Value::from(env)
    );
    matching(store, &text).await
}

/// The ids of the records that a filter matches, and how many the store returned for it.
async fn matching(store: &SqlStore<impl Driver>, text: &str) -> (Vec<String>, usize) {
    let filter = Filter::compile(text, Resource::Records).unwrap();
    let query = ListQuery {
        condition: filter.split(&|test| store.ability(test)).condition,
        ..everything()
    };
    let rows = store.list_records(&query).await.unwrap();
    let returned = rows.len();
    let rows = rows.into_iter().map(|listed| listed.item);
    let mut ids: Vec<String> = rows
        .filter(|record| {
            let body = Body::of(record);
            let row = Row::Record {
                record,
                tier: Tier::Hot,
                body: &body,
            };
            filter.matches(&row).unwrap()
        })
        .map(|record| record.name.id().to_owned())
        .collect();
    ids.sort();
    (ids, returned)
}

async fn count(store: &SqlStore<impl Driver>, statement: &'static str) -> i64 {
    let rows = store.ask(&Statement::new(statement)).await.unwrap();
    rows[0].int(0).unwrap().unwrap()
}

async fn values(store: &SqlStore<impl Driver>) -> i64 {
    count(store, "SELECT count(*) FROM index_entries").await
}

async fn lacks(url: &str) -> Vec<Class> {
    let mut snapshot = Snapshot::open(url).await.unwrap();
    let mut found = Vec::new();
    let mut tell = |event| {
        if let Event::Found(finding) = event {
            found.push(finding.kind);
        }
    };
    fsck(&mut snapshot, Depth::Full, &mut tell).await.unwrap();
    snapshot.close().await;
    found
}

async fn what_is_written_is_indexed<D: Driver>(one: &SqlStore<D>, _: &SqlStore<D>, url: &str) {
    begin(one).await;
    index_all(one).await;
    insert(one, [run(1, "prod")]).await;
    insert(one, (2..10).map(|at| run(at, "test"))).await;
    let each: Vec<Change> = (10..20)
        .map(|at| Change::InsertRecord(run(at, "dev")))
        .collect();
    let outcomes = one.commit_each(&each).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(found(one, "prod").await, (vec!["1".to_owned()], 1));
    assert_eq!(found(one, "dev").await.1, 10);
    assert_eq!(values(one).await, 19);

    // An update takes the old value away, alone and among others.
    let replaced = |at: i64, of: &str, to: &str| {
        let before = run(at, of);
        let mut value = later_record(&before, 100 + at);
        value.data = run(at, to).data;
        Change::ReplaceRecord {
            expect: before.etag,
            value,
        }
    };
    given(one, vec![replaced(1, "prod", "stage")]).await;
    let each = [replaced(2, "test", "stage"), replaced(3, "test", "test")];
    assert!(one.commit_each(&each).await.iter().all(Result::is_ok));
    given(
        one,
        vec![replaced(4, "test", "test"), replaced(5, "test", "stage")],
    )
    .await;
    assert_eq!(found(one, "prod").await, (vec![], 0));
    let stage = ["1", "2", "5"].map(str::to_owned).to_vec();
    assert_eq!(found(one, "stage").await, (stage, 3));
    assert_eq!(values(one).await, 19);

    let name = run(1, "").name;
    given(one, vec![Change::DeleteRecord { name, expect: None }]).await;
    assert_eq!(values(one).await, 18);
    assert_eq!(lacks(url).await, []);
    let name = result("p/results/r", 0).name;
    given(one, vec![Change::DeleteResult { name, expect: None }]).await;
    assert_eq!(values(one).await, 0);
}
on_both!(what_is_written_is_indexed);

/// A server that has not heard of a field yet writes, inserting and updating.
async fn a_write_prepared_without_a_field_is_prepared_again<D: Driver>(
    one: &SqlStore<D>,
    other: &SqlStore<D>,
    url: &str,
) {
    begin(one).await;
    insert(one, [run(1, "test"), run(2, "test")]).await;
    let before = look(other).await.unwrap();
    index_all(one).await;
    other.noticed().keep_for_long(&before);
    insert(other, [run(3, "prod")]).await;
    other.noticed().keep_for_long(&before);
    let outcomes = other
        .commit_each(&[
            Change::InsertRecord(run(4, "prod")),
            Change::InsertRecord(run(5, "prod")),
        ])
        .await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    other.noticed().keep_for_long(&before);
    let mut value = later_record(&run(1, "test"), 50);
    value.data = run(1, "prod").data;
    let expect = run(1, "test").etag;
    given(other, vec![Change::ReplaceRecord { expect, value }]).await;
    let all = ["1", "3", "4", "5"].map(str::to_owned).to_vec();
    assert_eq!(found(one, "prod").await, (all.clone(), 4));
    assert_eq!(found(one, "nobody").await, (vec![], 0));

    // Another field makes what the first knew outdated too, and a refusal stays a refusal.
    let known = look(one).await.unwrap();
    let second = one
        .create_index(&"data.n".parse().unwrap(), Kind::Number, time(0))
        .await
        .unwrap();
    one.noticed().keep_for_long(&known);
    insert(one, [run(6, "prod")]).await;
    one.noticed().keep_for_long(&known);
    let again = Change::InsertRecord(run(6, "prod"));
    let again = one.commit(&again.into()).await;
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
    look(one).await.unwrap();
    while !one.build_index(second.id, FEW).await.unwrap().ready {}
    let all = ["1", "3", "4", "5", "6"].map(str::to_owned).to_vec();
    assert_eq!(found(one, "prod").await, (all, 5));
    assert_eq!(lacks(url).await, []);
}
on_both!(a_write_prepared_without_a_field_is_prepared_again);

/// A server that has not heard of a field yet takes its value away.
async fn absence_is_found_after_a_writer_that_did_not_know<D: Driver>(
    one: &SqlStore<D>,
    other: &SqlStore<D>,
    url: &str,
) {
    const ABSENT: &str = "!has(data.spec.sa)";
    let with = |object: &Value| record("p/results/r/records/1", 1, object);
    begin(one).await;
    let before = look(other).await.unwrap();
    let path = "data.spec.sa".parse().unwrap();
    let field = one
        .create_index(&path, Kind::Text, time(0))
        .await
        .unwrap()
        .id;
    while !one.build_index(field, FEW).await.unwrap().ready {}
    let stored = with(&json!({"spec": {"sa": "bot"}}));
    insert(one, [stored.clone()]).await;
    assert_eq!(matching(one, ABSENT).await, (vec![], 0));
    other.noticed().keep_for_long(&before);
    let mut value = later_record(&stored, 50);
    value.data = with(&json!({"spec": {}})).data;
    let expect = stored.etag;
    given(other, vec![Change::ReplaceRecord { expect, value }]).await;
    assert_eq!(values(one).await, 0);
    assert_eq!(matching(one, ABSENT).await, (vec!["1".to_owned()], 1));
    assert_eq!(lacks(url).await, []);

    let extra = "INSERT INTO index_entries (field, value, at_us, record_row) \
                 SELECT indexed_paths.row_id, 'bot', create_us, records.row_id FROM indexed_paths, records";
    one.tell(vec![Statement::new(extra)]).await.unwrap();
    assert_eq!(matching(one, ABSENT).await, (vec![], 0));
    assert_eq!(lacks(url).await, [Class::IndexExceeds]);
}
on_both!(absence_is_found_after_a_writer_that_did_not_know);

/// Of a payload that cannot be read no key is known, so no filter may rely on the index.
async fn a_damaged_payload_keeps_an_index_from_being_used<D: Driver>(
    one: &SqlStore<D>,
    _: &SqlStore<D>,
    _: &str,
) {
    begin(one).await;
    insert(one, [run(1, "prod"), run(2, "prod")]).await;
    let spoil = "UPDATE bodies SET bytes = substr(bytes, 2) WHERE record_row = \
                 (SELECT row_id FROM records WHERE id = '2')";
    one.tell(vec![Statement::new(spoil)]).await.unwrap();
    let field = create_index(one).await;
    let stopped = one.build_index(field, FEW).await;
    assert!(
        matches!(&stopped, Err(Error::Corrupt(why)) if why.contains("`p/results/r/records/2`")),
        "{stopped:?}"
    );
    let [index] = one.indexes().await.unwrap().try_into().unwrap();
    assert!(!index.ready);
    let name = run(2, "").name;
    given(one, vec![Change::DeleteRecord { name, expect: None }]).await;
    while !one.build_index(field, FEW).await.unwrap().ready {}
    look(one).await.unwrap();
    assert_eq!(found(one, "prod").await, (vec!["1".to_owned()], 1));
}
on_both!(a_damaged_payload_keeps_an_index_from_being_used);

/// What is indexed already is asked only once all is, and goes on where it stopped.
async fn an_index_is_built_beside_writers<D: Driver>(
    one: &SqlStore<D>,
    other: &SqlStore<D>,
    url: &str,
) {
    begin(one).await;
    insert(one, (0..10).map(|at| run(at, "prod"))).await;
    let field = create_index(one).await;
    assert!(!one.build_index(field, FEW).await.unwrap().ready);
    assert_eq!(found(one, "prod").await.0.len(), 10);
    assert_eq!(found(one, "nobody").await.1, 10);
    let [progress] = one.indexes().await.unwrap().try_into().unwrap();
    assert!(!progress.ready && progress.done_row > 0 && progress.done_row < progress.until_row);

    // Somebody else goes on, while a record before it and one behind it change.
    for at in [0, 9] {
        let mut value = later_record(&run(at, "prod"), 50);
        value.data = run(at, "test").data;
        let expect = run(at, "prod").etag;
        given(one, vec![Change::ReplaceRecord { expect, value }]).await;
    }
    insert(one, (10..20).map(|at| run(at, "prod"))).await;
    while !other.build_index(field, FEW).await.unwrap().ready {}
    look(one).await.unwrap();
    assert_eq!(found(one, "prod").await, {
        let mut ids: Vec<String> = (1..9).chain(10..20).map(|at| at.to_string()).collect();
        ids.sort();
        (ids, 18)
    });
    assert_eq!(found(one, "test").await.1, 2);
    assert_eq!(values(one).await, 20);
    assert_eq!(lacks(url).await, []);

    // A value that goes missing is damage.
    let gone = Statement::new("DELETE FROM index_entries WHERE value = 'test'");
    one.tell(vec![gone]).await.unwrap();
    assert_eq!(lacks(url).await, [Class::IndexLacks; 2]);
}
on_both!(an_index_is_built_beside_writers);

async fn a_field_is_added_once_and_removed_for_good<D: Driver>(
    one: &SqlStore<D>,
    other: &SqlStore<D>,
    _: &str,
) {
    let path = PATH.parse().unwrap();
    begin(one).await;
    index_all(one).await;
    insert(one, (0..10).map(|at| run(at, "prod"))).await;
    let again = other.create_index(&path, Kind::Text, time(0)).await;
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
    let known = look(other).await.unwrap();
    one.drop_index(&path).await.unwrap();
    let again = one.drop_index(&path).await;
    assert!(matches!(again, Err(Error::Missing(_))), "{again:?}");

    // Somebody who has not heard of that asks and writes.
    other.noticed().keep_for_long(&known);
    assert_eq!(found(other, "prod").await.0.len(), 10);
    insert(other, [run(10, "prod")]).await;
    assert_eq!(found(other, "prod").await.0.len(), 11);
    assert_eq!(values(one).await, 10);
    assert_eq!(one.sweep_indexes(FEW).await.unwrap(), 10);
    assert_eq!(values(one).await, 0);
    assert_eq!(count(one, "SELECT count(*) FROM dropped_indexes").await, 0);
    assert_eq!(found(one, "prod").await.0.len(), 11);

    for at in 0..crate::seam::MAX_INDEXES {
        let path = format!("data.a{at}").parse().unwrap();
        one.create_index(&path, Kind::Text, time(0)).await.unwrap();
    }
    let path = "data.more".parse().unwrap();
    let more = one.create_index(&path, Kind::Text, time(0)).await;
    assert!(matches!(more, Err(Error::Incompatible(_))), "{more:?}");
}
on_both!(a_field_is_added_once_and_removed_for_good);

/// Where nothing is indexed nothing is written of it.
async fn nothing_is_written_of_nothing<D: Driver>(one: &SqlStore<D>, _: &SqlStore<D>, _: &str) {
    begin(one).await;
    insert(one, (0..3).map(|at| run(at, "prod"))).await;
    assert_eq!(values(one).await, 0);
    assert!(Arc::new(look(one).await.unwrap()).all().is_empty());
}
on_both!(nothing_is_written_of_nothing);
