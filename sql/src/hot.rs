//! Rows of the database, which the server lists for the token of the caller.

pub(crate) mod filter;
mod rows;

use std::collections::HashSet;

use arrow::array::RecordBatch;
use datafusion::{
    error::{DataFusionError, Result},
    execution::memory_pool::MemoryReservation,
};
use hindsight_client::Client;
use hindsight_proto::{
    metadata,
    v1::{ListLogsRequest, ListRunsRequest},
    v1alpha2::{ListRecordsRequest, ListResultsRequest, Result as RunResult},
};
use sha2::{Digest as _, Sha256};
use tonic::Request;

use crate::{
    columns::{Column, HOT, Rows, Table},
    error::Answered,
};

/// Most rows of a page that the server gives.
const PAGE: i32 = 10_000;
/// Most rows of a page with payloads, which ends earlier where they are large.
const WITH_PAYLOADS: i32 = 500;
/// What rows of records have without their payloads.
const FIELDS: &str = "records.name,records.uid,records.etag,records.create_time,records.update_time,\
                      records.data.type,next_page_token";
/// Bytes that a name takes in the set of those that were read.
const NAME_BYTES: usize = 40;

/// What is read.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) table: Table,
    /// Parents, of which `-` is all.
    pub(crate) parents: &'a [String],
    /// CEL that rows match.
    pub(crate) filter: &'a str,
    /// The columns of the batches.
    pub(crate) columns: &'a [Column],
    /// No more rows are needed.
    pub(crate) limit: Option<usize>,
    /// Rows of files are left out, which are read elsewhere.
    pub(crate) of_database: bool,
}

impl Ask<'_> {
    fn tier(&self) -> rows::Tier {
        self.of_database.then_some(HOT)
    }
}

/// Digests of names of records.
pub(crate) type Names = HashSet<[u8; 16]>;

/// The digest of a name, of which no two that are stored are the same.
pub(crate) fn digest(name: &str) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&Sha256::digest(name)[..16]);
    half
}

/// Rows that were read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) batches: Vec<RecordBatch>,
    /// The names of their records, if rows of files may be the same.
    pub(crate) names: Names,
    rows: usize,
}

impl Read {
    fn keep(&mut self, rows: &mut Rows, held: &MemoryReservation) -> Result<()> {
        let batch = rows.finish()?;
        held.try_grow(batch.get_array_memory_size())?;
        self.rows += batch.num_rows();
        if batch.num_rows() > 0 {
            self.batches.push(batch);
        }
        Ok(())
    }

    fn name(&mut self, ask: &Ask<'_>, name: &str, held: &MemoryReservation) -> Result<()> {
        if ask.of_database && self.names.insert(digest(name)) {
            held.try_grow(NAME_BYTES)?;
        }
        Ok(())
    }

    fn is_enough(&self, ask: &Ask<'_>) -> bool {
        ask.limit.is_some_and(|limit| self.rows >= limit)
    }
}

/// Reads all rows, which `held` accounts for. It fails if they are more than may be held, or the server refuses.
pub(crate) async fn read(client: &Client, ask: &Ask<'_>, held: &MemoryReservation) -> Result<Read> {
    let mut read = Read::default();
    for parent in ask.parents {
        match ask.table {
            Table::Runs => runs(client, ask, parent, held, &mut read).await?,
            Table::Records => records(client, ask, parent, held, &mut read).await?,
            Table::Results => results(client, ask, parent, held, &mut read).await?,
            Table::Logs => logs(client, ask, parent, held, &mut read).await?,
        }
    }
    Ok(read)
}

async fn runs(
    client: &Client,
    ask: &Ask<'_>,
    parent: &str,
    held: &MemoryReservation,
    read: &mut Read,
) -> Result<()> {
    let mut rows = Rows::new(ask.columns.to_vec());
    let mut page_token = String::new();
    loop {
        let request = ListRunsRequest {
            parent: format!("{parent}/results/-"),
            filter: ask.filter.to_owned(),
            page_size: page(ask, read, PAGE),
            page_token,
            all_labels: ask
                .columns
                .iter()
                .any(|column| column.info.name == "labels"),
            ..ListRunsRequest::default()
        };
        let request = asked(request, ask.of_database);
        let page = client.runs().list_runs(request).await.map_err(answered)?;
        let page = page.into_inner();
        for run in &page.runs {
            read.name(ask, &run.record, held)?;
            rows::of_run(&mut rows, run, ask.tier())?;
        }
        read.keep(&mut rows, held)?;
        page_token = page.next_page_token;
        if page_token.is_empty() || read.is_enough(ask) {
            return Ok(());
        }
    }
}

