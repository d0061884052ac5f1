//! What an issuer said, kept for a while: one asks, the others wait, and an issuer that does not
//! answer is not asked at every call.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::Error;
use super::provider::unanswered;
use hindsight_runtime::clock::Clock;

/// After how long the issuer is asked again.
const FRESH: SignedDuration = SignedDuration::from_mins(10);
/// For how long its last answer is believed while it does not answer.
const STALE: SignedDuration = SignedDuration::from_hours(24);
/// How often the issuer is asked at most: tokens with made-up keys must not make us ask it.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug)]
struct State<T> {
    answer: Option<Arc<T>>,
    read: Option<Timestamp>,
    asked: Option<Timestamp>,
}

/// The last answer of an issuer to one question.
#[derive(Debug)]
pub(super) struct Kept<T> {
    clock: Arc<dyn Clock>,
    state: Mutex<State<T>>,
    /// One asks, the others wait for what comes of it.
    asking: tokio::sync::Mutex<()>,
}

impl<T> Kept<T> {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::new(State {
                answer: None,
                read: None,
                asked: None,
            }),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// The answer, if it is young.
    pub(super) fn fresh(&self) -> Option<Arc<T>> {
        self.younger_than(FRESH)
    }

    fn younger_than(&self, age: SignedDuration) -> Option<Arc<T>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_young = self.clock.now().duration_since(state.read?) < age;
        state.answer.clone().filter(|_| is_young)
    }

    /// Asks with `question`, unless that was done lately. Gives the last answer, and why none is newer.
    pub(super) async fn renew(
        &self,
        question: impl Future<Output = Result<T, Error>>,
    ) -> (Option<Arc<T>>, Result<(), Error>) {
        let outcome = self.ask(question).await;
        (self.younger_than(STALE), outcome)
    }

    /// The answer, which is asked for with `question` if it is not young.
    pub(super) async fn get(
        &self,
        question: impl Future<Output = Result<T, Error>>,
    ) -> Result<Arc<T>, Error> {
        if let Some(answer) = self.fresh() {
            return Ok(answer);
        }
        match self.renew(question).await {
            (Some(answer), _) => Ok(answer),
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(asked_lately()),
        }
    }

    async fn ask(&self, question: impl Future<Output = Result<T, Error>>) -> Result<(), Error> {
        let _asking = self.asking.lock().await;
        let now = self.clock.now();
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state
                .asked
                .is_some_and(|asked| now.duration_since(asked) < PAUSE)
            {
                return Ok(());
            }
            state.asked = Some(now);
        }
        let answer = question.await?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.answer = Some(Arc::new(answer));
        state.read = Some(now);
        Ok(())
    }
}

pub(super) fn asked_lately() -> Error {
    unanswered("the issuer was asked a moment ago")
}
