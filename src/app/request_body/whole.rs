//! Bodies of REST, which are taken as a whole.

use axum::{
    body::Body,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use futures::stream;
use hindsight_access::budget::MemoryPermit;
use tokio::time::Instant;
use tonic::Status;

use super::{BodyLimits, Parts, STEP};

/// A body that is one message, of which its head may say how long it is.
pub(in crate::app) fn whole(body: Body, headers: &HeaderMap, limits: BodyLimits) -> Body {
    let said = headers.get(header::CONTENT_LENGTH);
    let said = said.and_then(|length| length.to_str().ok()?.parse().ok());
    let whole = Whole {
        parts: Parts::of(body),
        expected: said.unwrap_or(0).min(limits.limit),
        end: limits.end(said.unwrap_or(limits.limit).min(limits.limit)),
        limits,
        held: None,
        came: 0,
    };
    let steps = stream::try_unfold(whole, async |mut whole| {
        let next = whole.next().await?;
        Ok::<_, Status>((!next.is_empty()).then_some((next, whole)))
    });
    Body::from_stream(steps)
}

pub(super) struct Whole {
    parts: Parts,
    limits: BodyLimits,
    expected: usize,
    end: Instant,
    held: Option<MemoryPermit>,
    came: usize,
}

impl Whole {
    async fn next(&mut self) -> Result<Bytes, Status> {
        if self.held.is_none() {
            self.held = Some(self.limits.take(self.expected).await?);
        }
        let patience = self.limits.patience;
        let part = self.parts.next(STEP, patience, Some(self.end)).await?;
        self.came += part.len();
        if let Some(held) = &mut self.held {
            if self.came > self.expected {
                self.expected = self.came + STEP;
                self.limits.resize(held, self.expected)?;
            }
            if part.is_empty() {
                self.limits.keep(std::mem::take(held));
            }
        }
        Ok(part)
    }
}
