//! Loki: lines of a run by a query of a template, a page after the other by time.

mod answer;

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use hindsight_logs::{Template, Variable};
use hindsight_runtime::error::report;
use hindsight_storage::LogSource;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::answer::{Entry, entries};
use super::{AskedLog, HomeError, LogHome, Spool};
use crate::outgoing::{self, HttpClient, Secret};

/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(5);
/// Most bytes of one answer. One that has more is asked for again in fewer lines.
const ANSWER: usize = 8 << 20;
/// Lines that one request asks for, as few as it takes. Loki gives at most 5,000 unless it is configured so.
const PAGES: [usize; 5] = [1000, 200, 40, 8, 1];
/// Lines of one time that one request asks for, since no page can begin between them.
const OF_ONE_TIME: [usize; 6] = [5000, 1000, 200, 40, 8, 1];
/// Most bytes of an answer that says what is wrong.
const REFUSAL: usize = 4 << 10;
/// Longest part of such an answer that is repeated.
const SAID: usize = 200;

/// Where Loki is, and what it is asked.
#[derive(Debug, Clone)]
pub struct LokiSettings {
    /// The address below which `/loki/api/v1` is.
    pub url: String,
    /// What selects the lines of one run.
    pub query: Template,
    /// How much later lines may have come there.
    pub delay: Duration,
    /// A file with a bearer token.
    pub token_file: Option<PathBuf>,
    /// Authorities in PEM.
    pub ca: Option<PathBuf>,
    /// The value of the header `X-Scope-OrgID`.
    pub tenant: Option<String>,
}

/// Logs in Loki.
#[derive(Debug)]
pub struct Loki {
    name: String,
    client: HttpClient,
    url: String,
    query: Template,
    delay: Duration,
    token: Option<Secret>,
    tenant: Option<HeaderValue>,
}

impl Loki {
    /// It fails with what is wrong with the settings or the files that they name.
    pub fn new(settings: LokiSettings) -> Result<Self, String> {
        let url = settings.url.trim_end_matches('/').to_owned();
        let parsed: Uri = url.parse().map_err(|error| format!("`{url}`: {error}"))?;
        if parsed.query().is_some() {
            return Err(format!("`{url}` has a query; give the address alone"));
        }
        let named = |path: &PathBuf, why: String| format!("{}: {why}", path.display());
        let token = settings.token_file.as_ref().map(|path| {
            let token = Secret::read(path);
            token.map_err(|why| named(path, why))
        });
        let tenant = settings.tenant.as_deref().map(HeaderValue::from_str);
        let tenant = tenant.transpose();
        let ca = settings.ca.as_deref();
        let client = outgoing::client(ca, CONNECTING);
        Ok(Self {
            name: format!("Loki at {url}"),
            client: client.map_err(|why| match &settings.ca {
                Some(path) => named(path, why),
                None => why,
            })?,
            query: settings.query,
            delay: settings.delay,
            token: token.transpose()?,
            tenant: tenant.map_err(|_odd| "the tenant is no text of a header".to_owned())?,
            url,
        })
    }

    /// The query of a run; none if it cannot have one, or what is known of it is no plain name.
    fn query(&self, run: &AskedLog) -> Option<String> {
        // The pods of a PipelineRun are those of its TaskRuns, which are asked for one by one.
        if run.kind() == Some("PipelineRun") {
            return None;
        }
        run.fill(&self.query, safe)
    }

    /// The nanoseconds in which lines of a run may be.
    fn window(&self, run: &AskedLog) -> (i128, i128) {
        // The times of a run are whole seconds.
        let last = run.last().as_nanosecond() + 1_000_000_000;
        let delay = i128::try_from(self.delay.as_nanos()).unwrap_or_default();
        (run.began().as_nanosecond(), last + delay)
    }

    /// One page, of the first of `sizes` with which an answer is not too large; the others before are taken away.
    async fn page(
        &self,
        query: &str,
        window: (i128, i128),
        sizes: &mut &[usize],
    ) -> Result<(Vec<Entry>, usize), HomeError> {
        while let [size, smaller @ ..] = *sizes {
            if let Some(entries) = self.ask(query, window, *size).await? {
                return Ok((entries, *size));
            }
            *sizes = smaller;
        }
        let most = ANSWER >> 20;
        Err(HomeError::Away(format!(
            "an answer with one line has more than {most} MiB"
        )))
    }

