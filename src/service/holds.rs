//! Holds: results that retention leaves alone.

use std::num::NonZeroU32;

use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::model::{Resource, ResultName};
use hindsight_storage::{Change, Hold};
use jiff::Timestamp;

use super::{
    Error, Service,
    commit::{AuditPolicy, hold_name},
};
use crate::query::Error as QueryError;

const RESULTS: Resource = Resource::Results;
/// What a page token belongs to.
const METHOD: &str = "ListHolds";
/// Longest reason, in characters.
const MAX_REASON: usize = 1_000;

/// The holds of one page of a list, and where the next begins.
#[derive(Debug)]
pub struct Holds {
    /// In the order in which their results came.
    pub holds: Vec<Hold>,
    /// The token of the next page; empty on the last.
    pub next: String,
}

impl Service {
    /// Holds a result, until a time if there is one. It fails if the result is not there, or is held already.
    pub async fn create_hold(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: ResultName,
        reason: String,
        expire_time: Option<Timestamp>,
    ) -> Result<Hold, Error> {
        grant.check(Verb::Update, RESULTS, name.parent())?;
        let now = self.clock.now();
        let checked = check(&reason, expire_time, now);
        self.audited(by, Verb::Create, &hold_name(&name), checked)
            .await?;
        let hold = Hold {
            result: name,
            reason,
            caller: by.caller.name.clone(),
            create_time: now,
            expire_time,
        };
        let change = Change::InsertHold(hold.clone());
        self.commit(by, change.into(), AuditPolicy::All).await?;
        Ok(hold)
    }

    /// Ends the hold of a result. It fails if there is none.
    pub async fn delete_hold(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: ResultName,
    ) -> Result<(), Error> {
        grant.check(Verb::Update, RESULTS, name.parent())?;
        let change = Change::DeleteHold { name };
        Ok(self.commit(by, change.into(), AuditPolicy::All).await?)
    }

    /// A page of the holds within the parent that `grant` is for, those that have expired left out.
    pub async fn list_holds(
        &self,
        grant: &Grant,
        size: NonZeroU32,
        token: &str,
    ) -> Result<Holds, Error> {
        let parent = grant.scope(Verb::List, RESULTS)?;
        let (tokens, within) = (self.engine.tokens(), parent.to_string());
        let after = tokens.open_row(token, METHOD, &within);
        let after = after.map_err(QueryError::from)?;
        let rows = self.store.holds(parent, after, size).await?;
        let is_last = rows.len() < size.get() as usize;
        let next = rows.last().filter(|_| !is_last);
        let next = next.map(|(row, _)| tokens.seal_row(*row, METHOD, &within));
        let next = next.unwrap_or_default();
        let now = self.clock.now();
        let holds = rows.into_iter().map(|(_, hold)| hold);
        Ok(Holds {
            holds: holds.filter(|hold| hold.is_in_force(now)).collect(),
            next,
        })
    }
}

fn check(reason: &str, expire_time: Option<Timestamp>, now: Timestamp) -> Result<(), Error> {
    let length = reason.chars().count();
    if reason.trim().is_empty() || length > MAX_REASON || reason.contains(char::is_control) {
        return Err(Error::Invalid(format!(
            "reason is not 1 to {MAX_REASON} characters without control characters"
        )));
    }
    match expire_time {
        Some(time) if time <= now => Err(Error::Invalid(format!(
            "expire_time {time} is over; leave it out to hold without an end"
        ))),
        _ => Ok(()),
    }
}
