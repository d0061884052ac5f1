//! The question before what cannot be undone.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::failure::Failure;

/// Asks on the terminal, and fails unless the answer is yes.
pub(super) fn confirm(question: &str, refused: &'static str) -> Result<(), Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage(
            "stdin is not a terminal to confirm on; add --yes to go on without a question",
        ));
    }
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "{question} This cannot be undone. [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::other(refused)),
    }
}
