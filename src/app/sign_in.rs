//! Sign-in of browsers at an issuer, as the pages know it.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use hindsight_access::auth::{self, CodeFlow, SignInError};
use hindsight_runtime::error::{ErrorKind, HasKind as _};
use hindsight_web::{Begun, Returned, SignIn};
use jiff::Timestamp;
use tonic::Status;

/// The authorization code flow, whose failures become statuses.
#[derive(Debug)]
pub(super) struct AtIssuer(pub(super) Arc<CodeFlow>);

impl SignIn for AtIssuer {
    fn host(&self) -> &str {
        self.0.host()
    }

    fn begin<'a>(&'a self, back: &'a str) -> BoxFuture<'a, Result<Begun, Status>> {
        async move {
            let begun = self.0.begin(back).await;
            let begun = begun.map_err(|error| failed(&error))?;
            Ok(Begun {
                location: begun.location,
                state: begun.state,
                nonce: begun.nonce,
                verifier: begun.verifier,
            })
        }
        .boxed()
    }

    fn finish<'a>(
        &'a self,
        secrets: (&'a str, &'a str),
        back: &'a str,
        answer: Returned<'a>,
    ) -> BoxFuture<'a, Result<(String, Timestamp), Status>> {
        async move {
            let answer = auth::Answer {
                code: answer.code,
                issuer: answer.issuer,
                error: answer.error,
                description: answer.description,
            };
            let signed_in = self.0.finish(secrets, back, answer).await;
            let signed_in = signed_in.map_err(|error| failed(&error))?;
            Ok((signed_in.token, signed_in.until))
        }
        .boxed()
    }

    fn sign_out<'a>(&'a self, back: &'a str) -> BoxFuture<'a, Option<String>> {
        self.0.sign_out(back).boxed()
    }
}

fn failed(error: &SignInError) -> Status {
    match error.kind() {
        ErrorKind::Unavailable => Status::unavailable(error.to_string()),
        _ => Status::unauthenticated(error.to_string()),
    }
}
