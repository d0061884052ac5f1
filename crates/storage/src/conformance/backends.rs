//! Databases to test on: a file in a temporary directory, a database on a PostgreSQL server.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Mutex};

use async_trait::async_trait;

use super::fixtures::everything;
use crate::{
    driver::{
        migrations::MIGRATIONS,
        options::{Options, Schema},
    },
    memory::Memory,
    seam::{Error, ListQuery},
    sql::{
        access_path::{AccessPath, with_tested_parent},
        logs::list as logs,
        statement::Statement,
    },
    store::resolve::open,
};
pub(crate) use crate::{testing::Database, testing::PostgresDatabase, testing::SqliteFile};
use hindsight_filter::model::Resource;
use hindsight_filter::{
    Order, Position,
    condition::{Column, Condition, Is, ObjectField, Test, Value},
    order::KeyValue,
};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Executor, PgPool, Row, SqlitePool, postgres::PgConnectOptions,
    sqlite::SqliteConnectOptions,
};

/// Maps in memory that outlive the stores over them, as a database does.
pub(crate) struct MemoryDatabase(String);

static MEMORIES: Mutex<BTreeMap<String, Memory>> = Mutex::new(BTreeMap::new());

impl MemoryDatabase {
    pub(crate) fn fresh() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }
}

/// A store over the maps of this name.
pub(crate) fn memory(name: &str) -> Memory {
    let mut memories = MEMORIES.lock().expect("no test dies in here");
    memories.entry(name.to_owned()).or_default().opened()
}

#[async_trait]
impl Database for MemoryDatabase {
    fn url(&self) -> String {
        format!("memory:{}", self.0)
    }

    async fn remove(self) {
        let mut memories = MEMORIES.lock().expect("no test dies in here");
        memories.remove(&self.0);
    }
}

/// How many rows each table has, but for those that are there from the beginning.
pub(crate) async fn rows(url: &str) -> BTreeMap<&'static str, i64> {
    const TABLES: [&str; 5] = [
        "results",
        "records",
        "bodies",
        "dictionaries",
        "dictionary_keys",
    ];
    let mut rows = BTreeMap::new();
    for table in TABLES {
        rows.insert(
            table,
            number(url, format!("SELECT count(*) FROM {table}")).await,
        );
    }
    rows
}

/// How many bodies refer to a dictionary.
pub(crate) async fn referring(url: &str) -> i64 {
    number(url, "SELECT count(dictionary) FROM bodies".to_owned()).await
}

/// How many bodies refer to a dictionary of another parent.
pub(crate) async fn crossing(url: &str) -> i64 {
    let ask = "SELECT count(*) FROM bodies AS b JOIN records AS r ON r.row_id = b.record_row \
               JOIN dictionaries AS p ON p.row_id = b.dictionary WHERE p.parent <> r.parent";
    number(url, ask.to_owned()).await
}

/// Executes statements of another program.
pub(crate) async fn execute(url: &str, sqlite: &str, postgres: &str) {
    let sql = |text: &str| AssertSqlSafe(text.to_owned());
    if url.starts_with("sqlite:") {
        let pool = SqlitePool::connect(url).await.expect("the file opens");
        let done = sqlx::raw_sql(sql(sqlite)).execute(&pool).await;
        done.expect("statements are executed");
        pool.close().await;
    } else {
        let pool = PgPool::connect(url).await.expect("the database opens");
        let done = sqlx::raw_sql(sql(postgres)).execute(&pool).await;
        done.expect("statements are executed");
        pool.close().await;
    }
}

/// Executes statements that no key and, on PostgreSQL, no trigger refuses.
pub(crate) async fn tamper(url: &str, sqlite: &str, postgres: &str) {
    let sqlite = format!("PRAGMA foreign_keys = off; {sqlite}");
    let postgres = format!("SET session_replication_role = replica; {postgres}");
    execute(url, &sqlite, &postgres).await;
}

async fn number(url: &str, ask: String) -> i64 {
    if url.starts_with("sqlite:") {
        let options: SqliteConnectOptions = url.parse().expect("it is the URL of a file");
        let mut connection = options.connect().await.expect("the file opens");
        let row = connection.fetch_one(AssertSqlSafe(ask)).await;
        row.expect("rows are counted").get(0)
    } else {
        let options: PgConnectOptions = url.parse().expect("it is the URL of a database");
        let mut connection = options.connect().await.expect("the database opens");
        let row = connection.fetch_one(AssertSqlSafe(ask)).await;
        row.expect("rows are counted").get(0)
    }
}

/// The parent and the content of each dictionary.
pub(crate) async fn dictionaries(url: &str) -> Vec<(String, Vec<u8>)> {
    const ASK: &str = "SELECT parent, bytes FROM dictionaries ORDER BY row_id";
    let opened = |(parent, frame): (String, Vec<u8>)| {
        let content = zstd::stream::decode_all(frame.as_slice());
        (parent, content.expect("a dictionary is a frame by itself"))
    };
    let rows: Vec<(String, Vec<u8>)> = if url.starts_with("sqlite:") {
        let options: SqliteConnectOptions = url.parse().expect("it is the URL of a file");
        let mut connection = options.connect().await.expect("the file opens");
        sqlx::query_as(ASK).fetch_all(&mut connection).await
    } else {
        let options: PgConnectOptions = url.parse().expect("it is the URL of a database");
        let mut connection = options.connect().await.expect("the database opens");
        sqlx::query_as(ASK).fetch_all(&mut connection).await
    }
    .expect("dictionaries are read");
    rows.into_iter().map(opened).collect()
}

