//! Answering lists: the filter is split into what the store answers and what is evaluated here,
//! pages are refilled until they are full, and page tokens continue where a page ended.
//!
//! Invariant: a list gives every matching row that was there throughout exactly once, in order.

mod advice;
mod aggregate;
mod explain;
mod filter_batch;
mod fold;
mod item;
mod list;
mod scan;
#[cfg(test)]
mod tests;
mod token;

pub use aggregate::{Aggregate, Grouping};
pub use explain::{Certain, Explanation, Rest};
pub use fold::Fold;
pub use list::{Engine, LARGE_PAGE, List, Page};
pub use token::{Binding, TokenError, Tokens};

use std::time::Duration;

use hindsight_access::budget::QuotaExceeded;
use hindsight_filter::EvalError;
use hindsight_runtime::error::{ErrorKind, HasKind};
use hindsight_storage as storage;

/// Why a question is not answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The page token is not one of ours, or of another list.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The filter reads too much and found nothing so far.
    #[error(
        "the filter read {scanned} rows without a match, which is the budget of one call; \
         narrow it by parent, data_type or time"
    )]
    Budget {
        /// Rows that were read before the call gave up.
        scanned: u64,
    },
    /// What is measured must be read from more payloads than one call may read.
    #[error(
        "payloads of {scanned} records were read, which is the budget of one call, because the \
         filter or the groups ask for what has no column; narrow the filter by parent, data_type \
         or time, or ask for fields that are kept as columns"
    )]
    Measured {
        /// Records whose payloads were read before the call gave up.
        scanned: u64,
    },
    /// The filter costs too much on one row.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// One row is more than a message holds.
    #[error(
        "too large: `{name}` has {bytes} bytes, and this server sends messages of {limit} \
         (max_message_bytes); raise that, or delete the record"
    )]
    TooLarge {
        /// The full name of the row whose payload outgrew a message.
        name: String,
        /// Bytes that the row takes in a message, about; never fewer.
        bytes: usize,
        /// What a message may have.
        limit: usize,
    },
    /// A quota of the caller is used up.
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] storage::Error),
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Token(_) => ErrorKind::Invalid,
            Self::Eval(EvalError::Cancelled) => ErrorKind::Cancelled,
            Self::Budget { .. } | Self::Measured { .. } | Self::Eval(_) => ErrorKind::Exhausted,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Quota(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Quota(error) => error.retry_after(),
            _ => None,
        }
    }
}
