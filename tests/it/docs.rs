//! The documents say what is true: every filter in docs/filters.md is run on a server with the
//! data set below, and docs/errors.md is compared with the table of kinds.

mod answers;
mod claims;
mod data_set;
mod first_steps;

use std::{collections::BTreeMap, num::NonZeroU32};

use hindsight_filter::model::Resource;
use hindsight_filter::{
    Filter, MAX_CHARS, MAX_COMPILE_STEPS, MAX_DEPTH, MAX_NODES, MAX_PATTERN_STATES, MAX_STEPS,
};
use hindsight_proto::{v1::ListRunsRequest, v1alpha2 as pb};
use hindsight_runtime::error::{ErrorKind, grpc_name};
use hindsight_storage::resolve::{Options, Schema, open};
use tonic::Status;

use self::data_set::{RESULTS, given, records};
use crate::support::{Database, TestServer, server::on_each};
use claims::{Claim, Says, claims};

const FILTERS: &str = include_str!("../../docs/filters.md");
const ERRORS: &str = include_str!("../../docs/errors.md");

/// The last parts of the names of all rows that match, sorted.
async fn ids(server: &TestServer, on: Resource, filter: &str) -> Result<Vec<String>, Status> {
    let mut ids = match on {
        Resource::Records => server.ids("-/results/-", filter).await?,
        Resource::Results => {
            let request = pb::ListResultsRequest {
                parent: "-".to_owned(),
                filter: filter.to_owned(),
                page_size: 10_000,
                ..pb::ListResultsRequest::default()
            };
            let results = server
                .rpc()
                .list_results(request)
                .await?
                .into_inner()
                .results;
            let last = |result: &pb::Result| result.name.rsplit('/').next().unwrap().to_owned();
            results.iter().map(last).collect()
        }
    };
    ids.sort();
    Ok(ids)
}

/// The runs of the pipeline `release` in an order, page by page.
async fn ordered(server: &TestServer, order_by: &str) -> Says {
    let mut request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        filter: "pipelinerun.metadata.labels['tekton.dev/pipeline'] == 'release'".to_owned(),
        order_by: order_by.to_owned(),
        page_size: 1,
        ..pb::ListRecordsRequest::default()
    };
    let mut ids = Vec::new();
    loop {
        let page = match server.rpc().list_records(request.clone()).await {
            Ok(page) => page.into_inner(),
            Err(status) => return Says::Refused(status.message().to_owned()),
        };
        let last = |record: &pb::Record| record.name.rsplit('/').next().unwrap().to_owned();
        ids.extend(page.records.iter().map(last));
        if page.next_page_token.is_empty() {
            return Says::Ordered(ids);
        }
        request.page_token = page.next_page_token;
    }
}

/// The records that a selector selects.
async fn selected(server: &TestServer, selector: &str, language: &str) -> Says {
    let mut request = tonic::Request::new(pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        filter: selector.to_owned(),
        ..pb::ListRecordsRequest::default()
    });
    let key = "hindsight-filter-language";
    request
        .metadata_mut()
        .insert(key, language.parse().unwrap());
    let records = match server.rpc().list_records(request).await {
        Ok(page) => page.into_inner().records,
        Err(status) => return Says::Refused(status.message().to_owned()),
    };
    let last = |record: &pb::Record| record.name.rsplit('/').next().unwrap().to_owned();
    let mut ids: Vec<_> = records.iter().map(last).collect();
    ids.sort();
    Says::Selected(language.to_owned(), ids)
}

/// The runs that words select, and the filter that the words mean.
async fn worded(server: &TestServer, words: &str) -> Says {
    let request = ListRunsRequest {
        parent: "-/results/-".to_owned(),
        query: words.to_owned(),
        ..ListRunsRequest::default()
    };
    let found = match server.client().runs().list_runs(request).await {
        Ok(found) => found.into_inner(),
        Err(status) => return Says::Refused(status.message().to_owned()),
    };
    let mut names: Vec<_> = found.runs.into_iter().map(|run| run.name).collect();
    names.sort();
    Says::Words(found.query_filter, names)
}

/// What the server says about the filter of a claim.
async fn said(server: &TestServer, claim: &Claim) -> Says {
    if let Says::Ordered(_) = claim.says {
        return ordered(server, &claim.filter).await;
    }
    if let Says::Words(..) = claim.says {
        return worded(server, &claim.filter).await;
    }
    if let Says::Selected(language, _) = &claim.says {
        return selected(server, &claim.filter, language).await;
    }
    let asked = async |filter: &str| ids(server, claim.on, filter).await;
    let found = match asked(&claim.filter).await {
        Ok(found) => found,
        Err(status) => return Says::Refused(status.message().to_owned()),
    };
    let Says::Is(row, _) = &claim.says else {
        return Says::Rows(found);
    };
    let negation = format!("!({})", claim.filter);
    let denied = asked(&negation).await.unwrap();
    let is = match (found.contains(row), denied.contains(row)) {
        (true, false) => "true",
        (false, true) => "false",
        (false, false) => "unknown",
        (true, true) => "both true and false",
    };
    Says::Is(row.clone(), is.to_owned())
}

