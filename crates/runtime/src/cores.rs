//! How many threads run at once.

use std::{num::NonZeroUsize, sync::LazyLock, thread::available_parallelism};

/// Cores that the process may use, as they were when it first asked: the answer is read from files of
/// the control group, which takes 50 µs.
pub fn cores() -> usize {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| available_parallelism().map_or(1, NonZeroUsize::get));
    *CORES
}
