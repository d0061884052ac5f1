//! No access control: for loopback, where everybody who can call is the owner.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Access, Authorizer, Caller, Credentials, Error, Grant};

/// Grants everything to everybody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Open;

#[async_trait]
impl Authorizer for Open {
    async fn identify(&self, _: &Credentials) -> Result<Arc<Caller>, Error> {
        Ok(Arc::default())
    }

    async fn authorize(&self, _: &Credentials, access: Access) -> Result<Grant, Error> {
        Ok(Grant::new(access, Arc::default()))
    }
}