/// Opens one new database many times at once: it is migrated once, and every opener can use it.
pub(crate) async fn is_migrated_once(url: &str) {
    let openers: Vec<_> = (0..6)
        .map(|_| {
            let url = url.to_owned();
            let options = Options {
                schema: Schema::Migrate,
                ..Options::default()
            };
            tokio::spawn(async move { open(&url, &options).await })
        })
        .collect();
    let mut applied = Vec::new();
    for opener in openers {
        let opened = opener
            .await
            .expect("the opener ends")
            .expect("the database opens");
        opened
            .maintenance
            .ping()
            .await
            .expect("store available again");
        applied.extend(opened.applied);
        opened.maintenance.close().await;
    }
    assert_eq!(
        applied,
        MIGRATIONS.iter().map(|m| m.version).collect::<Vec<_>>()
    );
}

/// Why `url` is not opened.
pub(crate) async fn refusal(url: &str, schema: Schema) -> String {
    match open(
        url,
        &Options {
            schema,
            ..Options::default()
        },
    )
    .await
    {
        Err(Error::Incompatible(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Lists whose first page must come from an index, in order, without sorting, their names and the
/// path that is tried first.
pub(crate) fn lists_that_cost_the_page() -> Vec<(String, Resource, ListQuery, AccessPath<'static>)>
{
    let mut lists = Vec::new();
    let data_type = Condition::Test(Test {
        column: Column::DataType,
        is: Is::Equal(Value::Text("tekton.dev/v1.TaskRun".to_owned())),
        negated: false,
    });
    for scope in ["-/results/-", "p1/results/-"] {
        for resource in [Resource::Results, Resource::Records] {
            let fields: &[Column] = match resource {
                Resource::Results => &[
                    Column::CreateTime,
                    Column::UpdateTime,
                    Column::SummaryStartTime,
                    Column::SummaryEndTime,
                ],
                Resource::Records => &[Column::CreateTime, Column::UpdateTime],
            };
            for field in fields {
                for (descending, after) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
                    let order = Order::by(field.clone(), descending);
                    let at = Position {
                        keys: vec![Some(KeyValue::Int(1_767_225_600_010_000))],
                        id: 10_000,
                    };
                    let mut query = ListQuery {
                        scope: scope.parse().expect("the pattern is legal"),
                        order: order.clone(),
                        after: (after == 1).then_some(at),
                        limit: NonZeroU32::new(50).expect("50 is not 0"),
                        ..everything()
                    };
                    let name = format!("{resource:?} {scope} {order:?} after {after}");
                    let path = match (field, scope) {
                        (Column::UpdateTime, "p1/results/-") => AccessPath::PrefixScan(2_000),
                        _ => AccessPath::DatabaseChoice,
                    };
                    let asked = with_tested_parent(query.clone());
                    lists.push((name.clone(), resource, asked, path));
                    if resource == Resource::Records && *field == Column::CreateTime {
                        query.condition = data_type.clone();
                        let path = AccessPath::DatabaseChoice;
                        lists.push((format!("{name} of a type"), resource, query, path));
                    }
                }
            }
        }
    }
    lists
}

/// Lists of one parent that few rows can match, and the index that must find them.
pub(crate) fn lists_that_find_few() -> Vec<(&'static str, ListQuery)> {
    let few = |index, column, is| {
        let test = Test {
            column,
            is,
            negated: false,
        };
        let scope = "p1/results/-".parse().expect("the pattern is legal");
        let condition = Condition::And(vec![Condition::All, Condition::Test(test)]);
        (
            index,
            ListQuery {
                scope,
                condition,
                ..everything()
            },
        )
    };
    let text = |text: &str| Is::Equal(Value::Text(text.to_owned()));
    vec![
        few("records_by_name", Column::RecordId, text("7")),
        few(
            "records_by_name",
            Column::RecordName,
            text("p1/results/7/records/7"),
        ),
        few(
            "records_by_name",
            Column::RecordName,
            Is::OneOf(vec![
                Value::Text("p1/results/7/records/7".to_owned()),
                Value::Text("p1/results/8/records/8".to_owned()),
            ]),
        ),
        few(
            "records_by_object_uid",
            Column::Object(ObjectField::Uid),
            text("7"),
        ),
        few(
            "records_by_object_name",
            Column::Object(ObjectField::Name),
            text("7"),
        ),
        few(
            "records_by_object_name",
            Column::Object(ObjectField::Name),
            Is::OneOf(vec![
                Value::Text("7".to_owned()),
                Value::Text("8".to_owned()),
            ]),
        ),
    ]
}

/// Statements for pages of logs that read little more than the page, and what each is.
pub(crate) fn pages_of_logs() -> Vec<(String, Statement)> {
    let keys = [
        KeyValue::Int(1_767_225_600_010_000),
        KeyValue::Text("run".to_owned()),
        KeyValue::Int(0),
        KeyValue::Text("pod".to_owned()),
        KeyValue::Text("step".to_owned()),
        KeyValue::Int(0),
    ];
    let after = Position {
        keys: keys.into_iter().map(Some).collect(),
        id: 10_000,
    };
    let mut pages = Vec::new();
    for scope in ["-/results/-", "p1/results/-", "p1/results/1"] {
        let pattern = scope.parse().expect("the pattern is legal");
        let rest = logs::rest_of_result(&pattern, &after, 50);
        let rest = rest.expect("the place is a source");
        pages.push((format!("rest of a result of {scope}"), rest));
        for after in [None, Some(&after)] {
            let name = format!("{scope} after {after:?}");
            pages.push((name, logs::results(&pattern, after, 50)));
        }
    }
    pages
}
