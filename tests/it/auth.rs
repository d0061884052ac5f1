//! Who may do what: every method, asked by everybody, in every mode, by REST and gRPC.

mod matrix;
pub mod oidc;
mod outages;
mod private;
mod tls;
mod tokens;
mod upserts;

use kubesim::{Listening, Sim};

/// The group under which roles name results and records.
const GROUP: &str = "results.tekton.dev";

/// A simulated cluster that listens.
async fn cluster() -> (Sim, Listening) {
    let sim = Sim::new();
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    (sim, listening)
}

/// The value of an `authorization` header.
fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}
