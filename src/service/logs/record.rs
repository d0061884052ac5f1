//! The records that tell of logs, of the types `results.tekton.dev/v1alpha3.Log` and `v1alpha2.Log`, as
//! clients of Tekton Results know them.

use hindsight_run::{View, json};
use hindsight_storage::{Change, LogKind, StoredLog};
use md5::{Digest as _, Md5};
use serde_json::{Value, json};

use super::Found;
use crate::service::{Error, Service, commit::AuditPolicy};
use hindsight_access::RequestContext;
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::model::{Payload, Record, RecordName};
use hindsight_storage as storage;

/// The types of such records, the one first that is written.
pub(super) const TYPES: [&str; 2] = [
    "results.tekton.dev/v1alpha3.Log",
    "results.tekton.dev/v1alpha2.Log",
];

/// How many times such a record is read again that another writer changed.
const RACES: usize = 16;

pub(super) fn is_log(record: &Record) -> bool {
    let data = record.data.as_ref();
    data.is_some_and(|data| TYPES.contains(&data.data_type.as_str()))
}

/// Whether a record is about what Tekton Results made, and not about a run.
pub(super) fn is_of_results(record: &Record) -> bool {
    let data = record.data.as_ref();
    data.is_some_and(|data| data.data_type.starts_with("results.tekton.dev/"))
}

fn object(record: &Record) -> Option<Value> {
    let data = record.data.as_ref()?;
    json::parse(&data.value).ok()
}

/// The UID of the object that a record is about: of its own one, or of the run whose log it tells of.
pub(super) fn subject(is_log: bool, object: &Value) -> Option<String> {
    let uid = match is_log {
        true => &object["spec"]["resource"]["uid"],
        false => &object["metadata"]["uid"],
    };
    uid.as_str().map(str::to_owned)
}

/// What is to be told of a log.
#[derive(Debug, Clone, Default)]
pub(super) struct Status {
    bytes: i64,
    is_stored: bool,
    error: String,
    is_retryable: bool,
}

impl Status {
    /// Of what is stored: an upload alone, or all containers.
    pub(super) fn of(sources: &[StoredLog]) -> Self {
        let upload = sources.iter().find(|it| it.key.kind == LogKind::Uploaded);
        let bytes = match upload {
            Some(upload) => upload.bytes,
            None => sources.iter().map(|source| source.bytes).sum(),
        };
        let is_whole = sources.iter().all(|source| source.sha256.is_some());
        Self {
            bytes,
            is_stored: upload.is_some() || !sources.is_empty() && is_whole,
            ..Self::default()
        }
    }

    /// Of what is stored, when more was not.
    pub(super) fn failed(self, why: String, is_retryable: bool) -> Self {
        Self {
            error: why,
            is_retryable,
            ..self
        }
    }

    fn json(&self) -> Value {
        json!({
            "size": self.bytes,
            "isStored": self.is_stored,
            "errorOnStoreMsg": self.error,
            "isRetryableErr": self.is_retryable,
        })
    }
}

/// The name that upstream gives: a UUID of version 3 of the result's UID and the object's.
pub(super) fn id(result_uid: &str, object_uid: &str) -> String {
    let namespace = uuid::Uuid::try_parse(result_uid).unwrap_or_default();
    let mut md5 = Md5::new();
    md5.update(namespace.as_bytes());
    md5.update(object_uid.as_bytes());
    let digest: [u8; 16] = md5.finalize().into();
    uuid::Builder::from_md5_bytes(digest)
        .into_uuid()
        .to_string()
}

/// A record of a log as it is made first, for a run of which the record may not be there yet.
fn new_object(id: &str, run: &RecordName, of: Option<&Value>) -> Value {
    let none = Value::Null;
    let view = View::new(of.unwrap_or(&none));
    let parent = run.result().parent().as_str();
    let namespace = view.namespace().unwrap_or(parent);
    let name = view.name().unwrap_or(run.id());
    json!({
        "kind": "Log",
        "apiVersion": "results.tekton.dev/v1alpha3",
        "metadata": {"name": format!("{name}-log"), "namespace": namespace, "uid": id},
        "spec": {
            "resource": {
                "kind": view.kind().unwrap_or_default(),
                "namespace": namespace,
                "name": name,
                "uid": view.uid().unwrap_or(run.id()),
            },
            "type": "File",
        },
    })
}

