//! `hindsight token`.

use std::{io::Write as _, process::ExitCode};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::failure::Failure;
use hindsight_access::auth::token_hash;

pub(super) const ABOUT: &str = "Make a token, and print it with its digest.

The token is for callers of the server (--token-file), the digest for the file of \
users that `hindsight serve --auth tokens --auth-tokens-file PATH` reads. The token is stored nowhere.";

pub(super) fn run() -> Result<ExitCode, Failure> {
    let random: Vec<u8> = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()]
        .iter()
        .flat_map(|uuid| uuid.into_bytes())
        .collect();
    let token = format!("hst_{}", URL_SAFE_NO_PAD.encode(random));
    let mut out = std::io::stdout().lock();
    writeln!(out, "token   {token}")?;
    writeln!(out, "sha256  {}", token_hash(&token))?;
    Ok(ExitCode::SUCCESS)
}
