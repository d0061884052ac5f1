//! Definitions of what runs execute, kept as records of the history by the server itself.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use hindsight_access::{RequestContext, auth::Caller};
use hindsight_filter::model::{Payload, Record, RecordName};
use hindsight_storage::{self as storage, Batch, Change};

use super::{
    Error, Service,
    commit::{AuditPolicy, lost},
};

/// How often a write is tried again that lost against another one.
const RACES: usize = 64;

/// Under which name the audit log has such writes.
const WRITER: &str = "hindsight:pipelines";

impl Service {
    /// Keeps what `next` makes of the payload of a record, which is none if it is not there; so does a later state of the
    /// same definition. Nothing is done if it makes nothing.
    ///
    /// # Errors
    /// If the store does not do it.
    pub async fn keep_definition(
        &self,
        name: &RecordName,
        data_type: &str,
        next: impl Fn(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<(), Error> {
        let by = RequestContext::of(Arc::new(Caller {
            name: WRITER.to_owned(),
            by: None,
        }));
        for _ in 0..RACES {
            let current = self.store.record(name).await?;
            let payload = current.as_ref().and_then(|record| record.data.as_ref());
            let Some(value) = next(payload.map(|payload| &*payload.value)) else {
                return Ok(());
            };
            let data = Payload::new(data_type.to_owned(), Bytes::from(value));
            match self.keep(&by, name, current, data).await {
                Err(error) if lost(&error) => {}
                outcome => return Ok(outcome?),
            }
        }
        Err(Error::Store(storage::Error::Unavailable {
            what: "keeping a definition",
            source: "others changed it all the time".into(),
        }))
    }

    async fn keep(
        &self,
        by: &RequestContext,
        name: &RecordName,
        current: Option<Record>,
        data: Payload,
    ) -> Result<(), storage::Error> {
        if let Some(current) = current {
            let change = Change::ReplaceRecord {
                expect: current.etag.clone(),
                value: self.changed_record(&current, Some(data)),
            };
            return self
                .commit(by, change.into(), AuditPolicy::UnlessLost)
                .await;
        }
        let record = Change::InsertRecord(self.new_record(name.clone(), Some(data)));
        let alone = self
            .commit(by, record.clone().into(), AuditPolicy::UnlessLost)
            .await;
        match alone {
            Err(storage::Error::Missing(_)) => {
                let result = self.new_result(name.result().clone(), BTreeMap::new(), None);
                let changes = vec![Change::InsertResult(result), record];
                self.commit(by, Batch { changes }, AuditPolicy::UnlessLost)
                    .await
            }
            outcome => outcome,
        }
    }
}
