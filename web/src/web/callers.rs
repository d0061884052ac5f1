//! Whose request it is, before anything is made for it.

use std::net::IpAddr;
use std::task::Poll;

use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::{Inner, Peer};
use crate::api::Refusal;
use crate::fault::Fault;

impl Inner {
    /// The name of the caller whom calls with this metadata are for; empty while callers are not asked
    /// who they are. Callers who are remembered do not wait for those who are not.
    pub(super) async fn identify(
        &self,
        metadata: &HeaderMap,
        parts: &Parts,
    ) -> Result<String, Fault> {
        if !self.options.asks_who {
            return Ok(String::new());
        }
        let refused = |status| Fault::Refused(Refusal::from(status));
        let mut identified = self.callers.identify(metadata, peer(parts));
        if let Poll::Ready(answer) = futures::poll!(&mut identified) {
            return answer.map_err(refused);
        }
        let _turn = self.turns.stranger().await?;
        identified.await.map_err(refused)
    }
}

/// The address from which a request came.
pub(super) fn peer(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get().map(|Peer(address)| *address)
}
