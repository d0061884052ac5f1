//! The record of every request the server was asked, with how it was answered. Bounded: the oldest
//! calls go first.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;

/// One request that the simulator received, and how it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `get list watch create update patch delete deletecollection`; for paths that are no
    /// resources, the HTTP method in lower case.
    pub verb: &'static str,
    /// API group; empty for core.
    pub group: String,
    /// Plural of the kind; for paths that are no resources, the path.
    pub resource: String,
    /// Subresource, such as `status`; empty for the object itself.
    pub subresource: String,
    /// Empty across namespaces and for kinds outside of them.
    pub namespace: String,
    /// Name of the object; empty for collections.
    pub name: String,
    /// Name of the user who sent the request.
    pub user: String,
    /// Answered status code; `None` when the connection broke instead.
    pub status: Option<u16>,
    /// When the request came, by the clock of the simulator.
    pub at: Timestamp,
}

/// A choice of recorded calls; filters narrow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// Only calls of this verb.
    #[must_use]
    pub fn verb(self, verb: &str) -> Self {
        self.filter(|call| call.verb == verb)
    }

    /// Only calls on this resource, by its plural.
    #[must_use]
    pub fn resource(self, resource: &str) -> Self {
        self.filter(|call| call.resource == resource)
    }

    /// Only calls on this API group.
    #[must_use]
    pub fn group(self, group: &str) -> Self {
        self.filter(|call| call.group == group)
    }

    /// Only calls in this namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.filter(|call| call.namespace == namespace)
    }

    /// Only calls on an object of this name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.filter(|call| call.name == name)
    }

    /// Only calls of this user.
    #[must_use]
    pub fn user(self, user: &str) -> Self {
        self.filter(|call| call.user == user)
    }

    /// Only calls that were answered with this status code.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        self.filter(|call| call.status == Some(status))
    }

    /// Only calls for which `keep` holds.
    #[must_use]
    pub fn filter(mut self, keep: impl Fn(&Call) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    /// How many are left.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The calls, oldest first.
    pub fn all(&self) -> &[Call] {
        &self.0
    }
}

/// Keeps the last `capacity` calls.
#[derive(Debug)]
pub(crate) struct CallLog {
    calls: Mutex<VecDeque<Call>>,
    capacity: usize,
}

impl CallLog {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            calls: Mutex::new(VecDeque::new()),
            capacity,
        }
    }

    pub(crate) fn record(&self, call: Call) {
        let mut calls = self.lock();
        calls.push_back(call);
        while calls.len() > self.capacity {
            calls.pop_front();
        }
    }

    pub(crate) fn chosen(&self, keep: impl Fn(&Call) -> bool) -> Calls {
        let calls = self.lock();
        Calls(calls.iter().filter(|call| keep(call)).cloned().collect())
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
