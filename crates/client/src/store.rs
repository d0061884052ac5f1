//! Storing one run: its result is made or brought up to date, then its record.
//!
//! Storing the same run twice writes nothing the second time. Only plain `v1alpha2` calls are
//! used, so it works against every server of that API.
//!
//! Most runs are stored once, so they are created without asking first: one call for a run whose
//! result is there, two for a run that brings its own. The record always comes last: who finds
//! it may rely on its result.

use bytes::Bytes;
use tonic::{Code, Status};

use super::Client;
use hindsight_proto::{
    names::{RecordName, ResultName},
    v1alpha2::{
        Any, CreateRecordRequest, CreateResultRequest, GetRecordRequest, GetResultRequest, Record,
        RecordSummary, Result as RunResult, UpdateRecordRequest, UpdateResultRequest,
        record_summary,
    },
};
use hindsight_run::json;
use hindsight_run::{Claim, Precedence, Upload, View, is_earlier, keys, precedence};

/// How often a write that lost a race on its etag is tried again.
const RACES: usize = 8;

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It was not there.
    Created,
    /// It was there and different.
    Updated,
    /// It was there and equal; nothing was written.
    Unchanged,
}

/// What storing a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// What it did to the result that holds the run's record.
    pub result: Effect,
    /// What it did to the record that holds the run's JSON.
    pub record: Effect,
}

impl Client {
    /// Stores a run whose JSON is `value`. When this returns, the server has acknowledged the
    /// result and the record.
    ///
    /// It is meant for a run that is probably not there yet; see [`Client::store_again`].
    ///
    /// # Errors
    /// What the server answered; a lost race is tried again a few times first.
    pub async fn store(&self, upload: &Upload, value: &[u8]) -> Result<Stored, Status> {
        let name = &upload.grouping.record;
        let mut result = Effect::Unchanged;
        if says_something(upload) {
            result = self.new_result(name.result(), upload).await?;
        }
        let mut race = Status::aborted("no attempt was made");
        for _ in 0..RACES {
            match self.create_record(name, &upload.data_type, value).await {
                Ok(()) => {
                    let record = Effect::Created;
                    return Ok(Stored { result, record });
                }
                Err(status) if status.code() == Code::AlreadyExists => {
                    let record = self.store_record(name, &upload.data_type, value).await?;
                    return Ok(Stored { result, record });
                }
                // There is no result to put it into, or no longer.
                Err(status) if is_orphaned(&status) => race = status,
                Err(status) => return Err(status),
            }
            result = self.new_result(name.result(), upload).await?;
        }
        Err(race)
    }

    /// As [`Client::store`], for a run that is probably there: reads before it writes, which
    /// takes fewer calls then.
    ///
    /// # Errors
    /// As [`Client::store`].
    pub async fn store_again(&self, upload: &Upload, value: &[u8]) -> Result<Stored, Status> {
        let name = &upload.grouping.record;
        let result = self.store_result(name.result(), upload).await?;
        let record = self.store_record(name, &upload.data_type, value).await?;
        Ok(Stored { result, record })
    }

    /// Reads a record, `None` if it is not there.
    ///
    /// # Errors
    /// What the server answered, but for NOT_FOUND.
    pub async fn record(&self, name: &RecordName) -> Result<Option<Record>, Status> {
        let request = GetRecordRequest {
            name: name.to_string(),
        };
        found(self.rpc.clone().get_record(request).await)
    }

    /// Makes a result; one that is there already is brought up to date.
    async fn new_result(&self, name: &ResultName, upload: &Upload) -> Result<Effect, Status> {
        match self.create_result(name, upload).await {
            Ok(()) => Ok(Effect::Created),
            Err(status) if status.code() == Code::AlreadyExists => {
                self.store_result(name, upload).await
            }
            Err(status) => Err(status),
        }
    }

    async fn store_result(&self, name: &ResultName, upload: &Upload) -> Result<Effect, Status> {
        let mut rpc = self.rpc.clone();
        let mut race = Status::aborted("no attempt was made");
        for _ in 0..RACES {
            let request = GetResultRequest {
                name: name.to_string(),
            };
            let Some(current) = found(rpc.get_result(request).await)? else {
                match self.create_result(name, upload).await {
                    Ok(()) => return Ok(Effect::Created),
                    Err(status) if status.code() == Code::AlreadyExists => race = status,
                    Err(status) => return Err(status),
                }
                continue;
            };
            let etag = current.etag.clone();
            let Some(wanted) = merged(current, upload) else {
                return Ok(Effect::Unchanged);
            };
            let request = UpdateResultRequest {
                name: name.to_string(),
                result: Some(wanted),
                etag,
            };
            match rpc.update_result(request).await {
                Ok(_) => return Ok(Effect::Updated),
                Err(status) if lost(&status) => race = status,
                Err(status) => return Err(status),
            }
        }
        Err(race)
    }

