//! Calling the server for a run, and what becomes of its refusals and those of the cluster.

use std::sync::Arc;

use super::{Halt, Task};
use crate::{
    metrics::{OfCode, OfRefusal},
    refusals::{Action, Scope},
    sink::{Severity, SinkError},
};

/// How often a run is offered to a server that does not answer, before another one is. It may
/// be this run that the server cannot stand.
const OFFERS: u32 = 3;

impl Task<'_> {
    /// What is done to this run, for refusals.
    pub(super) fn scope(&self, action: Action) -> Scope {
        let ledger = self.shared.ledger();
        let entry = ledger.get(&self.uid);
        let is_of_server = matches!(action, Action::Store | Action::Read);
        Scope {
            action,
            kind: entry.filter(|_| !is_of_server).map_or("", |e| e.kind.kind),
            namespace: entry.map_or_else(|| "".into(), |e| Arc::clone(&e.namespace)),
        }
    }

    /// Whether it may be tried now, or waits because it was refused.
    pub(super) fn admit(&self, scope: &Scope) -> Result<(), Halt> {
        let now = self.shared.clock.now();
        let admitted = self.shared.refusals.admit(scope, Some(&self.uid), now);
        admitted.map_err(|error| Halt::Refused { error })
    }

    /// It was refused; `waits` for another time. Whether that is news.
    pub(super) fn refused(&self, scope: &Scope, waits: bool, code: &str, message: &str) -> bool {
        let shared = self.shared;
        let labels = OfRefusal {
            action: scope.action.name(),
            kind: scope.kind,
        };
        shared.metrics.refusals.get_or_create(&labels).inc();
        let uid = waits.then_some(&self.uid);
        let now = shared.clock.now();
        shared.refusals.refused(scope, uid, code, message, now)
    }

    /// Waits for `call`, and keeps the state that is worked on once the server is known to be away:
    /// other calls may find out while this one waits for its turn or its answer.
    async fn keeping<T>(&self, call: impl Future<Output = T>) -> T {
        let mut state = self.shared.gate.state();
        tokio::pin!(call);
        tokio::select! {
            biased;
            answer = &mut call => return answer,
            _ = state.wait_for(Option::is_some) => {}
        }
        self.keep().await;
        call.await
    }

    /// Calls the server, for as long as it takes until it answers.
    pub(super) async fn ask<T, F>(&self, action: Action, call: impl Fn() -> F) -> Result<T, Halt>
    where
        F: Future<Output = Result<T, SinkError>>,
    {
        let abandon = &self.shared.abandon;
        let mut offers = 0;
        let scope = self.scope(action);
        self.admit(&scope)?;
        loop {
            let called = async {
                let pass = self.shared.gate.enter().await;
                (pass, call().await)
            };
            let (pass, answer) = tokio::select! {
                biased;
                () = abandon.cancelled() => return Err(Halt::Abandoned),
                called = self.keeping(called) => called,
            };
            let error = match answer {
                Ok(value) => {
                    pass.answered();
                    self.shared.accepted(&scope);
                    return Ok(value);
                }
                Err(error) => error,
            };
            let labels = OfCode { code: error.code };
            self.shared
                .metrics
                .store_errors
                .get_or_create(&labels)
                .inc();
            if error.severity == Severity::Denied {
                pass.answered();
                let text = error.to_string();
                if self.refused(&scope, true, error.code, &text) {
                    self.complain(&text).await;
                }
                return Err(Halt::Refused { error: text });
            }
            if error.severity != Severity::Away {
                pass.answered();
                let is_rare = error.severity == Severity::Lasting;
                return Err(Halt::Later {
                    error: error.to_string(),
                    is_rare,
                    is_refused: true,
                    retry_after: None,
                });
            }
            pass.refused(&error);
            self.keep().await;
            let error = error.to_string();
            self.note(&error);
            offers += 1;
            if offers == OFFERS {
                return Err(Halt::Away { error });
            }
        }
    }
}
