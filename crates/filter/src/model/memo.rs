//! What was read of a payload, remembered beside its bytes.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// What was read of a payload, which may have changed since. Payloads are equal whether it is known or not. What it
/// is, the reader knows: nothing here names what reads payloads.
#[derive(Clone, Default)]
pub(crate) struct Memo(OnceLock<Known>);

#[derive(Clone)]
struct Known {
    data_type: String,
    value: Bytes,
    read: Arc<dyn Any + Send + Sync>,
}

impl Memo {
    /// Remembers what was read of a payload; the first of several stays.
    pub(crate) fn set<T: Any + Send + Sync>(&self, data_type: &str, value: &Bytes, read: T) {
        self.0.get_or_init(|| Known {
            data_type: data_type.to_owned(),
            value: value.clone(),
            read: Arc::new(read),
        });
    }

    /// What is remembered, if it is of this type and these very bytes: while it holds them, no other bytes are at
    /// their place.
    pub(crate) fn of<T: Any + Send + Sync>(self, data_type: &str, value: &Bytes) -> Option<Arc<T>> {
        let place = |bytes: &Bytes| (bytes.as_ptr(), bytes.len());
        let known = self.0.into_inner()?;
        let is_same = place(&known.value) == place(value) && known.data_type == data_type;
        known.read.downcast().ok().filter(|_| is_same)
    }
}

impl PartialEq for Memo {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Memo {}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}
