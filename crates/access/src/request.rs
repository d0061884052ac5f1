//! What is known of a request beside what its caller may do, which
//! is a [`Grant`](crate::auth::Grant).

use std::sync::Arc;

use crate::{auth::Caller, budget::QuotaGuard};

/// Who sent a request, under which id, and whose quota it is charged to. It permits nothing.
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    /// The caller, as it is named in the audit log.
    pub caller: Arc<Caller>,
    /// The id that the client gave the request, if it gave one.
    pub request_id: Option<Arc<str>>,
    /// The account that reads of the request are charged to.
    pub quota: QuotaGuard,
}

impl RequestContext {
    /// A request of `caller` without an id, charged to no one.
    #[must_use]
    pub fn of(caller: Arc<Caller>) -> Self {
        Self {
            caller,
            ..Self::default()
        }
    }
}
