//! Random filters, orders and pages of random rows: every database gives what plain evaluation
//! gives, row for row and in the same order.

use std::{cell::Cell, num::NonZeroU32, thread};

use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{TestError, TestRunner},
};

use super::rows::{Ask, Opened, Rows};
use hindsight_filter::model::Resource;
use hindsight_filter::{
    Filter,
    indexed::Kind,
    parse_order,
    samples::{record_filter, record_order, record_row, result_filter, result_order, result_row},
};
use hindsight_storage::testing::{Database, PostgresDatabase, SqliteFile, postgres_server};

/// Sets of rows, each in databases of its own.
const SETS: u32 = 4;
/// Filters of records, and of results, that are tried on each set.
const FILTERS: u32 = 1_300;
/// Rows that are drawn for a set; those with the same name are one.
const DRAWN: usize = 48;

/// What is indexed before there are rows, and after, in those databases where something is.
const INDEXED: [&[(&str, Kind)]; 2] = [
    &[
        ("data.spec.params[name==\"env\"].value", Kind::Text),
        ("data.spec.n", Kind::Number),
        ("data.metadata.creation_timestamp", Kind::Time),
    ],
    &[
        ("data.spec.params[name==\"n\"].value", Kind::Number),
        ("data.flag", Kind::Bool),
        ("data.spec.params[0].value", Kind::Text),
        ("data.status.conditions[1].reason", Kind::Text),
    ],
];

/// What is asked, as people would write it.
#[derive(Debug, Clone)]
pub(super) struct Question {
    filter: String,
    order: String,
    scope: &'static str,
    size: u32,
    page_bytes: usize,
}

fn question(
    filter: impl Strategy<Value = String>,
    order: impl Strategy<Value = String>,
    most: u32,
) -> impl Strategy<Value = Question> {
    let scope = prop_oneof![
        3 => Just("-/results/-"),
        2 => Just("a/results/-"),
        1 => select(vec!["a/results/b", "-/results/a", "none/results/-"]),
    ];
    let size = prop_oneof![4 => Just(most), 1 => 1_u32..8];
    let page_bytes = prop_oneof![5 => Just(1 << 20), 1 => 1_usize..2_000];
    (filter, order, scope, size, page_bytes).prop_map(|(filter, order, scope, size, page_bytes)| {
        Question {
            filter,
            order,
            scope,
            size,
            page_bytes,
        }
    })
}

pub(super) fn drawn<T>(
    count: usize,
    runner: &mut TestRunner,
    row: impl Strategy<Value = T>,
) -> Vec<T> {
    (0..count)
        .map(|_| row.new_tree(runner).unwrap().current())
        .collect()
}

/// Asks every database for so many pages, and compares with the rows at hand.
pub(super) async fn agree(
    (question, pages): (&Question, usize),
    resource: Resource,
    rows: &Rows,
    databases: &[Opened],
) -> Result<(), TestCaseError> {
    let fail = |why: String| Err(TestCaseError::fail(why));
    let filter = match Filter::compile(&question.filter, resource) {
        Ok(filter) => filter,
        Err(error) => return fail(error.to_string()),
    };
    let order = match parse_order(&question.order, resource) {
        Ok(order) => order,
        Err(error) => return fail(error.to_string()),
    };
    let scope = match (resource, question.scope.split_once("/results/")) {
        (Resource::Results, Some((parent, _))) => format!("{parent}/results/-"),
        _ => question.scope.to_owned(),
    };
    let ask = Ask {
        resource,
        scope: &scope,
        filter: &filter,
        order,
        size: NonZeroU32::new(question.size).unwrap(),
        page_bytes: question.page_bytes,
    };
    let wanted = rows.names(&ask);
    for database in databases {
        let (got, is_all) = match database.first_names(&ask, pages).await {
            Ok(got) => got,
            Err(error) => return fail(format!("{}: {error}: {error:?}", database.name)),
        };
        if wanted.starts_with(&got) && (!is_all || got.len() == wanted.len()) {
            continue;
        }
        let told = filter.explain(&|test| database.store.ability(test));
        let at = got.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        let row = |names: &[String]| names.get(at).map_or("the end".to_owned(), |n| rows.show(n));
        return fail(format!(
            "{}: {} rows, wanted {}; {told}\nat {at}: {}\nwanted: {}",
            database.name,
            got.len(),
            wanted.len(),
            row(&got),
            row(&wanted)
        ));
    }
    Ok(())
}

