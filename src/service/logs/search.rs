//! Searches of logs: of one run, or of the runs that a filter matches, as far as one call may look.

use std::{collections::VecDeque, num::NonZeroU32, ops::Range, sync::Arc};

use hindsight_filter::order::{KeyValue, Position};
use hindsight_filter::{Filter, Order};
use hindsight_logs::{Chunk, Lines, Pattern, decode, excerpt};
use hindsight_storage::{LogKey, StoredLog};

use tokio_util::task::AbortOnDropHandle;

use super::place::Place as Home;
use crate::query::{Binding, List};
use crate::service::{Error, Selector, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::model::{RecordName, Resource, ResultPattern};
use hindsight_storage as storage;

/// Bytes of logs that one call looks at.
const BUDGET: u64 = 256 << 20;
/// What looking up the logs of one run counts.
const LOOK: u64 = 64 << 10;
/// What asking another system for one counts.
const ASK: u64 = 8 << 20;
/// Runs that are listed at once.
const PAGE: NonZeroU32 = NonZeroU32::new(100).expect("it is not 0");
/// Most bytes of a line that are given.
const MAX_TEXT: usize = 4096;
/// Chunks that are looked at together.
const TOGETHER: usize = 2;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct SearchAsk {
    /// Which runs are searched.
    pub selector: Selector,
    /// A text or a regular expression.
    pub pattern: String,
    /// Whether the pattern is a regular expression.
    pub regex: bool,
    /// Whether letters of either case are the same.
    pub ignore_case: bool,
    /// Most lines of the page.
    pub size: NonZeroU32,
    /// Token of the page before; empty for the first.
    pub token: String,
}

/// A line that matches.
#[derive(Debug, Clone)]
pub struct LogHit {
    /// Which source it is in.
    pub key: LogKey,
    /// The number of the line in its source.
    pub line: i64,
    /// When it was written, in microseconds.
    pub time_us: i64,
    /// The line, cut around the match.
    pub text: Vec<u8>,
    /// Where the match is in the text.
    pub found: Range<usize>,
}

/// One page of lines.
#[derive(Debug, Default)]
pub struct Searched {
    /// The lines, in order.
    pub hits: Vec<LogHit>,
    /// Token of the next page; empty on the last.
    pub next: String,
    /// Bytes of logs that were looked at.
    pub scanned: u64,
}

/// Where a search goes on.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Token of the page of runs.
    page: String,
    /// The run in it, unless the page is begun.
    run: Option<String>,
    /// The source of the run, and the line in it.
    source: i64,
    line: i64,
}

impl Place {
    fn position(&self) -> Position {
        let text = |text: &str| Some(KeyValue::Text(text.to_owned()));
        Position {
            id: self.source,
            keys: vec![
                text(&self.page),
                self.run.as_deref().and_then(text),
                Some(KeyValue::Int(self.line)),
            ],
        }
    }

    fn of(position: &Position) -> Self {
        let text = |at: usize| match position.keys.get(at) {
            Some(Some(KeyValue::Text(text))) => Some(text.clone()),
            _ => None,
        };
        let line = match position.keys.get(2) {
            Some(Some(KeyValue::Int(line))) => *line,
            _ => 0,
        };
        Self {
            page: text(0).unwrap_or_default(),
            run: text(1),
            source: position.id,
            line,
        }
    }
}

/// A search that is under way.
struct Search {
    service: Service,
    quota: QuotaGuard,
    pattern: Arc<Pattern>,
    most: usize,
    done: Searched,
}

impl Service {
    /// One page of the lines that match, of the runs in `scope`. `grants` are to get logs, and to list records.
    pub async fn search_logs(
        &self,
        by: &RequestContext,
        grants: &[Grant; 2],
        scope: ResultPattern,
        ask: SearchAsk,
    ) -> Result<Searched, Error> {
        let [logs, records] = grants;
        let covers = *logs.scope(Verb::Get, Guarded::Logs)? == scope.parent
            && *records.scope(Verb::List, Resource::Records)? == scope.parent;
        if !covers {
            return Err(logs.denied().into());
        }
        let pattern = Pattern::new(&ask.pattern, ask.regex, ask.ignore_case);
        let pattern = pattern.map_err(|wrong| Error::Invalid(format!("pattern: {wrong}")))?;
        let sealed = format!(
            "{}\u{0}{}\u{0}{}\u{0}{:?}",
            ask.pattern, ask.regex, ask.ignore_case, ask.selector
        );
        let filter = self
            .filter(&by.quota, ask.selector, Resource::Records)
            .await?;
        let order = Order::newest_first();
        let parent = scope.to_string();
        let binding = Binding {
            method: "SearchLogs",
            parent: &parent,
            filter: &sealed,
            order: &order,
        };
        let tokens = self.engine.tokens();
        let mut place = match ask.token.as_str() {
            "" => Place::default(),
            token => {
                let opened = tokens
                    .open(token, &binding)
                    .map_err(crate::query::Error::from);
                Place::of(&opened?)
            }
        };
        let mut search = Search {
            service: self.clone(),
            quota: by.quota.clone(),
            pattern: Arc::new(pattern),
            most: usize::try_from(ask.size.get()).unwrap_or(usize::MAX),
            done: Searched::default(),
        };
        loop {
            let page = self.runs_page(by, &scope, &filter, &place.page).await?;
            if !search.page(&page.0, &mut place).await? {
                let next = tokens.seal(&place.position(), &binding);
                return Ok(Searched {
                    next,
                    ..search.done
                });
            }
            if page.1.is_empty() {
                return Ok(search.done);
            }
            place = Place {
                page: page.1,
                ..Place::default()
            };
        }
    }

