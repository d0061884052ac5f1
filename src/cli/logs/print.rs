//! Lines of logs as they are printed.

use std::io::Write;

use hindsight_logs::{Pattern, ends};
use hindsight_proto::v1::ReadLogResponse;
use jiff::Timestamp;

use crate::cli::{failure::Failure, log_message, output::plain};

const STEP: &str = "step-";

/// How lines are printed.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) timestamps: bool,
    pub(super) prefix: bool,
    /// The bytes as they are.
    pub(super) raw: bool,
    /// Only lines that match.
    pub(super) pattern: Option<Pattern>,
}

/// Prints the lines of containers, each once, in the form that was asked for.
#[derive(Debug)]
pub(super) struct Printer<W> {
    out: W,
    form: Form,
}

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W, form: Form) -> Self {
        Self { out, form }
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Prints the lines of a message that are wanted, and says how many it has.
    pub(super) fn lines(&mut self, task: &str, message: ReadLogResponse) -> Result<u64, Failure> {
        let source = message.source.unwrap_or_default();
        let lines = log_message::lines(message.lines.unwrap_or_default())?;
        let step = source
            .container
            .strip_prefix(STEP)
            .unwrap_or(&source.container);
        let prefix = match (self.form.prefix, task, step) {
            (false, ..) | (_, "", "") => String::new(),
            (true, "", step) => format!("[{}] ", plain(step, false)),
            (true, task, "") => format!("[{}] ", plain(task, false)),
            (true, task, step) => format!("[{} : {}] ", plain(task, false), plain(step, false)),
        };
        let hits = self
            .form
            .pattern
            .as_ref()
            .map(|pattern| pattern.find(&lines, 0));
        let mut wanted = hits
            .as_ref()
            .map(|hits| hits.iter().map(|hit| hit.at).peekable());
        let mut from = 0;
        for (at, end) in ends(&lines.text).enumerate() {
            let line = &lines.text[from..end];
            from = end;
            if let Some(wanted) = &mut wanted
                && wanted.next_if_eq(&at).is_none()
            {
                continue;
            }
            if self.form.timestamps {
                let time = lines.times.get(at).copied().unwrap_or_default();
                if let Ok(time) = Timestamp::from_microsecond(time) {
                    write!(self.out, "{time:.6} ")?;
                }
            }
            self.out.write_all(prefix.as_bytes())?;
            if self.form.raw {
                self.out.write_all(line)?;
            } else {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                writeln!(self.out, "{}", shown(line))?;
            }
        }
        Ok(lines.len() as u64)
    }
}

/// A line without what steers a terminal, and without colours.
pub(in crate::cli) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut kept = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find("\u{1b}[") {
        kept.push_str(&rest[..at]);
        let code = &rest[at + 2..];
        let length = code
            .find(|c: char| !(c.is_ascii_digit() || c == ';'))
            .unwrap_or(code.len());
        match code[length..].strip_prefix('m') {
            Some(after) => rest = after,
            None => {
                kept.push('\u{1b}');
                rest = &rest[at + 1..];
            }
        }
    }
    kept.push_str(rest);
    // A carriage return at the end is how another system ends a line.
    let kept = kept.strip_suffix('\r').unwrap_or(&kept);
    kept.split('\t')
        .map(|part| plain(part, false))
        .collect::<Vec<_>>()
        .join("\t")
}

#[cfg(test)]
mod tests {
    use hindsight_proto::v1::{LogLines, LogSource};

    use super::*;

    fn message(text: &[u8]) -> ReadLogResponse {
        let times =
            (0..ends(text).count()).map(|at| if at == 0 { 1_700_000_000_000_000 } else { 1 });
        ReadLogResponse {
            source: Some(LogSource {
                container: "step-test".to_owned(),
                ..LogSource::default()
            }),
            lines: Some(LogLines {
                text: text.to_vec(),
                times: times.collect(),
                ..LogLines::default()
            }),
        }
    }

    fn printed(form: Form, text: &[u8]) -> String {
        let mut printer = Printer::new(Vec::new(), form);
        printer.lines("unit", message(text)).unwrap();
        String::from_utf8_lossy(&printer.out).into_owned()
    }

    #[test]
    fn hostile_bytes_do_not_reach_a_terminal() {
        let form = |raw: bool| Form {
            timestamps: false,
            prefix: !raw,
            raw,
            pattern: None,
        };
        let text = b"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\xff\tend\r\n";
        let shown = printed(form(false), text);
        assert_eq!(
            shown,
            "[unit : test] red \\u{1b}]0;title\\u{7} \\u{1b}[2J\u{fffd}\tend\n"
        );
        assert_eq!(printed(form(true), b"\x1b[2Jx\n"), "\u{1b}[2Jx\n");
    }

    #[test]
    fn lines_that_match_come_with_their_times() {
        let form = Form {
            timestamps: true,
            prefix: false,
            raw: false,
            pattern: Some(Pattern::new("b|d", true, false).unwrap()),
        };
        assert_eq!(
            printed(form, b"a\nb\nc\nd"),
            "2023-11-14T22:13:20.000001Z b\n2023-11-14T22:13:20.000003Z d\n"
        );
    }
}
