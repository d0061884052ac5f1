//! The steps of a plan.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;

use hindsight_proto::names::RecordName;
use hindsight_run::Upload;

/// One thing to do. All are idempotent.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the server what it holds for this run, and remember that.
    Ask(Box<Upload>),
    /// Store the object as it is.
    Store(Box<Upload>),
    /// Store the Kubernetes events about the run as this record, unless it is there.
    StoreEvents(RecordName),
    /// Put these annotations on the object, when the pace of writes to the cluster allows it;
    /// nothing that follows waits for that.
    Annotate(BTreeMap<String, String>),
    /// Put this finalizer on the object, as a server-side apply that names the UID. It changes the
    /// object, so what follows is planned on the changed one; so it is when ours come off.
    AddFinalizer(&'static str),
    /// Take our finalizers off.
    RemoveFinalizers(Removal),
    /// Delete the object, if it still has this UID and version, after the server has proved
    /// once more that it holds it.
    Delete {
        /// The UID that the object must still have.
        uid: String,
        /// The version that was decided about.
        resource_version: String,
    },
    /// Plan again at this time, unless something happens before.
    LookAgain(Timestamp),
    /// It says of itself that it is stored as it is; ask the server whether that is so,
    /// at this time.
    Trust(Timestamp),
    /// Say on the run's result that it was not seen to finish.
    Close {
        /// What was seen instead of its end.
        reason: &'static str,
    },
    /// Nothing of the run could be stored.
    Lose {
        /// Why nothing could be stored.
        reason: &'static str,
    },
    /// It cannot be stored as it is.
    Refuse {
        /// What is wrong with it.
        reason: String,
    },
    /// Remember the run no longer.
    Forget,
}

/// Takes our finalizers off, whichever watcher put them on, if the object still has this version.
/// They make a delete by others wait until the run is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The version that was decided about.
    pub resource_version: String,
    /// The finalizers that stay, because they are not ours.
    pub left: Vec<String>,
    /// Annotations to put on the object in the same write.
    pub annotations: BTreeMap<String, String>,
    /// What waits for it.
    pub urgency: Urgency,
}

/// What waits until a finalizer comes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Nothing: the run is stored, and a later delete need not wait.
    Idle,
    /// A delete, or a run that is no longer watched.
    Awaited,
    /// A delete that has waited for as long as was agreed, though the run is not stored.
    Overdue,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(upload) => write!(f, "ask for {}", upload.grouping.record),
            Self::Store(upload) => write!(f, "store {}", upload.grouping.record),
            Self::StoreEvents(record) => write!(f, "store events as {record}"),
            Self::Annotate(annotations) => {
                f.write_str("annotate")?;
                list(annotations, f)
            }
            Self::AddFinalizer(finalizer) => write!(f, "put finalizer {finalizer} on"),
            Self::RemoveFinalizers(Removal {
                resource_version,
                left,
                annotations,
                urgency,
            }) => {
                let why = match urgency {
                    Urgency::Overdue => ", overdue",
                    Urgency::Idle | Urgency::Awaited => "",
                };
                let left = left.join(", ");
                write!(
                    f,
                    "take finalizers off at version {resource_version}, leaving [{left}]{why}"
                )?;
                if !annotations.is_empty() {
                    f.write_str(", annotate")?;
                }
                list(annotations, f)
            }
            Self::Delete {
                uid,
                resource_version,
            } => {
                write!(f, "delete uid {uid} at version {resource_version}")
            }
            Self::LookAgain(time) => write!(f, "look again at {time}"),
            Self::Trust(time) => write!(f, "trust until {time}"),
            Self::Close { reason } => write!(f, "close: {reason}"),
            Self::Lose { reason } => write!(f, "lose: {reason}"),
            Self::Refuse { reason } => write!(f, "refuse: {reason}"),
            Self::Forget => f.write_str("forget"),
        }
    }
}

fn list(annotations: &BTreeMap<String, String>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    annotations
        .iter()
        .try_for_each(|(key, value)| write!(f, " {key}={value}"))
}
