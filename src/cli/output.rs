//! What commands print: tables for people, JSON and YAML for programs.

use std::{borrow::Cow, io::Write, process::ExitCode};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::ValueEnum;
use hindsight_proto::{FILE_DESCRIPTOR_SET, Message, metadata::WARNING, v1alpha2 as pb};
use hindsight_run::json;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr as _;

use super::{
    failure::Failure,
    pager::Paging,
    terminal::{ColorWhen, Screen},
};

/// Fewest cells to which the text of a fact is wrapped.
const MIN_TEXT: usize = 20;

/// In which form to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Aligned columns for people
    Table,
    /// The same with more columns, such as UIDs and etags
    Wide,
    /// The full name alone
    Name,
    /// JSON, payloads byte for byte
    Json,
    /// The same document as JSON, written in YAML
    Yaml,
}

/// A record as JSON and YAML show it: the payload is part of the document when it is JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordView {
    name: String,
    uid: String,
    etag: String,
    create_time: Option<String>,
    update_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataView>,
}

#[derive(Debug, Serialize)]
struct DataView {
    r#type: String,
    #[serde(flatten)]
    value: ValueView,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum ValueView {
    Value(Box<RawValue>),
    /// Bytes that are no JSON.
    ValueBase64(String),
}

/// A result as JSON and YAML show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultView {
    name: String,
    uid: String,
    etag: String,
    create_time: Option<String>,
    update_time: Option<String>,
    annotations: std::collections::BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryView {
    record: String,
    r#type: String,
    status: String,
    start_time: Option<String>,
    end_time: Option<String>,
    annotations: std::collections::BTreeMap<String, String>,
}

/// A list as JSON and YAML show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListView<T> {
    pub(super) items: Vec<T>,
    /// There are more; ask for them with --page-token.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) next_page_token: String,
}

impl From<pb::Record> for RecordView {
    fn from(record: pb::Record) -> Self {
        Self {
            create_time: record.create_time.and_then(time).map(|t| t.to_string()),
            update_time: record.update_time.and_then(time).map(|t| t.to_string()),
            name: record.name,
            uid: record.uid,
            etag: record.etag,
            data: record.data.map(|data| DataView {
                r#type: data.r#type,
                value: raw(&data.value).map_or_else(
                    || ValueView::ValueBase64(STANDARD.encode(&data.value)),
                    ValueView::Value,
                ),
            }),
        }
    }
}

impl From<pb::Result> for ResultView {
    fn from(result: pb::Result) -> Self {
        Self {
            create_time: result.create_time.and_then(time).map(|t| t.to_string()),
            update_time: result.update_time.and_then(time).map(|t| t.to_string()),
            name: result.name,
            uid: result.uid,
            etag: result.etag,
            annotations: result.annotations,
            summary: result.summary.map(|summary| SummaryView {
                status: status_name(&summary),
                start_time: summary.start_time.and_then(time).map(|t| t.to_string()),
                end_time: summary.end_time.and_then(time).map(|t| t.to_string()),
                record: summary.record,
                r#type: summary.r#type,
                annotations: summary.annotations,
            }),
        }
    }
}

fn raw(bytes: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice(bytes).ok()
}

/// The name of a summary's status, or its number if it has none.
pub(super) fn status_name(summary: &pb::RecordSummary) -> String {
    pb::record_summary::Status::try_from(summary.status).map_or_else(
        |_| summary.status.to_string(),
        |status| status.as_str_name().to_owned(),
    )
}

/// A time of the wire.
pub(super) fn time(time: prost_types::Timestamp) -> Option<Timestamp> {
    hindsight_proto::time::at(time.seconds, time.nanos)
}

/// How long ago, as kubectl says it: the largest unit that fits.
pub(super) fn ago(then: Option<Timestamp>, now: Timestamp) -> String {
    then.map_or_else(
        || "-".to_owned(),
        |then| format!("{} ago", short(now.duration_since(then))),
    )
}

/// How long from one to the other, if both are known.
pub(super) fn took(start: Option<Timestamp>, end: Option<Timestamp>) -> String {
    match (start, end) {
        (Some(start), Some(end)) => span(end.duration_since(start)),
        _ => "-".to_owned(),
    }
}

/// A length of time in seconds.
pub(super) fn seconds(seconds: f64) -> String {
    let took = SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::MAX);
    match took.as_millis() {
        -9_999..=9_999 => format!("{seconds:.1}s"),
        _ => span(took),
    }
}

