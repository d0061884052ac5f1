//! Which plans and access paths lists get.

use std::num::NonZeroU32;

use serde_json::json;
use sqlx::{Executor as _, Row as _, postgres::PgConnection};

use super::{MANY, connect};
use crate::{
    conformance::{
        World,
        backends::{
            Database as _, PostgresDatabase, lists_that_cost_the_page, lists_that_find_few,
            pages_of_logs,
        },
        fixtures::{everything, record, result, test},
        tests::postgres_server,
    },
    driver::postgres::bind::query,
    seam::{Change, ListQuery, PipelineColumn, PipelineQuery, PipelineScope, PipelineTest},
    sql::{
        access_path::{self, AccessPath},
        candidate::IndexCandidate,
        dialect::Dialect,
        list, pipelines,
        statement::Statement,
        time_window::TimeWindow,
    },
};
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Value};
use hindsight_filter::model::Resource;

/// A database of many rows, and a connection to it.
async fn of_many() -> Option<(PostgresDatabase, PgConnection)> {
    let database = PostgresDatabase::fresh(&postgres_server()?).await;
    World::open(&database.url()).await.maintenance.close().await;
    let mut connection = connect(&database).await;
    sqlx::raw_sql(MANY).execute(&mut connection).await.unwrap();
    Some((database, connection))
}