#[tokio::test]
async fn every_filter_in_the_document_finds_what_it_says() {
    let claims = claims(FILTERS);
    let count = |is: fn(&Says) -> bool| claims.iter().filter(|claim| is(&claim.says)).count();
    assert!(count(|says| matches!(says, Says::Rows(_))) >= 20);
    assert!(count(|says| matches!(says, Says::Refused(_))) >= 5);
    assert!(count(|says| matches!(says, Says::Is(..))) >= 10);
    assert!(count(|says| matches!(says, Says::Ordered(_))) >= 3);
    assert!(count(|says| matches!(says, Says::Words(..))) >= 10);
    let claims = &claims;
    on_each(|server| async move {
        given(&server).await;
        let mut wrong = Vec::new();
        for claim in claims
            .iter()
            .filter(|claim| !matches!(claim.says, Says::Split(..) | Says::Indexed(_)))
        {
            let said = said(&server, claim).await;
            if said != claim.says {
                wrong.push(format!(
                    "line {}: {:?}, not {:?}",
                    claim.line, said, claim.says
                ));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    })
    .await;
}

#[tokio::test]
async fn the_document_tells_what_the_database_is_asked() {
    let database = Database::sqlite();
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let opened = open(&database.url(), &options).await.unwrap();
    let mut seen = 0;
    for claim in claims(FILTERS) {
        let Says::Split(engine, left) = &claim.says else {
            continue;
        };
        seen += 1;
        let filter = Filter::compile(&claim.filter, claim.on).unwrap();
        let told = filter.explain(&|test| opened.store.ability(test));
        let (told_engine, told_left) = told.split_once("\nleft over: ").unwrap();
        assert_eq!(
            told_engine.strip_prefix("engine: "),
            Some(engine.as_str()),
            "{}",
            claim.filter
        );
        let shown = match (told_left == "nothing", filter.needs_body()) {
            (true, _) => "nothing",
            (false, true) => "each payload",
            (false, false) => "each row",
        };
        assert_eq!(shown, left, "line {}: {}", claim.line, claim.filter);
    }
    assert!(seen >= 5, "{seen} splits");
    opened.maintenance.close().await;
}

#[tokio::test]
async fn the_document_tells_which_filters_an_index_narrows() {
    let database = Database::sqlite();
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let opened = open(&database.url(), &options).await.unwrap();
    let mut seen = 0;
    for claim in claims(FILTERS) {
        let Says::Indexed(index) = &claim.says else {
            continue;
        };
        seen += 1;
        let filter = Filter::compile(&claim.filter, claim.on).unwrap();
        let told = || filter.explain(&|test| opened.store.ability(test));
        assert!(!told().contains("(indexed)"), "{}", claim.filter);
        let wanted = index != "none";
        let index = if wanted {
            index
        } else {
            "`data.spec.serviceAccountName`"
        };
        let (path, kind) = index.rsplit_once('`').unwrap();
        let path = path.trim_matches('`').parse().unwrap();
        let kind = match kind.trim() {
            "" => "text",
            kind => kind,
        };
        let kind = kind.parse().unwrap();
        let base = &opened.maintenance;
        let made = base.create_index(&path, kind, jiff::Timestamp::UNIX_EPOCH);
        let made = made.await.unwrap();
        while !base
            .build_index(made.id, NonZeroU32::MIN)
            .await
            .unwrap()
            .ready
        {}
        assert_eq!(told().contains("(indexed)"), wanted, "{}", claim.filter);
        base.drop_index(&path).await.unwrap();
    }
    assert!(seen >= 8, "{seen} of indexed paths");
    opened.maintenance.close().await;
}

#[test]
fn the_document_names_every_row_of_the_data_set_and_every_limit() {
    let names = records().into_iter().map(|(name, ..)| name);
    for name in names.chain(RESULTS.iter().map(|row| row.0.to_owned())) {
        let id = name.rsplit('/').next().unwrap();
        assert!(
            FILTERS.contains(&format!("| `{id}` |")),
            "{id} is not in the table"
        );
    }
    let thousands = |n: usize| match n {
        0..1000 => n.to_string(),
        n => format!("{},{:03}", n / 1000, n % 1000),
    };
    for limit in [
        MAX_CHARS,
        MAX_DEPTH,
        MAX_NODES,
        MAX_STEPS as usize,
        MAX_COMPILE_STEPS as usize,
        MAX_PATTERN_STATES,
    ] {
        let limit = format!("| {} |", thousands(limit));
        assert!(FILTERS.contains(&limit), "{limit}");
    }
}

#[test]
fn a_block_without_its_comment_is_noticed() {
    for text in [
        "```cel\ntrue\n```",
        "text\n```cel\ntrue\n```",
        "<!-- records: -->\n```cel\ntrue\n```",
        "<!-- records -->\n```cel\ntrue\n```",
        "<!-- runs: a -->\n```cel\ntrue\n```",
        "<!-- records: refused -->\n```cel-error\ndta\n```\n\ntext",
        "<!-- truth of records a -->\n\ntext",
    ] {
        assert!(std::panic::catch_unwind(|| claims(text)).is_err(), "{text}");
    }
    assert_eq!(claims("no block"), []);
    assert_eq!(
        claims("<!-- results: b a -->\n```cel\ntrue\n```")[0].says,
        { Says::Rows(vec!["a".to_owned(), "b".to_owned()]) }
    );
}

#[test]
fn the_table_of_errors_is_the_table_of_the_program() {
    let rows: BTreeMap<String, Vec<String>> = ERRORS
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
            (cells[1].trim_matches('`').to_owned(), cells)
        })
        .filter(|(name, _)| name.chars().all(char::is_alphabetic))
        .collect();
    assert_eq!(rows.len(), ErrorKind::ALL.len(), "{:?}", rows.keys());
    for kind in ErrorKind::ALL {
        let row = &rows[&format!("{kind:?}")];
        let code = format!("{} {}", kind.grpc_code(), grpc_name(kind.grpc_code()));
        assert_eq!(
            row[2..4],
            [code, kind.http_status().to_string()],
            "{kind:?}"
        );
        assert!(
            row[4].starts_with("yes") || row[4].starts_with("no"),
            "{kind:?}: {row:?}"
        );
    }
}