fn short(age: SignedDuration) -> String {
    let seconds = age.as_secs().max(0);
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        172_800..=63_071_999 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

fn span(took: SignedDuration) -> String {
    let seconds = took.as_secs();
    match seconds {
        ..0 => format!("{seconds}s"),
        0..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// Writes a document as YAML if `is_yaml` says so, else as one line of JSON.
pub(super) fn document<T: Serialize>(
    mut out: impl Write,
    is_yaml: bool,
    document: &T,
) -> Result<(), Failure> {
    if is_yaml {
        write!(out, "{}", yaml(document)?)?;
    } else {
        serde_json::to_writer(&mut out, document).map_err(std::io::Error::from)?;
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}

/// A document as YAML.
pub(super) fn yaml<T: Serialize>(document: &T) -> Result<String, Failure> {
    // Through the text of JSON, because raw payloads know only that form.
    let text = serde_json::to_vec(document).map_err(|e| Failure::other(e.to_string()))?;
    let value = json::parse(&text).map_err(|e| Failure::other(e.to_string()))?;
    serde_saphyr::to_string(&value).map_err(|e| Failure::other(e.to_string()))
}

/// In which form to print what has one form for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Text for people
    Text,
    /// The JSON that the REST API answers
    Json,
    /// The same document as JSON, written in YAML
    Yaml,
}

/// Writes a message of this full name as the REST API answers it.
pub(super) fn message(
    mut out: impl Write,
    is_yaml: bool,
    name: &str,
    message: &impl Message,
) -> Result<(), Failure> {
    let text = hindsight_transcode::document(FILE_DESCRIPTOR_SET, name, &message.encode_to_vec());
    let text = text.ok_or_else(|| Failure::other(format!("{name} has no JSON")))?;
    if is_yaml {
        let value = json::parse(&text).map_err(|e| Failure::other(e.to_string()))?;
        return document(out, true, &value);
    }
    bytes(&mut out, &text)
}

/// Prints what a server tells beside its reply.
pub(super) fn warnings(metadata: &tonic::metadata::MetadataMap) {
    for warning in metadata.get_all(WARNING) {
        if let Ok(text) = warning.to_str() {
            note(&format!("warning: {text}"));
        }
    }
}

/// Writes bytes as they are, and a line end.
pub(super) fn bytes(out: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    out.write_all(bytes)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Prints facts, each under its name; on terminals their texts are wrapped between words.
pub(super) fn facts(rows: &[Vec<String>], paging: &Paging) -> Result<(), Failure> {
    facts_and_lines(rows, &[], paging)
}

/// Prints facts, and below them lines as they are.
pub(super) fn facts_and_lines(
    rows: &[Vec<String>],
    lines: &[String],
    paging: &Paging,
) -> Result<(), Failure> {
    let screen = Screen::of_stdout(ColorWhen::Never);
    let mut out = paging.out();
    for line in fact_lines(rows, screen.width).iter().chain(lines) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// The lines of facts, the first cells of which are names.
fn fact_lines(rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
    let names = rows.iter().filter_map(|row| row.first());
    let indent = names.map(|name| name.width()).max().unwrap_or(0) + 3;
    // A column that is too narrow for words is left to the terminal.
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent));
    let room = if room < MIN_TEXT { usize::MAX } else { room };
    let mut lines = Vec::new();
    for row in rows {
        let [name, texts @ ..] = row.as_slice() else {
            continue;
        };
        let text = plain(&texts.join("   "), true).into_owned();
        let wrapped = text.lines().flat_map(|line| wrapped(line, room));
        let mut wrapped: Vec<_> = wrapped.collect();
        if wrapped.is_empty() {
            wrapped.push(String::new());
        }
        for (number, text) in wrapped.iter().enumerate() {
            let name = if number == 0 { name.as_str() } else { "" };
            let blanks = " ".repeat(indent.saturating_sub(name.width()));
            lines.push(format!("{name}{blanks}{text}").trim_end().to_owned());
        }
    }
    lines
}

/// A line as lines of at most so many cells, unless a word is longer.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    if text.width() <= room {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > room {
            lines.push(std::mem::take(&mut line));
        } else if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines
}

/// Says something on standard output, for people and for programs that read lines.
pub(super) fn say(text: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout().lock(), "{}", plain(text, true))?;
    Ok(())
}

/// Says something to the person at the terminal, apart from the output.
pub(super) fn note(text: &str) {
    // A note that nobody can read is no failure.
    drop(writeln!(std::io::stderr().lock(), "{}", plain(text, true)));
}

/// Says why a command failed, unless nobody listens, and gives the exit code.
pub(super) fn tell(failure: &Failure) -> ExitCode {
    let text = failure.to_string();
    if !text.is_empty() {
        note(&format!("hindsight: {text}"));
    }
    ExitCode::from(failure.code())
}

/// Whether a character steers a terminal: control characters, and those that turn the direction
/// of what follows or end a line.
pub(super) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
}

/// `text` without characters that steer a terminal: anybody who may create a run could put them
/// into its name. Line ends stay where there is room for `lines`.
pub(super) fn plain(text: &str, lines: bool) -> Cow<'_, str> {
    let steers = |c: char| steers(c) && !(lines && matches!(c, '\n' | '\t'));
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_wrapped_between_words() {
        let rows = [
            ["What:", "step run of task test failed"],
            ["Since when:", ""],
            [
                "Plan:",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b\nc\u{1b}",
            ],
        ];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            fact_lines(&rows, Some(38)),
            [
                "What:         step run of task test",
                "              failed",
                "Since when:",
                "Plan:         aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "              b",
                "              c\\u{1b}",
            ]
        );
        let whole = fact_lines(&rows, None);
        assert_eq!(whole[0], "What:         step run of task test failed");
        assert_eq!(fact_lines(&rows, Some(30)), whole);
    }

    #[test]
    fn ages_are_told_in_the_largest_unit() {
        let now: Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
        for (then, said) in [
            ("2026-03-02T11:58:01Z", "119s ago"),
            ("2026-03-02T10:00:01Z", "119m ago"),
            ("2026-02-28T12:00:01Z", "47h ago"),
            ("2024-03-02T12:00:01Z", "729d ago"),
            ("2024-03-02T12:00:00Z", "2y ago"),
            ("2026-03-02T12:00:05Z", "0s ago"),
        ] {
            assert_eq!(ago(Some(then.parse().unwrap()), now), said);
        }
    }
}