    /// One answer; none if it is too large.
    async fn ask(
        &self,
        query: &str,
        (start, end): (i128, i128),
        limit: usize,
    ) -> Result<Option<Vec<Entry>>, HomeError> {
        let away = |why: String| HomeError::Away(why);
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let uri = format!(
            "{}/loki/api/v1/query_range?direction=forward&limit={limit}&start={start}&end={end}\
             &query={query}",
            self.url
        );
        let mut request = Request::get(uri).header(
            header::USER_AGENT,
            concat!("hindsight/", env!("CARGO_PKG_VERSION")),
        );
        if let Some(token) = &self.token {
            let bearer = token.bearer().map_err(away)?;
            request = request.header(header::AUTHORIZATION, bearer);
        }
        if let Some(tenant) = &self.tenant {
            request = request.header("x-scope-orgid", tenant.clone());
        }
        let request = request.body(Full::<Bytes>::default());
        let request = request.map_err(|error| away(format!("cannot make a request: {error}")))?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|error| away(format!("no answer: {}", report(&error))))?;
        let status = answer.status();
        if status != StatusCode::OK {
            let body = Limited::new(answer.into_body(), REFUSAL).collect().await;
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            return Err(away(refusal(status, &body)));
        }
        let body = match Limited::new(answer.into_body(), ANSWER).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Ok(None),
            Err(error) => return Err(away(format!("its answer breaks off: {error}"))),
        };
        entries(&body).map(Some).map_err(away)
    }

    async fn read_run(&self, run: &AskedLog, to: &mut Spool) -> Result<(), HomeError> {
        let Some(query) = self.query(run) else {
            return Ok(());
        };
        let (mut start, end) = self.window(run);
        let mut sizes = &PAGES[..];
        while start < end && !to.is_full() {
            let (mut page, size) = self.page(&query, (start, end), &mut sizes).await?;
            page.sort_by_key(|entry| entry.time);
            let last = page.last().map_or(start, |entry| entry.time);
            if page.len() < size {
                return page.iter().try_for_each(|entry| write(to, entry));
            }
            if last == start {
                self.read_time(&query, start, to).await?;
                start += 1;
                continue;
            }
            // Others of the last time may come on the next page.
            let whole = page.partition_point(|entry| entry.time < last);
            page[..whole]
                .iter()
                .try_for_each(|entry| write(to, entry))?;
            start = last;
        }
        Ok(())
    }

    /// Reads the lines of one time that fill a page.
    async fn read_time(&self, query: &str, time: i128, to: &mut Spool) -> Result<(), HomeError> {
        let window = (time, time + 1);
        let (page, size) = self.page(query, window, &mut &OF_ONE_TIME[..]).await?;
        page.iter().try_for_each(|entry| write(to, entry))?;
        if page.len() < size {
            return Ok(());
        }
        let why = format!("{size} lines or more have one time; others are missing here");
        to.stop(microseconds(time), &why)
    }
}

fn microseconds(time: i128) -> i64 {
    i64::try_from(time / 1000).unwrap_or_default()
}

fn write(to: &mut Spool, entry: &Entry) -> Result<(), HomeError> {
    let source = LogSource {
        pod: entry.pod.clone(),
        container: entry.container.clone(),
        restart: 0,
    };
    let mut line = entry.line.clone();
    if !line.ends_with('\n') {
        line.push('\n');
    }
    to.write(&source, microseconds(entry.time), line.as_bytes())
}

/// A value that means itself wherever it stands in a query, also in a regular expression.
fn safe(_: Variable, value: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    value.chars().all(is_plain).then(|| value.to_owned())
}

/// What an answer says is wrong.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let said = String::from_utf8_lossy(body);
    let said: String = said
        .trim()
        .chars()
        .take(SAID)
        .flat_map(char::escape_default)
        .collect();
    match (status, said.as_str()) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
            format!("it refuses the token (status {})", status.as_u16())
        }
        (_, "") => format!("status {}", status.as_u16()),
        (_, said) => format!("status {}: {said}", status.as_u16()),
    }
}

impl LogHome for Loki {
    fn name(&self) -> &str {
        &self.name
    }

    fn read<'a>(
        &'a self,
        run: &'a AskedLog,
        to: &'a mut Spool,
    ) -> BoxFuture<'a, Result<(), HomeError>> {
        Box::pin(self.read_run(run, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_may_mean_more_than_itself_is_in_no_query() {
        for good in [
            "ci",
            "run-1",
            "uid_2",
            "6c2a2e1f-0000-4000-8000-000000000040",
        ] {
            assert_eq!(safe(Variable::Uid, good).unwrap(), good);
        }
        for bad in [
            "a\"} or {",
            ".*",
            "a|b",
            "a`b",
            "a\\b",
            "a b",
            "é",
            "a\nb",
            "../x",
            "~",
        ] {
            assert_eq!(safe(Variable::Uid, bad), None, "{bad}");
        }
    }

    #[test]
    fn a_refusal_is_short_and_one_line() {
        let said = refusal(StatusCode::BAD_REQUEST, b"parse error\nat 1\x1b[31m");
        assert_eq!(said, "status 400: parse error\\nat 1\\u{1b}[31m");
        let long = refusal(StatusCode::INTERNAL_SERVER_ERROR, &[b'x'; 4000]);
        assert!(long.len() < 230);
        let token = refusal(StatusCode::UNAUTHORIZED, b"the token s3cret is wrong");
        assert_eq!(token, "it refuses the token (status 401)");
    }
}