/// The lines of the plan of a statement.
async fn plan(connection: &mut PgConnection, statement: &Statement) -> Vec<String> {
    let explain = statement.prefixed("EXPLAIN ");
    let rows = query(&explain).fetch_all(connection).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// How many rows a line of a plan expects.
fn estimated_rows(line: &str) -> u64 {
    let (_, rows) = line.split_once(" rows=").expect(line);
    let (rows, _) = rows.split_once(' ').expect(line);
    rows.parse().expect(line)
}

#[tokio::test]
async fn first_pages_cost_the_page() {
    let Some((database, mut connection)) = of_many().await else {
        return;
    };
    for (name, resource, wanted, path) in lists_that_cost_the_page() {
        for part in list::parts(resource, &wanted) {
            let statement =
                list::list(Dialect::Postgres, resource, &wanted, part, path, 50).unwrap();
            let plan = plan(&mut connection, &statement).await;
            // An incremental sort is among rows of one time alone, as they come from an index.
            let sorts_more = |line: &String| {
                line.trim_start()
                    .trim_start_matches("->  ")
                    .starts_with("Sort  (")
                    && estimated_rows(line) > 64
            };
            let is_costly = |line: &String| {
                line.contains("Seq Scan on results")
                    || line.contains("Seq Scan on records")
                    || sorts_more(line)
            };
            assert!(!plan.iter().any(is_costly), "{name}:\n{}", plan.join("\n"));
        }
    }
    database.remove().await;
}

#[tokio::test]
async fn next_rows_in_order_are_planned_once() {
    let Some((database, mut connection)) = of_many().await else {
        return;
    };
    let (records, results) = (Resource::Records, Resource::Results);
    let (scan, choice) = (AccessPath::PrefixScan(2_000), AccessPath::DatabaseChoice);
    let present = |column| test(column, Is::Present);
    let failed = test(Column::Outcome, Is::Equal(Value::Int(2)));
    let label = Column::Label("a".to_owned());
    let labelled = test(label, Is::Equal(Value::Text("b".to_owned())));
    let of_outcome = ListQuery {
        condition: failed.clone(),
        ..everything()
    };
    let by_outcome = access_path::candidates(Dialect::Postgres, records, &of_outcome)[0];
    let window = AccessPath::LabelIndex(Some(TimeWindow::new(0, i64::MAX / 2)));
    for (parent, resource, condition, path) in [
        ("-", records, present(Column::DataType), scan),
        ("p1", records, present(Column::DataType), scan),
        ("nowhere", results, present(Column::SummaryStatus), scan),
        ("-", records, Condition::All, choice),
        ("p1", results, Condition::All, choice),
        ("-", records, present(Column::DataType), AccessPath::Late),
        ("-", records, failed, AccessPath::NextOf(by_outcome, 250)),
        ("p1", records, labelled, window),
    ] {
        let wanted = ListQuery {
            scope: format!("{parent}/results/-").parse().unwrap(),
            condition,
            bodies: true,
            ..everything()
        };
        let part = list::Part::With;
        let list = list::list(Dialect::Postgres, resource, &wanted, part, path, 50).unwrap();
        for _ in 0..7 {
            query(&list).fetch_all(&mut connection).await.unwrap();
        }
        let plans =
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = $1";
        let plans: (i64, i64) = sqlx::query_as(plans)
            .bind(list.text())
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(plans, (2, 5), "{}", list.text());
    }
    database.remove().await;
}

#[tokio::test]
async fn rows_of_one_time_are_all_among_the_next_ones() {
    let Some((database, mut connection)) = of_many().await else {
        return;
    };
    // Their order in the table, in which an index has those of one time, is not that of their numbers.
    let same = "UPDATE records SET create_us = create_us / 100 * 100 WHERE row_id % 2 = 0;
        UPDATE records SET create_us = create_us / 100 * 100 WHERE row_id % 2 = 1;
        ANALYZE records";
    sqlx::raw_sql(same).execute(&mut connection).await.unwrap();
    let sorted = "SELECT row_id FROM records ORDER BY create_us DESC, row_id DESC LIMIT 128";
    let sorted: Vec<i64> = sqlx::query_scalar(sorted)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    for (condition, path) in [
        (Condition::All, AccessPath::DatabaseChoice),
        (
            test(Column::DataType, Is::Present),
            AccessPath::PrefixScan(120),
        ),
    ] {
        let wanted = ListQuery {
            condition,
            ..everything()
        };
        let (records, part) = (Resource::Records, list::Part::With);
        let list = list::list(Dialect::Postgres, records, &wanted, part, path, 128).unwrap();
        let found = query(&list).fetch_all(&mut connection).await.unwrap();
        let found: Vec<i64> = found.iter().map(|row| row.get("row_id")).collect();
        assert_eq!(found, sorted, "{path}");
    }
    database.remove().await;
}

#[tokio::test]
async fn pages_of_logs_cost_the_page() {
    let Some((database, mut connection)) = of_many().await else {
        return;
    };
    sqlx::raw_sql(LOGS).execute(&mut connection).await.unwrap();
    for (name, statement) in pages_of_logs() {
        let plan = plan(&mut connection, &statement).await.join("\n");
        assert!(plan.contains("log_sources_by_name"), "{name}:\n{plan}");
        // Among the sources of one result alone.
        let plan = plan.replace("Incremental Sort", "");
        for costly in ["Sort  (", "Seq Scan", "Hash"] {
            let is_one = name.starts_with("rest ") || name.starts_with("p1/results/1");
            let may = is_one && costly == "Sort  (";
            assert!(may || !plan.contains(costly), "{name}:\n{plan}");
        }
    }
    database.remove().await;
}

/// Four logs of every result.
const LOGS: &str = "
    INSERT INTO log_sources (result_row, lines, bytes, stored_bytes, holes, packed, version, update_us, kind, restart,
                             log, pod, container)
      SELECT row_id, 1, 2, 20, 0, 0, 1, create_us, 0, 0, i::text::bytea, 'pod', 'step'
      FROM generate_series(1, 4) AS i, results;
    ANALYZE;";

#[tokio::test]
async fn few_rows_are_found_by_their_own_index() {
    let Some((database, mut connection)) = of_many().await else {
        return;
    };
    for (index, wanted) in lists_that_find_few() {
        let part = list::Part::With;
        let list = list::list(
            Dialect::Postgres,
            Resource::Records,
            &wanted,
            part,
            AccessPath::DatabaseChoice,
            50,
        )
        .unwrap();
        let plan = plan(&mut connection, &list).await;
        assert!(
            plan.iter().any(|line| line.contains(index)),
            "{index}: {plan:#?}"
        );
    }
    database.remove().await;
}

#[tokio::test]
async fn names_that_begin_so_are_sought_in_order_if_they_are_many() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let world = World::open(&database.url()).await;
    world
        .given([
            Change::InsertResult(result("a/results/r", 0)),
            Change::InsertRecord(record("a/results/r/records/x", 0, &json!({}))),
        ])
        .await;
    let copies = "INSERT INTO records (result_row, parent, id, uid, etag, create_us, update_us, data_type, object_name) \
                  SELECT result_row, parent, uuid_send(gen_random_uuid()), uuid_send(gen_random_uuid()), '', i * 1000, \
                  i * 1000, 'x', CASE WHEN i < 10 THEN 'rare-' WHEN i < 900 THEN 'old-' ELSE 'new-' END || i \
                  FROM generate_series(1, 12000) AS i, records";
    let mut connection = connect(&database).await;
    connection.execute(copies).await.unwrap();
    connection.execute("ANALYZE records").await.unwrap();
    for (prefix, goes_on, newest) in [("rare-", false, "rare-9"), ("old-", true, "old-899")] {
        let query = ListQuery {
            condition: test(
                Column::Object(ObjectField::Name),
                Is::StartsWith(prefix.to_owned()),
            ),
            limit: NonZeroU32::new(7).unwrap(),
            ..everything()
        };
        let plan = world.store.explain(Resource::Records, &query, 9).await;
        let steps = plan.unwrap().steps;
        let next = AccessPath::PrefixScan(100_000).to_string();
        assert_eq!(steps[0].contains(&next), goes_on, "{prefix}: {steps:#?}");
        let found = world.store.list_columns(&query).await.unwrap();
        let first = found[0].item.object.text(ObjectField::Name);
        assert_eq!((found.len(), first), (7, Some(newest)));
    }
    world.maintenance.close().await;
    database.remove().await;
}