    /// One page of the runs whose logs are searched, the newest first, and the token of the next.
    async fn runs_page(
        &self,
        by: &RequestContext,
        scope: &ResultPattern,
        filter: &Arc<Filter>,
        token: &str,
    ) -> Result<(Vec<RecordName>, String), Error> {
        let list = List {
            scope: scope.clone(),
            filter: Arc::clone(filter),
            order: Order::newest_first(),
            size: PAGE,
            token: token.to_owned(),
            payloads: false,
            method: "SearchLogs",
        };
        // Only names are kept of it.
        let quota = by.quota.part();
        let page = self.engine.with_quota(&quota).columns(list).await?;
        let names = page.items.into_iter().map(|item| item.record.name);
        Ok((names.collect(), page.next))
    }
}

impl Search {
    fn is_spent(&self) -> bool {
        self.done.hits.len() >= self.most || self.done.scanned >= BUDGET
    }

    /// Searches the runs of a page from a place on; says whether it came to the end.
    async fn page(&mut self, runs: &[RecordName], place: &mut Place) -> Result<bool, Error> {
        let from = match &place.run {
            None => 0,
            // One that was deleted meanwhile is not gone on with, nor is anything before it.
            Some(run) => {
                let found = runs.iter().position(|it| it.to_string() == *run);
                found.unwrap_or(runs.len())
            }
        };
        for run in &runs[from..] {
            let begun = place.run.take().is_some();
            let (source, line) = match begun {
                true => (place.source, place.line),
                false => (0, 0),
            };
            place.run = Some(run.to_string());
            (place.source, place.line) = (source, line);
            if self.is_spent() {
                return Ok(false);
            }
            self.done.scanned += LOOK;
            let found = self.service.sources_for(&self.quota, run).await?;
            if found.is_asked {
                self.done.scanned += ASK;
            }
            let (sources, home) = (found.sources, found.place);
            let first = match source {
                0 => 0,
                row => sources.iter().position(|it| it.row == row).unwrap_or(0),
            };
            for (at, log) in sources.iter().enumerate().skip(first) {
                let from = if at == first { line } else { 0 };
                (place.source, place.line) = (log.row, from);
                if !self.source(log, &home, place).await? {
                    return Ok(false);
                }
            }
            place.run = None;
        }
        Ok(true)
    }

    /// Searches one source from a line on; says whether it came to the end.
    async fn source(
        &mut self,
        log: &StoredLog,
        home: &Home,
        place: &mut Place,
    ) -> Result<bool, Error> {
        let (mut line, mut is_end, mut looking) = (place.line, false, VecDeque::new());
        loop {
            while !is_end && looking.len() < TOGETHER {
                match home.chunk(log.row, line).await? {
                    None => is_end = true,
                    Some(chunk) => {
                        let (pattern, from) = (Arc::clone(&self.pattern), line);
                        line = chunk.head.end();
                        let look = move || look(&pattern, &chunk, from);
                        let engine = self.service.engine.with_quota(&self.quota);
                        let looked = async move { engine.compute(look).await };
                        looking.push_back(AbortOnDropHandle::new(tokio::spawn(looked)));
                    }
                }
            }
            let Some(found) = looking.pop_front() else {
                return Ok(true);
            };
            let found = found.await.map_err(|broken| storage::Error::Unavailable {
                what: "searching a log",
                source: broken.into(),
            })?;
            let Looked { lines, end, hits } = found??;
            self.done.scanned += lines;
            for hit in hits {
                if self.done.hits.len() >= self.most {
                    place.line = hit.line;
                    return Ok(false);
                }
                self.done.hits.push(LogHit {
                    key: log.key.clone(),
                    line: hit.line,
                    time_us: hit.time_us,
                    text: hit.text,
                    found: hit.found,
                });
            }
            place.line = end;
            if self.is_spent() {
                return Ok(false);
            }
        }
    }
}

/// What was found in one chunk.
struct Looked {
    /// Bytes that were looked at.
    lines: u64,
    /// The number of the line after it.
    end: i64,
    hits: Vec<LineHit>,
}

struct LineHit {
    line: i64,
    time_us: i64,
    text: Vec<u8>,
    found: Range<usize>,
}

/// Most lines that match which are taken of one chunk: those of a page, and one to go on with.
const MOST_HITS: usize = 1001;

fn look(pattern: &Pattern, chunk: &Chunk, line: i64) -> Result<Looked, storage::Error> {
    let lines: Lines = decode(chunk)?;
    let from = usize::try_from(line.saturating_sub(lines.first)).unwrap_or_default();
    let hits = pattern.find(&lines, from.min(lines.len())).into_iter();
    let hits = hits.take(MOST_HITS).map(|hit| {
        let text = &lines.text[hit.line.clone()];
        let (cut, found) = excerpt(text, &hit.found, MAX_TEXT);
        LineHit {
            line: lines
                .first
                .saturating_add(i64::try_from(hit.at).unwrap_or(i64::MAX)),
            time_us: lines.times.get(hit.at).copied().unwrap_or_default(),
            text: text[cut].to_vec(),
            found,
        }
    });
    Ok(Looked {
        hits: hits.collect(),
        lines: lines.text.len() as u64,
        end: lines.end(),
    })
}
