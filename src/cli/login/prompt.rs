//! Reading a token from a terminal, which does not show it, or from a pipe.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Stdin, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Longest token that is read.
const LONGEST: u64 = 65_536;

/// Keeps a terminal from showing what is typed, for as long as it exists.
#[derive(Debug)]
struct Hidden<'a> {
    terminal: &'a Stdin,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn on(terminal: &'a Stdin) -> std::io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ECHO;
        tcsetattr(terminal, OptionalActions::Flush, &modes)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing.
        let _gone = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// The token that standard input gives, without the blanks around it.
pub(super) fn token() -> std::io::Result<String> {
    let stdin = std::io::stdin();
    let mut text = String::new();
    if stdin.is_terminal() {
        let mut stderr = std::io::stderr().lock();
        write!(stderr, "Token: ")?;
        stderr.flush()?;
        let hidden = Hidden::on(&stdin)?;
        stdin.lock().take(LONGEST).read_line(&mut text)?;
        drop(hidden);
        writeln!(stderr)?;
    } else {
        stdin.lock().take(LONGEST).read_to_string(&mut text)?;
    }
    Ok(text.trim().to_owned())
}