fn payload(object: &Value) -> Payload {
    Payload::new(TYPES[0].to_owned(), object.to_string().into())
}

impl Service {
    /// The name of the record that tells of a log, if that is there.
    pub(super) async fn log_record_of(
        &self,
        quota: &QuotaGuard,
        found: &Found,
    ) -> Result<Option<RecordName>, Error> {
        if let Some(record) = found.record.as_ref().filter(|record| record.is_log) {
            return Ok(Some(record.name.clone()));
        }
        let named = self.log_record_name(quota, &found.run).await?;
        let Some((named, _)) = named else {
            return Ok(None);
        };
        Ok(self.row_of(&named).await?.map(|row| row.record.name))
    }

    /// The name that the record of the log of a run has, and the object of the run; none without the result.
    async fn log_record_name(
        &self,
        quota: &QuotaGuard,
        run: &RecordName,
    ) -> Result<Option<(RecordName, Option<Value>)>, Error> {
        let Some(result) = self.store.result(run.result()).await? else {
            return Ok(None);
        };
        let part = quota.part();
        let object = self.look_at(&part, run, |_, object| object).await?;
        let object = object.flatten();
        let uid = object
            .as_ref()
            .and_then(|object| object["metadata"]["uid"].as_str());
        let id = id(&result.uid, uid.unwrap_or(run.id()));
        let name = run.result().record(&id);
        let name = name.map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Some((name, object)))
    }

    /// Makes the record that tells of the log of a run, or brings it up to date. `named` is the one that a client
    /// made, if there is one.
    pub(super) async fn tell_of_log(
        &self,
        by: &RequestContext,
        run: &RecordName,
        named: Option<&RecordName>,
        status: &Status,
    ) -> Result<RecordName, Error> {
        let mut last = storage::Error::Missing(run.result().to_string());
        for _ in 0..RACES {
            let (name, of) = match named {
                Some(named) => (named.clone(), None),
                None => match self.log_record_name(&by.quota, run).await? {
                    Some(found) => found,
                    None => return Err(storage::Error::Missing(run.result().to_string()).into()),
                },
            };
            let change = match self.store.record(&name).await? {
                Some(current) if is_log(&current) => {
                    let mut told = object(&current).unwrap_or_default();
                    if !told.is_object() {
                        told = new_object(name.id(), run, of.as_ref());
                    }
                    if let Some(of) = &of
                        && told["spec"]["resource"]["kind"].as_str() == Some("")
                    {
                        told["spec"] = new_object(name.id(), run, Some(of))["spec"].take();
                    }
                    told["status"] = status.json();
                    let data_type = current.data.as_ref().map(|data| data.data_type.clone());
                    let mut data = payload(&told);
                    data.data_type = data_type.unwrap_or(data.data_type);
                    if current.data.as_ref() == Some(&data) {
                        return Ok(name);
                    }
                    Change::ReplaceRecord {
                        expect: current.etag.clone(),
                        value: self.changed_record(&current, Some(data)),
                    }
                }
                Some(_) => {
                    return Err(Error::Invalid(format!(
                        "record `{name}` is no record of a log, and has the name of one"
                    )));
                }
                None => {
                    let mut told = new_object(name.id(), run, of.as_ref());
                    told["status"] = status.json();
                    Change::InsertRecord(self.new_record(name.clone(), Some(payload(&told))))
                }
            };
            match self.commit_log_record(by, change).await {
                Ok(()) => return Ok(name),
                Err(
                    error @ (storage::Error::Stale { .. }
                    | storage::Error::Exists(_)
                    | storage::Error::Missing(_)),
                ) => last = error,
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.into())
    }

    /// Commits a change of such a record.
    pub(super) async fn commit_log_record(
        &self,
        by: &RequestContext,
        change: Change,
    ) -> Result<(), storage::Error> {
        self.commit(by, change.into(), AuditPolicy::UnlessLost)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_log_has_the_name_that_upstream_gives() {
        // Go: uuid.NewMD5(uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), "www.example.com").
        let id = id("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com");
        assert_eq!(id, "5df41881-3aed-3515-88a7-2f4a814cf09e");
    }
}
