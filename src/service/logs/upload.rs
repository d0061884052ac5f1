//! A log that is uploaded as one text, and takes the place of the one that was uploaded before.

use bytes::{Bytes, BytesMut};
use hindsight_logs::{Lines, MAX_LINE, ends};
use hindsight_storage::{LogAppend, LogKey, LogKind, LogSource, StoredLog};
use jiff::{Timestamp, ToSpan as _};

use super::{
    missing,
    record::{Status, is_log},
};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_filter::model::{LogName, RecordName};
use hindsight_runtime::error::{ErrorKind, HasKind as _};

/// Bytes that are gathered before they are stored.
const GATHERED: usize = 2 << 20;
/// Unfinished uploads of a log are removed by the next one after so many hours.
const STALE: i64 = 1;

/// An upload that is under way.
#[derive(Debug)]
pub struct Upload {
    service: Service,
    by: RequestContext,
    name: LogName,
    key: LogKey,
    /// The record that tells of the log, if a client made it.
    named: Option<RecordName>,
    began: Timestamp,
    gathered: BytesMut,
    lines: i64,
    bytes: i64,
}

impl Service {
    /// Begins an upload of the log of a run. It fails if there is no record of that name.
    pub async fn begin_upload(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: LogName,
    ) -> Result<Upload, Error> {
        grant.check(Verb::Update, Guarded::Logs, name.record().result().parent())?;
        let row = self.row_of(name.record()).await?;
        let record = row.ok_or_else(|| missing(&name))?.record;
        let named = is_log(&record).then(|| record.name.clone());
        let run = self.find_log(&by.quota, &name).await?.run;
        let began = self.clock.now();
        let before = began.checked_sub(STALE.hours()).unwrap_or(began);
        self.logs.store.delete_stale_uploads(&run, before).await?;
        let key = LogKey {
            run,
            kind: LogKind::Uploading,
            source: LogSource {
                pod: uuid::Uuid::new_v4().to_string(),
                ..LogSource::default()
            },
        };
        Ok(Upload {
            service: self.clone(),
            by: by.clone(),
            name,
            key,
            named,
            began,
            gathered: BytesMut::new(),
            lines: 0,
            bytes: 0,
        })
    }
}

impl Upload {
    /// The log, as it was named.
    pub fn name(&self) -> &LogName {
        &self.name
    }

    /// Takes the next bytes.
    pub async fn add(&mut self, mut data: Bytes) -> Result<(), Error> {
        self.bytes += i64::try_from(data.len()).unwrap_or(i64::MAX);
        while !data.is_empty() {
            let room = GATHERED - self.gathered.len().min(GATHERED);
            let part = data.split_to(room.min(data.len()));
            self.gathered.extend_from_slice(&part);
            if self.gathered.len() >= GATHERED {
                self.store(false).await?;
            }
        }
        Ok(())
    }

    /// Stores what was gathered, but for a line that may go on.
    async fn store(&mut self, is_end: bool) -> Result<(), Error> {
        let mut whole = 0;
        for end in ends(&self.gathered) {
            let is_whole = self.gathered[end - 1] == b'\n' || end - whole == MAX_LINE;
            if is_whole || is_end {
                whole = end;
            }
        }
        let text = self.gathered.split_to(whole).freeze();
        if text.is_empty() {
            return Ok(());
        }
        let times = vec![self.began.as_microsecond(); ends(&text).count()];
        let lines = Lines::new(self.lines, text, times, Vec::new());
        let lines = lines.map_err(|wrong| Error::Invalid(wrong.to_string()))?;
        self.lines = lines.end();
        let append = LogAppend {
            key: self.key.clone(),
            parts: vec![self.service.taken(lines)],
        };
        let now = self.service.clock.now();
        self.service.logs.admit(&append, false, now).await?;
        let store = &self.service.logs.store;
        let outcomes = store.append_logs(&[append], self.service.clock.now()).await;
        for outcome in outcomes {
            outcome?;
        }
        Ok(())
    }

    /// Puts it in the place of the one before; gives the record that tells of it, and how many bytes came.
    pub async fn finish(mut self) -> Result<(RecordName, i64), Error> {
        match self.finished().await {
            Ok(told) => {
                self.audit(Ok(())).await;
                Ok((told, self.bytes))
            }
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn finished(&mut self) -> Result<RecordName, Error> {
        self.store(true).await?;
        let store = &self.service.logs.store;
        store
            .replace_upload(&self.key, self.service.clock.now())
            .await?;
        self.service.logs.wake(&self.key.run).notify_waiters();
        self.tell(|status| status).await
    }

    async fn tell(&self, how: impl FnOnce(Status) -> Status) -> Result<RecordName, Error> {
        let sources: Vec<StoredLog> = self.service.logs.store.logs(&self.key.run).await?;
        let status = how(Status::of(&sources));
        let (run, named) = (&self.key.run, self.named.as_ref());
        self.service
            .tell_of_log(&self.by, run, named, &status)
            .await
    }

    /// Gives it up for an error, which the record of the log tells then; what was stored before stays.
    pub async fn failed(self, error: Error) -> Error {
        let is_retryable = matches!(
            error.kind(),
            ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Exhausted
        );
        let why = error.to_string();
        let told = self.tell(|status| status.failed(why, is_retryable)).await;
        if let Err(untold) = told {
            tracing::warn!(log = %self.name, error = %untold, "a failed upload is not noted");
        }
        if let Err(left) = self.service.logs.store.delete_log(&self.key).await {
            tracing::warn!(log = %self.name, error = %left, "an unfinished upload is left");
        }
        self.audit(Err(&error)).await;
        error
    }

    async fn audit(&self, outcome: Result<(), &Error>) {
        let (by, name) = (&self.by, &self.name);
        self.service
            .audit_change(by, Verb::Update, name, outcome)
            .await;
    }
}
