//! A search in the logs of a run, and the lines that it finds.

use hindsight_filter::words::quoted;
use hindsight_proto::v1::{LogMatch, SearchLogsRequest};

use super::sources::{Source, Sources};
use crate::ansi::plain;
use crate::api::{Answer, Kind};
use crate::ask::Ask;

/// Lines of a page.
const PAGE: i32 = 200;
/// Bytes that are shown before a match, and after it.
const BEFORE: usize = 120;
const AFTER: usize = 600;
/// Lines before a match on the page that it leads to.
const ABOVE: i64 = 300;

/// What is looked for.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) text: String,
    pub(super) is_regex: bool,
    pub(super) has_case: bool,
    /// The address that the form is sent to.
    pub(super) action: String,
    /// The log without a search.
    pub(super) back: String,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) matches: Vec<Match>,
    /// What is wrong with the pattern.
    pub(super) wrong: String,
    pub(super) looked: String,
    pub(super) next: Option<String>,
}

/// A line that matches, around its first match.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) task: String,
    pub(super) step: String,
    /// The number that the page shows, from 1.
    pub(super) number: i64,
    pub(super) link: String,
    pub(super) before: String,
    pub(super) found: String,
    pub(super) after: String,
}

impl Search {
    pub(super) fn of(ask: &Ask, record: &str) -> Self {
        Self {
            text: ask.query.get("q").to_owned(),
            is_regex: ask.query.get("regex") == "on",
            has_case: ask.query.get("case") == "on",
            action: ask.links.logs(record, &[]),
            back: super::asked(ask, record, &[]),
        }
    }

    pub(super) fn is_asked(&self) -> bool {
        !self.text.is_empty()
    }

    /// The regular expression that the command line takes for it.
    pub(super) fn grep(&self) -> String {
        let is_plain = |c: char| c.is_alphanumeric() || " _-/:=,<>@%&\"'".contains(c);
        let escaped = |c: char| match is_plain(c) {
            true => c.to_string(),
            false => format!("\\{c}"),
        };
        let text = match self.is_regex {
            true => self.text.clone(),
            false => self.text.chars().map(escaped).collect(),
        };
        if self.has_case {
            text
        } else {
            format!("(?i){text}")
        }
    }

    /// Looks into the logs of the runs that were asked for containers.
    pub(super) async fn find(&self, ask: &Ask, record: &str, sources: &Sources) -> Answer<Found> {
        let result = record
            .rsplit_once("/records/")
            .map_or(record, |(result, _)| result);
        let names: Vec<_> = sources.runs.iter().map(|run| quoted(run)).collect();
        let asked = SearchLogsRequest {
            parent: result.to_owned(),
            filter: format!("name in [{}]", names.join(", ")),
            pattern: self.text.clone(),
            regex: self.is_regex,
            ignore_case: !self.has_case,
            page_size: PAGE,
            page_token: ask.query.get("page").to_owned(),
        };
        let answer = match ask.api.search(asked).await {
            Ok(answer) => answer,
            Err(refusal) if refusal.kind == Kind::Invalid => {
                return Ok(Found {
                    matches: Vec::new(),
                    wrong: refusal.message,
                    looked: String::new(),
                    next: None,
                });
            }
            Err(refusal) => return Err(refusal),
        };
        let matches = answer.matches.iter().map(|found| {
            let is_it = |it: &&Source| it.log.name == found.name && it.log.source == found.source;
            match sources.all.iter().find(is_it) {
                Some(source) => self.shown(ask, record, sources, source, found),
                // Not all containers are listed.
                None => self.shown(ask, record, sources, &Source::of_match(found), found),
            }
        });
        let flag = |is_set: bool| if is_set { "on" } else { "" };
        let next = answer.next_page_token;
        Ok(Found {
            matches: matches.collect(),
            wrong: String::new(),
            looked: super::size(answer.scanned_bytes),
            next: (!next.is_empty()).then(|| {
                let asked = [
                    ("q", self.text.as_str()),
                    ("regex", flag(self.is_regex)),
                    ("case", flag(self.has_case)),
                    ("page", &next),
                ];
                super::asked(ask, record, &asked)
            }),
        })
    }

    fn shown(
        &self,
        ask: &Ask,
        record: &str,
        sources: &Sources,
        source: &Source,
        found: &LogMatch,
    ) -> Match {
        let [before, hit, after] = parts(found);
        let from = (found.line + 1 - ABOVE).max(1).to_string();
        let link = super::link(ask, record, sources, source, &[("from", &from)]);
        Match {
            task: source.task.clone(),
            step: source.name(),
            number: found.line + 1,
            link: format!("{link}#L{}", found.line + 1),
            before,
            found: hit,
            after,
        }
    }
}

/// The text before a match, the match, and the text after it, without what steers a terminal.
fn parts(found: &LogMatch) -> [String; 3] {
    let text = found.text.as_slice();
    let place = |at: i32| usize::try_from(at).unwrap_or_default().min(text.len());
    let start = place(found.match_start);
    let end = place(found.match_end).max(start);
    let cut = |from: usize, to: usize| plain(&text[from..to]);
    let left = start.saturating_sub(BEFORE);
    let right = text.len().min(end + AFTER);
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    [
        format!("{}{}", dots(left > 0), cut(left, start)),
        cut(start, end),
        format!("{}{}", cut(end, right), dots(right < text.len())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_is_shown_with_what_is_around_it() {
        let found = |text: &[u8], start, end| LogMatch {
            text: text.to_vec(),
            match_start: start,
            match_end: end,
            ..LogMatch::default()
        };
        let shown = parts(&found(b"a \x1b[31mfatal\x1b[0m b", 7, 12));
        assert_eq!(shown, ["a ", "fatal", " b"]);
        let long = format!("{}x{}", "a".repeat(500), "b".repeat(1_000));
        let [before, hit, after] = parts(&found(long.as_bytes(), 500, 501));
        assert_eq!((before.chars().count(), hit.as_str()), (BEFORE + 1, "x"));
        assert_eq!(after.chars().count(), AFTER + 1);
        // Places outside of the text are none.
        assert_eq!(parts(&found(b"ab", -1, 9)), ["", "ab", ""]);
        assert_eq!(parts(&found(b"ab", 2, 1)), ["ab", "", ""]);
    }
}
