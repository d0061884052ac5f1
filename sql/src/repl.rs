//! The shell: statements that end with `;`, from a terminal or another program.

use std::{
    io::{self, BufRead, IsTerminal as _, Write},
    sync::Arc,
};

use hindsight_connect::Failure;
use rustyline::{DefaultEditor, error::ReadlineError};
use tokio::runtime::Handle;

use crate::{
    Engine, Format, Scope,
    functions::HELP,
    output::{self, Unwritten},
};

const COMMANDS: &str = "\
Statements end with `;`. Ctrl-C ends one that runs, Ctrl-D the shell.
  \\d           tables
  \\d TABLE     columns of a table
  \\o FORMAT    write rows as `table`, `json` or `csv`
  \\?           this help
  \\q           end";

/// Runs statements for one caller, whose credentials are those of the command line.
#[derive(Debug, Clone)]
pub struct Runner {
    /// The engine.
    pub engine: Arc<Engine>,
    /// Of which parents rows are asked.
    pub scope: Scope,
}

impl Runner {
    /// Runs one statement and writes its rows.
    pub async fn run(
        &self,
        sql: &str,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> Result<(), Failure> {
        let connect = self.engine.source().connect();
        let client = connect.map(|connect| connect.client()).transpose()?;
        let server = connect.map(|connect| connect.server()).unwrap_or_default();
        let answered = async {
            let scope = self.scope.clone();
            let statement = self.engine.statement(client, scope, sql).await?;
            let answer = self.engine.run(statement).await?;
            output::write(answer, format, out).await
        };
        match answered.await {
            Ok(()) => Ok(out.flush()?),
            Err(Unwritten::Output(error)) => Err(error.into()),
            Err(Unwritten::Statement(error)) => Err(error.failure(server)),
        }
    }
}

/// What the shell is told.
enum Told<'l> {
    Statement(&'l str),
    Format(Format),
    Help,
    End,
    Unknown(&'l str),
}

fn told(text: &str) -> Told<'_> {
    let text = text.trim().trim_end_matches(';').trim();
    let Some(command) = text.strip_prefix('\\') else {
        return Told::Statement(text);
    };
    let (name, argument) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    match (name, argument.trim()) {
        ("q", _) => Told::End,
        ("?" | "h", _) => Told::Help,
        ("o", "table") => Told::Format(Format::Table),
        ("o", "json") => Told::Format(Format::Json),
        ("o", "csv") => Told::Format(Format::Csv),
        ("d", "") => Told::Statement("SHOW TABLES"),
        ("d", "runs") => Told::Statement("DESCRIBE runs"),
        ("d", "records") => Told::Statement("DESCRIBE records"),
        ("d", "results") => Told::Statement("DESCRIBE results"),
        ("d", "logs") => Told::Statement("DESCRIBE logs"),
        _ => Told::Unknown(text),
    }
}

/// Runs statements until the end of a terminal, or of standard input. It fails with what the first statement that did
/// not come from a terminal fails with.
pub async fn shell(runner: Runner, format: Format) -> Result<(), Failure> {
    let handle = Handle::current();
    let is_terminal = io::stdin().is_terminal();
    let shell = move || match is_terminal {
        true => interactive(&handle, &runner, format),
        false => read_statements(&handle, &runner, format, &mut io::stdin().lock()),
    };
    let ended = tokio::task::spawn_blocking(shell).await;
    ended.unwrap_or_else(|broken| Err(Failure::other(format!("the shell ended: {broken}"))))
}

fn interactive(handle: &Handle, runner: &Runner, mut format: Format) -> Result<(), Failure> {
    let wrong =
        |error: ReadlineError| Failure::other(format!("the terminal cannot be used: {error}"));
    let mut editor = DefaultEditor::new().map_err(wrong)?;
    writeln!(
        io::stderr(),
        "Statements end with `;`. \\? tells more, \\q ends."
    )?;
    let mut statement = String::new();
    loop {
        let prompt = if statement.is_empty() {
            "sql> "
        } else {
            "  -> "
        };
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                statement.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(wrong(error)),
        };
        if !statement.is_empty() {
            statement.push('\n');
        }
        statement.push_str(&line);
        let is_command = statement.trim_start().starts_with('\\');
        if statement.trim().is_empty() {
            statement.clear();
            continue;
        }
        if !is_command && !is_whole(&statement) {
            continue;
        }
        editor.add_history_entry(&statement).map_err(wrong)?;
        let text = std::mem::take(&mut statement);
        match told(&text) {
            Told::End => return Ok(()),
            Told::Format(other) => format = other,
            Told::Help => help()?,
            Told::Unknown(text) => {
                writeln!(
                    io::stderr(),
                    "`{text}` is not a command; \\? tells which there are"
                )?;
            }
            Told::Statement(sql) => {
                let run = interruptible(runner, sql, format);
                if let Err(failure) = handle.block_on(run) {
                    writeln!(io::stderr(), "error: {failure}")?;
                }
            }
        }
    }
}

