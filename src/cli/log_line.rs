//! Logs as lines of JSON, as they are exported and imported: a line that names a source, one for each line of its
//! log, and one that says how it ends.

use std::io::Write;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hindsight_proto::v1::{LogContainer, LogSource};
use hindsight_run::json;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{failure::Failure, output};

/// One line. Which of its members are there says what it is.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Json {
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restart: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Bytes that are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    text_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hole: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<bool>,
    /// The SHA-256 in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LogLine {
    /// A source begins: the log, and the container unless it was uploaded.
    Begin(String, Option<LogSource>),
    /// A line of the source.
    Line {
        number: i64,
        time_us: i64,
        text: Vec<u8>,
        is_hole: bool,
    },
    /// The source ends.
    End(End),
}

/// What is known of a source at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct End {
    pub(super) lines: i64,
    pub(super) bytes: i64,
    /// Of a source that is sealed, in hexadecimal digits.
    pub(super) sha256: Option<String>,
}

impl End {
    pub(super) fn of(log: &LogContainer) -> Self {
        Self {
            lines: log.lines,
            bytes: log.bytes,
            sha256: log.sealed.then(|| hex(&log.sha256)),
        }
    }
}

/// Bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl LogLine {
    /// Writes it as a line of JSON, in which nothing steers a terminal.
    pub(super) fn write(self, out: &mut impl Write) -> Result<(), Failure> {
        let text = serde_json::to_string(&Json::from(self));
        let text = text.map_err(|error| Failure::other(error.to_string()))?;
        if text.contains(output::steers) {
            writeln!(out, "{}", escaped(&text))?;
        } else {
            writeln!(out, "{text}")?;
        }
        Ok(())
    }

    /// Reads a line of JSON; the error says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let value = json::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        let json = Json::deserialize(value).map_err(|error| error.to_string())?;
        let wrong = || "it is neither the begin of a log, nor a line, nor an end".to_owned();
        match json {
            Json {
                log: Some(log),
                pod,
                container,
                restart,
                line: None,
                sealed: None,
                ..
            } => {
                let source = match (pod, container) {
                    (None, None) => None,
                    (Some(pod), Some(container)) => Some(LogSource {
                        pod,
                        container,
                        restart: restart.unwrap_or_default(),
                    }),
                    _ => return Err("it has a pod without a container, or the other".to_owned()),
                };
                Ok(Self::Begin(log, source))
            }
            Json {
                line: Some(number),
                time: Some(time),
                text,
                text_base64,
                hole,
                sealed: None,
                ..
            } => {
                let text = match (text, text_base64) {
                    (Some(text), None) => text.into_bytes(),
                    (None, Some(text)) => {
                        let bytes = STANDARD.decode(text);
                        bytes.map_err(|error| format!("textBase64: {error}"))?
                    }
                    _ => return Err("want either text or textBase64".to_owned()),
                };
                Ok(Self::Line {
                    number,
                    time_us: time.as_microsecond(),
                    text,
                    is_hole: hole == Some(true),
                })
            }
            Json {
                lines: Some(lines),
                bytes: Some(bytes),
                sealed: Some(is_sealed),
                sha256,
                ..
            } if is_sealed == sha256.is_some() => Ok(Self::End(End {
                lines,
                bytes,
                sha256,
            })),
            _ => Err(wrong()),
        }
    }
}

impl From<LogLine> for Json {
    fn from(line: LogLine) -> Self {
        match line {
            LogLine::Begin(log, source) => {
                let source = source.unwrap_or_default();
                let is_upload = source.container.is_empty();
                Self {
                    log: Some(log),
                    pod: (!is_upload).then_some(source.pod),
                    container: (!is_upload).then_some(source.container),
                    restart: (!is_upload).then_some(source.restart),
                    ..Self::default()
                }
            }
            LogLine::Line {
                number,
                time_us,
                text,
                is_hole,
            } => {
                let text = String::from_utf8(text);
                let bytes = text.as_ref().err();
                Self {
                    line: Some(number),
                    time: Some(Timestamp::from_microsecond(time_us).unwrap_or_default()),
                    text_base64: bytes.map(|error| STANDARD.encode(error.as_bytes())),
                    text: text.ok(),
                    hole: is_hole.then_some(true),
                    ..Self::default()
                }
            }
            LogLine::End(end) => Self {
                lines: Some(end.lines),
                bytes: Some(end.bytes),
                sealed: Some(end.sha256.is_some()),
                sha256: end.sha256,
                ..Self::default()
            },
        }
    }
}

/// JSON in which characters that steer a terminal are escaped. They stand in texts only, and have four digits.
fn escaped(json: &str) -> String {
    json.chars().fold(String::new(), |mut text, c| {
        if output::steers(c) {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = |text: &[u8]| LogLine::Line {
            number: 7,
            time_us: 1_772_445_600_000_001,
            text: text.to_vec(),
            is_hole: text.is_empty(),
        };
        let source = LogSource {
            pod: "pod".to_owned(),
            container: "step-unit".to_owned(),
            restart: 2,
        };
        for (written, shown) in [
            (
                LogLine::Begin("a/results/r/logs/l".to_owned(), Some(source)),
                r#"{"log":"a/results/r/logs/l","pod":"pod","container":"step-unit","restart":2}"#,
            ),
            (
                LogLine::Begin("a/results/r/logs/l".to_owned(), None),
                r#"{"log":"a/results/r/logs/l"}"#,
            ),
            (
                line("é\u{1b}[1m\u{9b}\u{202e}\u{7f}\0\r\n".as_bytes()),
                r#"{"line":7,"time":"2026-03-02T10:00:00.000001Z","text":"é\u001b[1m\u009b\u202e\u007f\u0000\r\n"}"#,
            ),
            (
                line(b"\xff\n"),
                r#"{"line":7,"time":"2026-03-02T10:00:00.000001Z","textBase64":"/wo="}"#,
            ),
            (
                line(b""),
                r#"{"line":7,"time":"2026-03-02T10:00:00.000001Z","text":"","hole":true}"#,
            ),
            (
                LogLine::End(End {
                    lines: 3,
                    bytes: 9,
                    sha256: Some("0a".to_owned()),
                }),
                r#"{"lines":3,"bytes":9,"sealed":true,"sha256":"0a"}"#,
            ),
        ] {
            let mut out = Vec::new();
            written.clone().write(&mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.trim_end(), shown);
            assert_eq!(LogLine::read(&text), Ok(written));
        }
    }

    #[test]
    fn a_line_that_is_none_says_why() {
        for (text, why) in [
            ("{}", "neither"),
            (r#"{"kind":"List"}"#, "unknown field"),
            (r#"{"log":"a","pod":"b"}"#, "without a container"),
            (r#"{"line":1,"time":"2026-03-02T10:00:00Z"}"#, "either text"),
            (r#"{"lines":1,"bytes":1,"sealed":true}"#, "neither"),
        ] {
            let found = LogLine::read(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