#[tokio::test]
async fn records_of_a_cluster_are_sought_in_order_if_they_are_many() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let world = World::open(&database.url()).await;
    let [few, many] = ["cluster/west/a", "cluster/east/a"];
    for (parent, rows) in [(few, 0..9), (many, 9..400)] {
        let row = |at: i64| record(&format!("{parent}/results/r/records/{at}"), at, &json!({}));
        let parent = Change::InsertResult(result(&format!("{parent}/results/r"), 0));
        world.given([parent]).await;
        world
            .given(rows.map(|at| Change::InsertRecord(row(at))))
            .await;
    }
    for (cluster, steps) in [
        ("nowhere", "access path: scan and sort of all rows"),
        ("west", "access path: scan and sort of all rows"),
        (
            "east",
            "access path: scan of the next 100000 rows in order, then",
        ),
    ] {
        let query = ListQuery {
            condition: test(Column::Cluster, Is::Equal(Value::Text(cluster.to_owned()))),
            ..everything()
        };
        let plan = world.store.explain(Resource::Records, &query, 9).await;
        let first = plan.unwrap().steps.swap_remove(0);
        assert!(first.starts_with(steps), "{cluster}: {first}");
        let found = world.store.list_columns(&query).await.unwrap().len();
        let rows = [("nowhere", 0), ("west", 9), ("east", 391)];
        assert!(rows.contains(&(cluster, found)), "{cluster}: {found}");
    }
    world.maintenance.close().await;
    database.remove().await;
}

#[tokio::test]
async fn parts_of_names_are_looked_for_in_the_index_of_their_trigrams_alone() {
    let Some((database, mut connection)) = of_many().await else {
        return;
    };
    let name = |is| test(Column::Object(ObjectField::Name), is);
    let text = |text: &str| Is::Equal(Value::Text(text.to_owned()));
    let contains = |part: &str| name(Is::Contains(part.to_owned()));
    let typed = test(Column::DataType, text("tekton.dev/v1.TaskRun"));
    for (parent, condition) in [
        ("-", contains("123")),
        ("p1", contains("123")),
        ("-", name(Is::EndsWith("1234".to_owned()))),
        ("-", Condition::And(vec![typed.clone(), contains("345")])),
        ("p1", Condition::And(vec![typed, contains("run-")])),
    ] {
        let wanted = ListQuery {
            scope: format!("{parent}/results/-").parse().unwrap(),
            condition,
            ..everything()
        };
        let path = access_path::candidates(Dialect::Postgres, Resource::Records, &wanted)
            .into_iter()
            .find(|one| matches!(one, IndexCandidate::NameParts(_)));
        let path = AccessPath::Index(path.unwrap());
        let part = list::Part::With;
        let list = list::list(
            Dialect::Postgres,
            Resource::Records,
            &wanted,
            part,
            path,
            50,
        );
        let plan = plan(&mut connection, &list.unwrap()).await;
        let scan = "Bitmap Index Scan on records_by_name_trigrams";
        assert!(plan.iter().any(|line| line.contains(scan)), "{plan:#?}");
        let is_slow = |line: &&String| {
            line.contains("Seq Scan on records")
                || line.contains("Filter:") && line.contains("name_trigrams(")
        };
        assert_eq!(plan.iter().find(is_slow), None, "{plan:#?}");
    }
    database.remove().await;
}

