//! What is read of the record of a run: its payload, at the expense of the caller, or columns alone.

use hindsight_filter::condition::ObjectField;
use hindsight_run::{Kind, json};
use hindsight_storage::{ListQuery, Priority, Projection, RecordColumns};
use serde_json::Value;

use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::model::{Record, RecordName};
use hindsight_storage as storage;

/// Which columns are read, beside how the run went.
const FIELDS: [ObjectField; 1] = [ObjectField::Kind];

impl Service {
    /// What `look` makes of a record and of the object in its payload, if it holds one; none if the record is not
    /// there. A payload may be large: its memory is taken from `quota`, and it is parsed at low priority when it is
    /// the caller's turn.
    pub(super) async fn look_at<T: Send + 'static>(
        &self,
        quota: &QuotaGuard,
        name: &RecordName,
        look: impl FnOnce(&Record, Option<Value>) -> T + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let by = RequestContext {
            quota: quota.clone(),
            ..RequestContext::default()
        };
        let record = match self.read_record(&by, name).await {
            Err(Error::Store(storage::Error::Missing(_))) => return Ok(None),
            read => read?,
        };
        let engine = self.engine.with_quota(quota);
        let looking = engine.compute(move || {
            let data = record.data.as_ref();
            let object = data.and_then(|data| json::parse(&data.value).ok());
            look(&record, object)
        });
        Ok(Some(looking.await?))
    }

    /// A record without the bytes of its payload; none if it is not there.
    pub(super) async fn row_of(&self, name: &RecordName) -> Result<Option<RecordColumns>, Error> {
        let query = ListQuery {
            bodies: false,
            projection: Projection::of(&FIELDS),
            ..ListQuery::of_record(name, Priority::Normal)
        };
        let found = self.store.list_columns(&query).await?;
        Ok(found.into_iter().next().map(|listed| listed.item))
    }

    /// Whether a run is known to go on. Each follower of its log asks every second, so no payload is read.
    pub(super) async fn is_going_on(&self, run: &RecordName) -> Result<bool, Error> {
        let row = self.row_of(run).await?;
        Ok(row.is_some_and(|row| goes_on(&row)))
    }
}

/// Whether a record is of a run that has not ended. Third parties may store anything under the type of a run, so the
/// object has to say that it is of that kind, too.
fn goes_on(row: &RecordColumns) -> bool {
    let data = row.record.data.as_ref();
    let known = data.and_then(|data| Kind::of_type(&data.data_type));
    let kind = row.object.text(ObjectField::Kind);
    let is_run = known.is_some_and(|known| kind == Some(known.kind));
    let run = row.object.run;
    is_run && run.outcome.is_some() && run.ended.is_none()
}
