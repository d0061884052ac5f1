//! What is known of indexed paths, without asking the database each time.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{codec::known::IndexedPaths, sql::condition};
use hindsight_filter::condition::{Ability, Column, Test};

/// How long what was read is taken for what is. A write that was prepared from an older set of
/// fields does not happen, and is prepared again.
const TRUSTED: Duration = Duration::from_secs(1);

/// What a process knows of indexed paths.
#[derive(Debug, Default)]
pub(crate) struct IndexCache {
    last: Mutex<Option<(Instant, Arc<IndexedPaths>)>>,
}

impl IndexCache {
    fn last(&self) -> MutexGuard<'_, Option<(Instant, Arc<IndexedPaths>)>> {
        // What is in it is replaced as a whole.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read not long ago.
    pub(super) fn recent(&self) -> Option<Arc<IndexedPaths>> {
        let last = self.last();
        let (at, known) = last.as_ref()?;
        (at.elapsed() < TRUSTED).then(|| Arc::clone(known))
    }

    /// Takes what was read for what is, whatever happens meanwhile.
    #[cfg(test)]
    pub(super) fn keep_for_long(&self, known: &Arc<IndexedPaths>) {
        let later = Instant::now() + Duration::from_hours(1);
        *self.last() = Some((later, Arc::clone(known)));
    }

    /// Forgets what was read, because it turned out to be outdated.
    pub(crate) fn forget(&self) {
        *self.last() = None;
    }

    /// Takes down what was read.
    pub(super) fn keep(&self, known: &Arc<IndexedPaths>) {
        *self.last() = Some((Instant::now(), Arc::clone(known)));
    }

    /// How well a test is answered, as far as is known. Should it turn out that a field is gone,
    /// its tests are left out.
    pub(crate) fn ability(&self, test: &Test) -> Ability {
        let Column::Indexed(of) = &test.column else {
            return condition::ability(test);
        };
        let last = self.last();
        match last.as_ref().and_then(|(_, known)| known.ready(of)) {
            Some(_) => condition::ability(test),
            None => Ability::None,
        }
    }
}
