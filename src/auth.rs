//! Who may do what. A [`Grant`] is the only way to the services, and only an [`Authorizer`]
//! makes one, so that forgetting to ask does not compile.

mod open;

use std::fmt::Debug;

use async_trait::async_trait;

pub use open::Open;

use crate::{
    error::{ErrorKind, HasKind},
    model::{Parent, ParentPattern, Resource},
};

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Make a new one.
    Create,
    /// Read one.
    Get,
    /// Change one.
    Update,
    /// Remove one.
    Delete,
    /// Read many.
    List,
}

/// What is asked for: a verb on a kind of resource under a parent, or under all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Access {
    /// The verb.
    pub verb: Verb,
    /// The kind of resource.
    pub resource: Resource,
    /// Where.
    pub parent: ParentPattern,
}

/// What a caller showed.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The bearer tokens, in the order in which they were sent.
    pub bearer: Vec<String>,
}

/// Leave to do one thing in one place. Made only in this room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    access: Access,
}

impl Grant {
    fn new(access: Access) -> Self {
        Self { access }
    }

    /// Confirms that this grant is for `verb` on `resource` under `parent`.
    ///
    /// # Errors
    /// If it was made for something else.
    pub fn check(&self, verb: Verb, resource: Resource, parent: &Parent) -> Result<(), Error> {
        let covers = match &self.access.parent {
            ParentPattern::Any => true,
            ParentPattern::Exact(granted) => granted == parent,
        };
        if covers && self.access.verb == verb && self.access.resource == resource {
            Ok(())
        } else {
            Err(Error::Denied)
        }
    }

    /// Confirms that this grant is for `verb` on `resource`, and says where.
    ///
    /// # Errors
    /// If it was made for something else.
    pub fn scope(&self, verb: Verb, resource: Resource) -> Result<&ParentPattern, Error> {
        if self.access.verb == verb && self.access.resource == resource {
            Ok(&self.access.parent)
        } else {
            Err(Error::Denied)
        }
    }
}

/// Why somebody may not do a thing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They are known and may not.
    #[error("permission denied")]
    Denied,
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Denied => ErrorKind::Denied,
        }
    }
}

/// Decides who may do what.
#[async_trait]
pub trait Authorizer: Debug + Send + Sync + 'static {
    /// Grants `access` to whoever showed `credentials`.
    async fn authorize(&self, credentials: &Credentials, access: Access) -> Result<Grant, Error>;
}
