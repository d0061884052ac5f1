//! What deletions leave for controllers to do, and the finalizers that hold owners until it is done.

use std::sync::Arc;

use crate::objects::{Key, KindId, Stored};

/// The finalizer that holds an owner until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer that holds an owner until its dependents have forgotten it.
pub(crate) const ORPHAN: &str = "orphan";

/// Something that a controller has to do.
#[derive(Debug, Clone)]
pub(crate) enum Chore {
    /// Look after the dependents and the namespace of what went.
    Follow(Arc<Stored>),
    /// Delete the dependents of an owner that waits for them.
    Foreground(KindId, Key),
    /// Let the dependents of an owner forget it.
    Orphan(KindId, Key),
    /// Delete what a namespace contains.
    Namespace(String),
}
