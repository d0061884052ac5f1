//! A run that speaks for its result: result and record change together or not at all, so that a
//! late sender wins neither.

use hindsight_proto::v1alpha2::record_summary::Status;
use hindsight_run::{Claim, Precedence, keys, precedence};

use super::{
    Error, Service,
    commit::{AuditPolicy, lost},
    upsert::{Effect, RACES, Upsert, Upserted},
};
use hindsight_access::auth::Verb;
use hindsight_filter::model::{RunResult, Summary};
use hindsight_storage as storage;
use hindsight_storage::{Batch, Change};

impl Service {
    /// The result of a record as its first run describes it.
    pub(super) fn described_result(&self, upsert: &Upsert) -> RunResult {
        let name = upsert.name.result().clone();
        self.new_result(name, upsert.annotations.clone(), upsert.summary.clone())
    }

    /// Stores a record and what it says of its result, of which either may be there already.
    pub(super) async fn upsert_together(&self, upsert: &Upsert) -> Result<Upserted, Error> {
        let mut race = storage::Error::Missing(upsert.name.to_string());
        for _ in 0..RACES {
            let by = upsert.context();
            let read = async {
                let result = self.store.result(upsert.name.result()).await?;
                Ok((result, self.store.record(&upsert.name).await?))
            };
            let read: Result<_, Error> = read.await;
            let (result, record) = self.audited(by, Verb::Update, &upsert.name, read).await?;
            let mut changes = Vec::new();
            let mut done = Upserted {
                record: Effect::Unchanged,
                result: Effect::Unchanged,
            };
            if record
                .as_ref()
                .is_some_and(|stored| upsert.is_late_for(stored))
            {
                return Ok(done);
            }
            match result {
                None => {
                    changes.push(Change::InsertResult(self.described_result(upsert)));
                    done.result = Effect::Created;
                }
                Some(current) => {
                    if let Some(wanted) = merged(&current, upsert) {
                        let value =
                            self.changed_result(&current, wanted.annotations, wanted.summary);
                        let expect = current.etag;
                        changes.push(Change::ReplaceResult { expect, value });
                        done.result = Effect::Updated;
                    }
                }
            }
            let data = Some(upsert.data.clone());
            match record {
                None => {
                    let record = self.new_record(upsert.name.clone(), data);
                    changes.push(Change::InsertRecord(record));
                    done.record = Effect::Created;
                }
                Some(current) if current.data == data => {}
                Some(current) => {
                    let value = self.changed_record(&current, data);
                    let expect = current.etag;
                    changes.push(Change::ReplaceRecord { expect, value });
                    done.record = Effect::Updated;
                }
            }
            if changes.is_empty() {
                return Ok(done);
            }
            match self
                .commit(by, Batch { changes }, AuditPolicy::UnlessLost)
                .await
            {
                Ok(()) => return Ok(done),
                Err(error) if lost(&error) => race = error,
                Err(error) => return Err(error.into()),
            }
        }
        Err(race.into())
    }
}

/// What the result should become, or `None` if it is that already.
fn merged(current: &RunResult, upsert: &Upsert) -> Option<RunResult> {
    let found = {
        let ours = upsert.summary.as_ref().map(|s| (s.record.to_string(), s));
        let theirs = current.summary.as_ref().map(|s| (s.record.to_string(), s));
        precedence(
            ours.as_ref().map(|(name, summary)| claim(name, summary)),
            theirs.as_ref().map(|(name, summary)| claim(name, summary)),
        )
    };
    if found == Precedence::Late {
        return None;
    }
    let speaks = found == Precedence::Speaks;
    let mut wanted = current.clone();
    for (key, value) in &upsert.annotations {
        if speaks || !wanted.annotations.contains_key(key) {
            wanted.annotations.insert(key.clone(), value.clone());
        }
    }
    if speaks {
        if !upsert.annotations.contains_key(keys::CLOSED) {
            wanted.annotations.remove(keys::CLOSED);
        }
        wanted.summary.clone_from(&upsert.summary);
    }
    (wanted != *current).then_some(wanted)
}

fn claim<'a>(record: &'a str, summary: &Summary) -> Claim<'a> {
    Claim {
        record,
        began: summary
            .start_time
            .map(|time| (time.as_second(), time.subsec_nanosecond())),
        is_over: summary.status != Status::Unknown as i32,
    }
}