/// Asks as many questions as the configuration says, each with its number and pages of at most so many rows, and
/// panics with the smallest one that fails.
pub(super) fn ask_all(
    config: &ProptestConfig,
    resource: Resource,
    most: u32,
    ask: impl Fn(u32, &Question) -> Result<(), TestCaseError>,
) {
    let questions = match resource {
        Resource::Records => question(record_filter(), record_order(), most).boxed(),
        Resource::Results => question(result_filter(), result_order(), most).boxed(),
    };
    let asked = Cell::new(0_u32);
    let outcome = TestRunner::new(config.clone()).run(&questions, |question| {
        asked.set(asked.get() + 1);
        ask(asked.get(), &question)
    });
    match outcome {
        Ok(()) => assert!(asked.get() >= config.cases, "{resource:?}: too few filters"),
        Err(TestError::Fail(why, question)) => panic!("{resource:?} {question:#?}\n{why}"),
        Err(error) => panic!("{error}"),
    }
}

/// Draws a set of rows, puts it into databases, and asks them for it.
fn compare_on_one_set(urls: &[(&'static str, String)]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = ProptestConfig {
        cases: FILTERS,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config.clone());
    let results = drawn(DRAWN, &mut runner, result_row());
    let records = drawn(DRAWN, &mut runner, record_row());
    let rows = Rows::new(results, records);
    assert!(rows.results.len() > 5 && rows.records.len() > 10);
    let mut databases = Vec::new();
    for (name, url) in urls {
        let opened = runtime.block_on(Opened::at(name, url));
        let indexes = name.ends_with("indexed");
        let [before, after] = if indexes { INDEXED } else { [&[][..]; 2] };
        runtime.block_on(opened.create_index(before));
        runtime.block_on(rows.fill(&*opened.store));
        runtime.block_on(opened.create_index(after));
        if let Some(every) = ["all in files", "half in files"]
            .iter()
            .position(|end| name.ends_with(end))
        {
            runtime.block_on(opened.move_to_files(every + 1));
        }
        databases.push(opened);
    }
    for resource in [Resource::Records, Resource::Results] {
        ask_all(&config, resource, 1_000, |number, question| {
            // Files take as long to ask as all the others.
            let without_files = usize::from(!number.is_multiple_of(16));
            let databases = &databases[..databases.len() - without_files];
            runtime.block_on(agree((question, usize::MAX), resource, &rows, databases))
        });
    }
    for database in databases {
        runtime.block_on(database.close());
    }
}

#[test]
fn every_database_answers_as_plain_evaluation_does() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = postgres_server();
    let set = |number: u32| {
        let files = [(); 3].map(|()| runtime.block_on(SqliteFile::fresh()));
        let mut urls = vec![
            ("SQLite", files[0].url()),
            ("SQLite, indexed", files[1].url()),
        ];
        let fresh = |name| {
            let server = server.as_ref()?;
            Some((name, runtime.block_on(PostgresDatabase::fresh(server))))
        };
        let made = ["PostgreSQL", "PostgreSQL, indexed"].map(fresh);
        urls.extend(
            made.iter()
                .flatten()
                .map(|(name, made)| (*name, made.url())),
        );
        urls.push(match number % 2 {
            0 => ("SQLite, all in files", files[2].url()),
            _ => ("SQLite, half in files", files[2].url()),
        });
        compare_on_one_set(&urls);
        for file in files {
            runtime.block_on(file.remove());
        }
        for (_, made) in made.into_iter().flatten() {
            runtime.block_on(made.remove());
        }
    };
    thread::scope(|scope| {
        let sets: Vec<_> = (0..SETS)
            .map(|number| scope.spawn(move || set(number)))
            .collect();
        for set in sets {
            set.join().unwrap();
        }
    });
}