    async fn create_result(&self, name: &ResultName, upload: &Upload) -> Result<(), Status> {
        let result = RunResult {
            name: name.to_string(),
            annotations: upload.annotations.clone(),
            summary: upload.summary.clone(),
            ..RunResult::default()
        };
        let request = CreateResultRequest {
            parent: name.parent().to_string(),
            result: Some(result),
        };
        self.rpc.clone().create_result(request).await.map(drop)
    }

    async fn store_record(
        &self,
        name: &RecordName,
        data_type: &str,
        value: &[u8],
    ) -> Result<Effect, Status> {
        let mut race = Status::aborted("no attempt was made");
        for _ in 0..RACES {
            let Some(current) = self.record(name).await? else {
                match self.create_record(name, data_type, value).await {
                    Ok(()) => return Ok(Effect::Created),
                    Err(status) if status.code() == Code::AlreadyExists => race = status,
                    Err(status) => return Err(status),
                }
                continue;
            };
            let record = as_record(name, data_type, Bytes::copy_from_slice(value));
            if current.data == record.data || self.is_late(value, current.data.as_ref()) {
                return Ok(Effect::Unchanged);
            }
            let request = UpdateRecordRequest {
                record: Some(record),
                update_mask: None,
                etag: current.etag,
            };
            match self.rpc.clone().update_record(request).await {
                Ok(_) => return Ok(Effect::Updated),
                Err(status) if lost(&status) => race = status,
                Err(status) => return Err(status),
            }
        }
        Err(race)
    }

    async fn create_record(
        &self,
        name: &RecordName,
        data_type: &str,
        value: &[u8],
    ) -> Result<(), Status> {
        let request = CreateRecordRequest {
            parent: name.result().to_string(),
            record: Some(as_record(name, data_type, Bytes::copy_from_slice(value))),
        };
        self.rpc.clone().create_record(request).await.map(drop)
    }

    /// Whether the server holds a later state of the run than `value`.
    fn is_late(&self, value: &[u8], stored: Option<&Any>) -> bool {
        let parse = |bytes: &[u8]| json::parse(bytes).ok();
        let (Some(new), Some(stored)) = (parse(value), stored.and_then(|s| parse(&s.value))) else {
            return false;
        };
        let view = |object| View::with_kinds(object, &self.kinds);
        is_earlier(&view(&new), &view(&stored))
    }
}

pub(super) fn as_record(name: &RecordName, data_type: &str, value: Bytes) -> Record {
    Record {
        name: name.to_string(),
        data: Some(Any {
            r#type: data_type.to_owned(),
            value,
        }),
        ..Record::default()
    }
}

/// Whether there is anything to say about the result; of a child of another run there is not.
pub(super) fn says_something(upload: &Upload) -> bool {
    upload.summary.is_some() || !upload.annotations.is_empty()
}

/// A record has no result to be in.
fn is_orphaned(status: &Status) -> bool {
    matches!(status.code(), Code::NotFound | Code::FailedPrecondition)
}

fn found<T>(answer: Result<tonic::Response<T>, Status>) -> Result<Option<T>, Status> {
    match answer {
        Ok(response) => Ok(Some(response.into_inner())),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

/// Somebody else was faster: the row changed or went since it was read.
fn lost(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::FailedPrecondition | Code::NotFound | Code::Aborted
    )
}

/// What the result should become, or `None` if it is that already; see [`precedence`].
fn merged(current: RunResult, upload: &Upload) -> Option<RunResult> {
    let found = precedence(
        upload.summary.as_ref().map(as_claim),
        current.summary.as_ref().map(as_claim),
    );
    if found == Precedence::Late {
        return None;
    }
    let speaks = found == Precedence::Speaks;
    let mut wanted = current.clone();
    for (key, value) in &upload.annotations {
        if speaks || !wanted.annotations.contains_key(key) {
            wanted.annotations.insert(key.clone(), value.clone());
        }
    }
    if speaks {
        // It was seen again.
        if !upload.annotations.contains_key(keys::CLOSED) {
            wanted.annotations.remove(keys::CLOSED);
        }
        wanted.summary.clone_from(&upload.summary);
    }
    (wanted != current).then_some(wanted)
}

fn as_claim(summary: &RecordSummary) -> Claim<'_> {
    Claim {
        record: &summary.record,
        began: summary.start_time.map(|time| (time.seconds, time.nanos)),
        is_over: summary.status != record_summary::Status::Unknown as i32,
    }
}