#[tokio::test]
async fn trigrams_of_names_are_looked_for_in_their_index_alone() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    World::open(&database.url()).await.maintenance.close().await;
    let fill = "INSERT INTO pipelines (id, namespace, name, display_name, description, tags, create_s, bytes) \
                SELECT 'p' || i, '', 'pipeline-' || i, 'Pipeline ' || i % 10, '', '{}', i, 100 \
                FROM generate_series(1, 5000) AS i";
    let mut connection = connect(&database).await;
    connection.execute(fill).await.unwrap();
    connection.execute("ANALYZE pipeline_names").await.unwrap();
    let part = |column, part: &str| (column, PipelineTest::Substring(part.to_owned()));
    let (name, display) = (PipelineColumn::Name, PipelineColumn::DisplayName);
    // All names have the first one. Of two parts the longer one has fewer rows.
    for (tests, index) in [
        (vec![part(name.clone(), "LINE-")], "pipeline_names_parts"),
        (
            vec![part(name.clone(), "line-77"), part(display.clone(), "line")],
            "pipeline_names_parts",
        ),
        (
            vec![part(name, "ine"), part(display, "line 7")],
            "pipeline_names_display_parts",
        ),
    ] {
        let asked = PipelineQuery {
            scope: PipelineScope::Namespace(String::new()),
            tests,
            order: PipelineColumn::CreatedAt,
            descending: true,
            order_chars: 256,
            after: None,
            limit: 20,
            room: usize::MAX,
        };
        let plan = plan(
            &mut connection,
            &pipelines::counted_page(&asked, pipelines::Parts::Trigrams),
        )
        .await;
        let scan = format!("Bitmap Index Scan on {index} ");
        assert!(plan.iter().any(|line| line.contains(&scan)), "{plan:#?}");
        let is_slow = |line: &&String| line.contains("Filter:") && line.contains("trigrams(");
        assert_eq!(plan.iter().find(is_slow), None, "{plan:#?}");
    }
    database.remove().await;
}

#[tokio::test]
async fn what_took_long_comes_in_order_where_it_is_much() {
    let Some((database, mut connection)) = of_many().await else {
        return;
    };
    // One in four of the older half took more than ten minutes, and none of the newer.
    let took = "UPDATE records SET object_start_us = create_us, object_completion_us = create_us
                    + CASE WHEN row_id % 4 = 0 AND row_id < 10000 THEN 700000000 ELSE 1000000 END";
    for statement in [took, "VACUUM ANALYZE records"] {
        sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    for column in [Column::Duration, Column::ObjectDuration] {
        let query = ListQuery {
            condition: test(column, Is::Greater(Value::Int(600_000_000))),
            limit: NonZeroU32::new(50).unwrap(),
            ..everything()
        };
        let (dialect, resource) = (Dialect::Postgres, Resource::Records);
        assert_eq!(access_path::prefix_scan(dialect, resource, &query), None);
        let path = access_path::without_index(dialect, resource, &query);
        let list = list::list(dialect, resource, &query, list::Part::With, path, 50).unwrap();
        let plan = plan(&mut connection, &list).await.join("\n");
        assert!(plan.contains("using records_long"), "{plan}");
    }
    database.remove().await;
}
