//! The pager: what a terminal shows of output that is longer than its screen.

use std::{
    io::{self, BufWriter, IsTerminal as _, Write},
    process::{Child, ChildStdin, Command, Stdio},
};

use clap::Args;
use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use unicode_width::UnicodeWidthStr as _;

/// The pager of an environment that names none.
const LESS: &str = "less -FRX";

/// Whether output goes through a pager, and which.
#[derive(Debug, Args)]
pub(super) struct Paging {
    /// Print without a pager, also what is longer than the screen
    #[arg(long)]
    no_pager: bool,

    /// Pager for output that is longer than the screen of a terminal; by default PAGER, or `less -FRX`
    #[arg(
        long,
        value_name = "COMMAND",
        env = "HINDSIGHT_PAGER",
        hide_env_values = true
    )]
    pager: Option<String>,

    #[arg(long, hide = true, env = "PAGER", hide_env_values = true)]
    pager_of_all: Option<String>,
}

impl Paging {
    /// Standard output, behind a pager where it is a terminal.
    pub(super) fn out(&self) -> Paged {
        let out = io::stdout();
        let size = match self.no_pager {
            true => None,
            false => out.is_terminal().then(|| tcgetwinsize(&out).ok()).flatten(),
        };
        let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
        let of_all = self.pager_of_all.as_deref();
        let command = self.pager.as_deref().or(of_all).unwrap_or(LESS).trim();
        let is_plain = command.is_empty() || command == "cat";
        Paged {
            to: match size.filter(|_| !is_plain) {
                None => To::Stdout,
                Some(size) => To::Held {
                    text: Vec::new(),
                    columns: usize::from(size.ws_col),
                    // The last line of the screen is that of the shell.
                    room: usize::from(size.ws_row) - 1,
                    command: command.to_owned(),
                },
            },
        }
    }
}

/// Output that a pager shows once it is longer than the screen. It ends when this is dropped, which
/// waits for the pager.
#[derive(Debug)]
pub(super) struct Paged {
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout,
    /// Text that fits the screen so far.
    Held {
        text: Vec<u8>,
        columns: usize,
        room: usize,
        command: String,
    },
    Pager(Pager),
}

/// A pager that runs.
#[derive(Debug)]
struct Pager {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    /// Ctrl-C is the pager's while it runs, so that it does not end this program before the pager.
    #[expect(dead_code, reason = "what counts is that it is there")]
    interrupts: Option<Signal>,
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Stdout => io::stdout().write(bytes),
            To::Pager(pager) => match &mut pager.input {
                Some(input) => input.write(bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            To::Held {
                text,
                columns,
                room,
                command,
            } => {
                text.extend_from_slice(bytes);
                if !is_longer(text, *columns, *room) {
                    return Ok(bytes.len());
                }
                let held = std::mem::take(text);
                self.to = match start(command) {
                    Ok(pager) => To::Pager(pager),
                    Err(_no_shell) => To::Stdout,
                };
                self.write_all(&held).map(|()| bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Stdout => io::stdout().flush(),
            To::Pager(pager) => pager.input.as_mut().map_or(Ok(()), Write::flush),
            To::Held { .. } => Ok(()),
        }
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        match &mut self.to {
            To::Stdout => {}
            To::Held { text, .. } => {
                let mut out = io::stdout().lock();
                // A terminal that is gone is told by what is written next.
                drop(out.write_all(text).and_then(|()| out.flush()));
            }
            To::Pager(pager) => {
                // What is left is written, and the pager reads its end.
                drop(pager.input.take());
                drop(pager.child.wait());
            }
        }
    }
}

/// A pager, by way of a shell, as git does it. Where there is no such program, the text is printed.
fn start(command: &str) -> io::Result<Pager> {
    let script = format!(
        "LESS=\"${{LESS-FRX}}\" LV=\"${{LV--c}}\"\nexport LESS LV\n{command}\n\
         [ $? -ne 127 ] || exec cat"
    );
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .spawn()?;
    Ok(Pager {
        input: child.stdin.take().map(BufWriter::new),
        child,
        interrupts: signal(SignalKind::interrupt()).ok(),
    })
}

/// Whether a text takes more lines of so many columns than there is room for.
fn is_longer(text: &[u8], columns: usize, room: usize) -> bool {
    let mut lines = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let cells = String::from_utf8_lossy(line).trim_end().width();
        lines += cells.div_ceil(columns).max(1);
        if lines > room {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_longer;

    #[test]
    fn lines_that_are_wrapped_take_several() {
        for (text, columns, room, longer) in [
            ("", 10, 0, false),
            ("a\nb\n", 10, 2, false),
            ("a\nb\nc", 10, 2, true),
            ("0123456789\n", 10, 1, false),
            ("01234567890\n", 10, 1, true),
            ("日本日本日本\n", 10, 1, true),
        ] {
            assert_eq!(is_longer(text.as_bytes(), columns, room), longer, "{text}");
        }
    }
}
