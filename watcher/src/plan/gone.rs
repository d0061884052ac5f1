//! What is done about a run that is gone.

use hindsight_proto::names::RecordName;
use hindsight_run::{Lifetime, Upload, View};
use hindsight_runtime::error::report;
use jiff::Timestamp;

use super::{Unstorable, finalizer, is_overdue};
use crate::plan::{
    remembered::{Finished, Remembered},
    step::{Step, Urgency},
    stored::{CopyEnd, ServerCopy},
};
use crate::policy::Policy;

/// Why a run was closed that was deleted before it ended.
pub const DELETED_UNFINISHED: &str = "deleted before it finished";

/// Why a run was closed or lost whose end was not seen.
pub const VANISHED: &str = "vanished while the watch was interrupted, last seen unfinished";

/// Why a run was lost that no name could be made for.
pub const UNNAMEABLE: &str = "left the cluster and could not be stored as it was";

/// Why an object was closed that lasts until it is deleted.
pub const DELETED: &str = "deleted";

/// Why such an object was closed whose removal was not seen.
pub const DELETED_UNSEEN: &str = "deleted while the watch was interrupted";

/// Why a finished run was lost.
pub const VANISHED_FINAL: &str = "vanished before its final state was stored";

/// What happens to a run that cannot be stored as it is.
pub(super) fn unnameable(
    view: &View<'_>,
    error: &Unstorable,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Vec<Step> {
    let reason = report(error);
    let refuse = Step::Refuse { reason };
    if remembered.presence.is_gone() {
        return vec![refuse, Step::Lose { reason: UNNAMEABLE }, Step::Forget];
    }
    let overdue = is_overdue(view, policy, now);
    let remove = overdue.then(|| finalizer::remove(view, Urgency::Overdue));
    remove.flatten().into_iter().chain([refuse]).collect()
}

/// The run is gone and this was its last state.
pub(super) fn on_deleted(
    upload: Upload,
    is_stored: bool,
    new_events: Option<RecordName>,
    (is_final, lifetime): (bool, Lifetime),
    remembered: &Remembered,
) -> Vec<Step> {
    let mut steps = Vec::new();
    if !is_stored {
        steps.push(Step::Store(Box::new(upload)));
    }
    let is_closed = is_final || remembered.copy().is_some_and(|c| c.end == CopyEnd::Closed);
    let reason = match lifetime {
        Lifetime::UntilFinished => Some(DELETED_UNFINISHED),
        Lifetime::UntilDeleted => Some(DELETED),
        Lifetime::Endless => None,
    };
    steps.extend(
        reason
            .filter(|_| !is_closed)
            .map(|reason| Step::Close { reason }),
    );
    // Events that cannot be read do not leave it open.
    steps.extend(new_events.map(Step::StoreEvents));
    steps.push(Step::Forget);
    steps
}

/// The run is gone and its last state is not known.
pub(super) fn without_object(remembered: &Remembered) -> Vec<Step> {
    let step = match &remembered.server {
        ServerCopy::Trusted => None,
        ServerCopy::Stored(copy) if copy.end != CopyEnd::Open => None,
        ServerCopy::Stored(_) => match remembered.lifetime {
            Lifetime::UntilFinished => Some(Step::Close { reason: VANISHED }),
            Lifetime::UntilDeleted => Some(Step::Close {
                reason: DELETED_UNSEEN,
            }),
            Lifetime::Endless => None,
        },
        ServerCopy::Unknown | ServerCopy::Absent => Some(Step::Lose {
            reason: match remembered.finished {
                Finished::No => VANISHED,
                Finished::AtFirstSight(_) | Finished::Later(_) => VANISHED_FINAL,
            },
        }),
    };
    step.into_iter().chain([Step::Forget]).collect()
}