async fn interruptible(runner: &Runner, sql: &str, format: Format) -> Result<(), Failure> {
    let mut out = io::stdout();
    tokio::select! {
        done = runner.run(sql, format, &mut out) => done,
        _ = tokio::signal::ctrl_c() => Err(Failure::other("ended by Ctrl-C")),
    }
}

fn help() -> io::Result<()> {
    let mut out = io::stderr();
    writeln!(out, "{COMMANDS}\nFunctions, beside those of DataFusion:")?;
    for (example, what) in HELP {
        writeln!(out, "  {example:<40} {what}")?;
    }
    Ok(())
}

/// Runs statements of `input` one after the other, and ends with the first that fails.
fn read_statements(
    handle: &Handle,
    runner: &Runner,
    mut format: Format,
    input: &mut dyn BufRead,
) -> Result<(), Failure> {
    let mut text = String::new();
    input.read_to_string(&mut text)?;
    for statement in statements(&text) {
        match told(statement) {
            Told::Statement("") => {}
            Told::Statement(sql) => {
                handle.block_on(runner.run(sql, format, &mut io::stdout()))?;
            }
            Told::Format(other) => format = other,
            Told::Help => help()?,
            Told::End => return Ok(()),
            Told::Unknown(text) => {
                return Err(Failure::usage(format!(
                    "`{text}` is not a command; `\\?` tells which there are"
                )));
            }
        }
    }
    Ok(())
}

/// Whether a text has a `;` that ends a statement.
fn is_whole(text: &str) -> bool {
    let mut parts = statements(text).into_iter();
    parts.next().is_some_and(|first| first.ends_with(';'))
}

/// The statements of a text, each with its `;`. One in quotes or a comment ends none, and a line that begins with `\` is
/// a statement by itself.
fn statements(text: &str) -> Vec<&str> {
    let (mut found, mut begin) = (Vec::new(), 0);
    let mut quote: Option<char> = None;
    let mut comment = false;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let is_command = text[begin..].trim_start().starts_with('\\');
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\n') if comment => comment = false,
            (None, _) if comment => {}
            (None, '\n') if is_command => {
                found.push(&text[begin..at]);
                begin = at + 1;
            }
            (None, '\'' | '"') if !is_command => quote = Some(c),
            (None, '-') if before == '-' => comment = true,
            (None, ';') => {
                found.push(&text[begin..=at]);
                begin = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    if !text[begin..].trim().is_empty() {
        found.push(&text[begin..]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_with_a_semicolon_that_is_not_quoted() {
        for (text, wanted) in [
            ("SELECT 1; SELECT 2;", vec!["SELECT 1;", " SELECT 2;"]),
            ("SELECT ';' ; ", vec!["SELECT ';' ;"]),
            ("SELECT 1 -- a; b\n;", vec!["SELECT 1 -- a; b\n;"]),
            ("\\o json\nSELECT 1", vec!["\\o json", "SELECT 1"]),
            ("", vec![]),
        ] {
            assert_eq!(statements(text), wanted);
        }
        assert!(is_whole("SELECT 1;") && !is_whole("SELECT ';'"));
    }
}
