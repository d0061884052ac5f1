//! The keys of an issuer: found by discovery, kept, and asked for again when they are old or a
//! token names one that is not among them.

use std::sync::Arc;

use jsonwebtoken::jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse};

use super::Error;
use super::kept::{Kept, asked_lately};
use super::provider::{Provider, unanswered};
use hindsight_runtime::clock::Clock;

/// The keys of one issuer.
#[derive(Debug)]
pub(super) struct Keys {
    provider: Arc<Provider>,
    kept: Kept<JwkSet>,
}

impl Keys {
    pub(super) fn of(provider: Arc<Provider>, clock: Arc<dyn Clock>) -> Self {
        Self {
            provider,
            kept: Kept::new(clock),
        }
    }

    /// The key of this name; without a name, the only one there is.
    pub(super) async fn find(&self, kid: Option<&str>) -> Result<Option<Jwk>, Error> {
        if let Some(keys) = self.kept.fresh()
            && let Some(key) = pick(&keys, kid)
        {
            return Ok(Some(key));
        }
        match self.kept.renew(self.ask()).await {
            (Some(keys), Ok(())) => Ok(pick(&keys, kid)),
            (Some(keys), Err(error)) => match pick(&keys, kid) {
                Some(key) => Ok(Some(key)),
                None => Err(error),
            },
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(asked_lately()),
        }
    }

    async fn ask(&self) -> Result<JwkSet, Error> {
        let at = self.provider.discover().await?.jwks_uri;
        if !self.provider.trusts(&at) {
            return Err(unanswered(format!(
                "the issuer has its keys at `{at}`; want an address that begins with `https://`"
            )));
        }
        self.provider.get(&at).await
    }
}

/// Among the keys for signatures the one of this name; without a name, the only one.
pub(super) fn pick(keys: &JwkSet, kid: Option<&str>) -> Option<Jwk> {
    let mut all = keys.keys.iter().filter(|key| signs(key));
    match kid {
        Some(_) => all.find(|key| key.common.key_id.as_deref() == kid).cloned(),
        None => all.next().filter(|_| all.next().is_none()).cloned(),
    }
}

/// Whether a key is for signatures (RFC 7517, 4.2 and 4.3).
fn signs(key: &Jwk) -> bool {
    let by_use = key.common.public_key_use.as_ref();
    let by_operations = key.common.key_operations.as_ref();
    by_use.is_none_or(|it| *it == PublicKeyUse::Signature)
        && by_operations.is_none_or(|all| all.contains(&KeyOperations::Verify))
}