async fn records(
    client: &Client,
    ask: &Ask<'_>,
    parent: &str,
    held: &MemoryReservation,
    read: &mut Read,
) -> Result<()> {
    let needs = rows::needs(ask.columns);
    let results = match needs.results {
        true => rows::results(all_results(client, parent, held).await?)?,
        false => rows::Results::default(),
    };
    let mut rows = Rows::new(ask.columns.to_vec());
    let mut page_token = String::new();
    loop {
        let most = if needs.payloads { WITH_PAYLOADS } else { PAGE };
        let request = ListRecordsRequest {
            parent: format!("{parent}/results/-"),
            filter: ask.filter.to_owned(),
            page_size: page(ask, read, most),
            page_token,
            ..ListRecordsRequest::default()
        };
        let mut request = asked(request, ask.of_database);
        if !needs.payloads {
            let fields = tonic::metadata::MetadataValue::from_static(FIELDS);
            request.metadata_mut().insert("fields", fields);
        }
        let page = client.rpc().list_records(request).await.map_err(answered)?;
        let page = page.into_inner();
        for record in page.records {
            read.name(ask, &record.name, held)?;
            rows::of_record(&mut rows, record, &results, ask.tier())?;
        }
        read.keep(&mut rows, held)?;
        page_token = page.next_page_token;
        if page_token.is_empty() || read.is_enough(ask) {
            return Ok(());
        }
    }
}

async fn results(
    client: &Client,
    ask: &Ask<'_>,
    parent: &str,
    held: &MemoryReservation,
    read: &mut Read,
) -> Result<()> {
    let mut rows = Rows::new(ask.columns.to_vec());
    let mut pages = ResultPages::new(parent, ask.filter);
    while let Some(page) = pages.next(client).await? {
        for result in &page {
            rows::of_result(&mut rows, result)?;
        }
        read.keep(&mut rows, held)?;
        if read.is_enough(ask) {
            return Ok(());
        }
    }
    Ok(())
}

async fn logs(
    client: &Client,
    ask: &Ask<'_>,
    parent: &str,
    held: &MemoryReservation,
    read: &mut Read,
) -> Result<()> {
    let mut rows = Rows::new(ask.columns.to_vec());
    let mut page_token = String::new();
    loop {
        let request = ListLogsRequest {
            parent: format!("{parent}/results/-"),
            page_size: page(ask, read, PAGE),
            page_token,
        };
        let page = client.logs().list_logs(request).await.map_err(answered)?;
        let page = page.into_inner();
        for log in &page.containers {
            rows::of_log(&mut rows, log)?;
        }
        read.keep(&mut rows, held)?;
        page_token = page.next_page_token;
        if page_token.is_empty() || read.is_enough(ask) {
            return Ok(());
        }
    }
}

/// All results of a parent, whose columns records repeat.
async fn all_results(
    client: &Client,
    parent: &str,
    held: &MemoryReservation,
) -> Result<Vec<RunResult>> {
    let mut all = Vec::new();
    let mut pages = ResultPages::new(parent, "");
    while let Some(page) = pages.next(client).await? {
        let bytes: usize = page.iter().map(prost::Message::encoded_len).sum();
        held.try_grow(2 * bytes + page.len() * size_of::<RunResult>())?;
        all.extend(page);
    }
    Ok(all)
}

/// Lists results page by page.
struct ResultPages<'a> {
    parent: &'a str,
    filter: &'a str,
    /// None after the last page.
    token: Option<String>,
}

impl<'a> ResultPages<'a> {
    fn new(parent: &'a str, filter: &'a str) -> Self {
        Self {
            parent,
            filter,
            token: Some(String::new()),
        }
    }

    async fn next(&mut self, client: &Client) -> Result<Option<Vec<RunResult>>> {
        let Some(page_token) = self.token.take() else {
            return Ok(None);
        };
        let request = ListResultsRequest {
            parent: self.parent.to_owned(),
            filter: self.filter.to_owned(),
            page_size: PAGE,
            page_token,
            ..ListResultsRequest::default()
        };
        let page = client.rpc().list_results(request).await.map_err(answered)?;
        let page = page.into_inner();
        self.token = Some(page.next_page_token).filter(|token| !token.is_empty());
        Ok(Some(page.results))
    }
}

/// How many rows the next page has.
fn page(ask: &Ask<'_>, read: &Read, most: i32) -> i32 {
    let left = ask
        .limit
        .map(|limit| limit.saturating_sub(read.rows).max(1));
    let left = left.and_then(|left| i32::try_from(left).ok());
    left.map_or(most, |left| left.min(most))
}

fn asked<T>(message: T, of_database: bool) -> Request<T> {
    let mut request = Request::new(message);
    let entries = request.metadata_mut();
    // Whatever language the server is configured with.
    entries.insert(
        metadata::FILTER_LANGUAGE,
        tonic::metadata::MetadataValue::from_static("cel"),
    );
    if of_database {
        let database = tonic::metadata::MetadataValue::from_static(metadata::DATABASE);
        entries.insert(metadata::TIER, database);
    }
    request
}

pub(crate) fn answered(status: tonic::Status) -> DataFusionError {
    DataFusionError::External(Box::new(Answered(status)))
}
