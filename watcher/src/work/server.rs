//! Calling the server for a run, and what becomes of its refusals and those of the cluster.

use super::{Interrupted, Task};
use crate::{
    metrics::{OfCode, OfRefusal},
    refusals::{Action, Scope},
    sink::{Severity, SinkError},
};

/// How often a call for one run is made to a server that does not answer, before another run has its
/// turn. It may be this run that the server fails on.
const MAX_ATTEMPTS: u32 = 3;

impl Task<'_> {
    /// Whether it may be tried now, or waits because it was refused. One that may try may do so once,
    /// so what was admitted before the plan was made is not asked again.
    pub(super) fn admit(&self, scope: &Scope) -> Result<(), Interrupted> {
        if self.admitted == Some(scope.action) {
            return Ok(());
        }
        let now = self.shared.clock.now();
        let admitted = self
            .shared
            .queues
            .refusals
            .admit(scope, Some(&self.uid), now);
        admitted.map_err(|error| Interrupted::Refused { error })
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
        shared
            .queues
            .refusals
            .refused(scope, uid, code, message, now)
    }

    /// Waits for `call`, and spools the state that is worked on once the server is known to be
    /// unavailable: other calls may find out while this one waits for its turn or its answer.
    async fn spooling<T>(&self, call: impl Future<Output = T>) -> T {
        let mut state = self.shared.server.gate.state();
        tokio::pin!(call);
        tokio::select! {
            biased;
            answer = &mut call => return answer,
            _ = state.wait_for(Option::is_some) => {}
        }
        self.spool().await;
        call.await
    }

    /// Calls the server, for as long as it takes until it answers.
    pub(super) async fn call_server<T, F>(
        &self,
        action: Action,
        call: impl Fn() -> F,
    ) -> Result<T, Interrupted>
    where
        F: Future<Output = Result<T, SinkError>>,
    {
        let abandon = &self.shared.abandon;
        let mut attempts = 0;
        let scope = self.scope(action);
        self.admit(&scope)?;
        loop {
            let called = async {
                let pass = self.shared.server.gate.enter().await;
                (pass, call().await)
            };
            let (pass, answer) = tokio::select! {
                biased;
                () = abandon.cancelled() => return Err(Interrupted::Abandoned),
                called = self.spooling(called) => called,
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
                    self.write_event(&text).await;
                }
                return Err(Interrupted::Refused { error: text });
            }
            if error.severity != Severity::Unavailable {
                pass.answered();
                let is_rare = error.severity == Severity::Lasting;
                return Err(Interrupted::Later {
                    error: error.to_string(),
                    is_rare,
                    is_refused: true,
                    retry_after: None,
                });
            }
            pass.refused(&error);
            self.spool().await;
            let error = error.to_string();
            self.note_error(&error);
            attempts += 1;
            if attempts == MAX_ATTEMPTS {
                return Err(Interrupted::Unavailable { error });
            }
        }
    }
}
