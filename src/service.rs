//! The use-cases: what each method of the API does, on types, for whoever holds a [`Grant`].
//!
//! Rules of the resources live here (what a name, a summary or a payload may be, how updates
//! merge); wire formats do not.

mod claims;
mod limits;
mod records;
mod results;
mod summary;
mod upsert;
mod write;

use std::{num::NonZeroU32, sync::Arc};

pub use limits::{MAX_TYPE_BYTES, page_size};
pub use records::RecordChange;
pub use summary::{Group, Measure, SummaryQuery, Value as SummaryValue};
pub use upsert::{Effect, Outcome, Upsert, UpsertGrants, Upserted};

use crate::{
    auth,
    clock::Clock,
    error::{ErrorKind, HasKind},
    filter::{FilterError, OrderError},
    query::{self, Engine},
    storage::{self, Store},
};

/// What a list is asked for, as it comes from outside.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// CEL.
    pub filter: &'a str,
    /// `<field> [asc|desc]`.
    pub order_by: &'a str,
    /// How many.
    pub size: NonZeroU32,
    /// Token of the page before.
    pub token: &'a str,
}

/// Why a use-case was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller may not.
    #[error(transparent)]
    Auth(#[from] auth::Error),
    /// The request is wrong in itself.
    #[error("{0}")]
    Invalid(String),
    /// The filter is wrong.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The order is wrong.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The list was not answered.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] storage::Error),
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Auth(error) => error.kind(),
            Self::Invalid(_) | Self::Filter(_) | Self::Order(_) => ErrorKind::Invalid,
            Self::Query(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }
}

/// The use-cases over one store.
#[derive(Debug, Clone)]
pub struct Service {
    store: Arc<dyn Store>,
    engine: Engine,
    clock: Arc<dyn Clock>,
    turns: write::Turns,
}

impl Service {
    /// The use-cases over `store`, whose lists `engine` answers.
    pub fn new(store: Arc<dyn Store>, engine: Engine, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            engine,
            clock,
            turns: write::Turns::new(),
        }
    }
}
