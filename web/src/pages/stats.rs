//! Runs in groups: how many, how they ended and how long they took, as `hindsight stats` says it.

mod days;
mod narrow;

use askama::Template;
use axum::http::StatusCode;
use hindsight_filter::run_filter;
use hindsight_filter::words;
use hindsight_proto::v1::{
    AggregateGroup, AggregateRequest, AggregateResponse, SuggestRequest, suggest_request,
};
use prost_types::{Struct, value::Kind as Value};

use super::frame::{Frame, Place};
use super::shell::quoted;
use super::{Page, Shown};
use crate::api::{Kind, Refusal};
use crate::ask::{Ask, results_of};
use crate::html::{Name, end_cut};
use crate::query::{self, Wrong};
use crate::time::length;

use days::Days;
use narrow::{Test, narrowed};

/// Groups of one page, and labels that are offered.
const GROUPS: i32 = 200;
const LABELS: i32 = 8;
const MEASURES: &str = "count,success_rate,p50(duration),p95(duration)";
/// Groups that are often asked for.
const USUAL: [&str; 8] = [
    "pipeline",
    "outcome",
    "namespace",
    "kind",
    "task",
    "reason",
    "day(started)",
    "week(started)",
];

#[derive(Debug, Template)]
#[template(path = "stats.html")]
struct Stats {
    frame: Frame,
    query: String,
    scope: String,
    action: String,
    by: String,
    measure: String,
    choices: Vec<Choice>,
    wrong: Option<Wrong>,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    days: Option<Days>,
    records: i64,
    left_out: i64,
    /// How far what is approximate may be off, in percent.
    error: Option<String>,
    command: String,
    list: String,
}

#[derive(Debug)]
struct Choice {
    name: String,
    link: String,
    is_set: bool,
}

#[derive(Debug)]
struct Column {
    name: String,
    link: String,
    is_number: bool,
    /// The value of `aria-sort`, if rows are in its order.
    order: &'static str,
}

#[derive(Debug)]
struct Cell {
    text: Name,
    link: String,
    is_number: bool,
    is_about: bool,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    text: &'a str,
    scope: &'a str,
    by: &'a str,
    measure: &'a str,
    order: &'a str,
}

/// The filter of groups: where signatures make them, runs without one are in none.
fn grouped(by: &str, filter: String) -> String {
    match by.split(',').any(|by| by.trim() == "signature") {
        true => format!("({filter}) && has(run.signature)"),
        false => filter,
    }
}

pub(crate) async fn stats(ask: &Ask) -> Shown {
    let or = |name, default| match ask.query.get(name) {
        "" => default,
        given => given,
    };
    let asked = Asked {
        text: ask.query.get("q"),
        scope: ask.scope(),
        by: or("by", "pipeline"),
        measure: or("measure", MEASURES),
        order: ask.query.get("order"),
    };
    let read = match query::wrong_word(asked.text, &ask.present()) {
        Some(wrong) => Err(wrong),
        None => {
            Ok(words::read(asked.text, &ask.present()).map_or_else(|_| String::new(), |it| it.cel))
        }
    };
    let labels = labels(ask, asked.scope);
    let answer = async {
        let own = match read {
            Ok(own) => own,
            Err(wrong) => return Ok(Err(wrong)),
        };
        let filter = match own.as_str() {
            "" => run_filter(),
            own => format!("({own}) && {}", run_filter()),
        };
        let days = days::request(ask, asked.scope, filter.clone());
        let filter = grouped(asked.by, filter);
        let found = futures::try_join!(
            ask.api.aggregate(request(ask, asked, filter)),
            ask.api.aggregate(days)
        );
        match found {
            Ok(found) => Ok(Ok(found)),
            Err(Refusal {
                kind: Kind::Invalid,
                message,
            }) => Ok(Err(Wrong::saying(message))),
            Err(refusal) => Err(refusal),
        }
    };
    let (labels, answer) = futures::join!(labels, answer);
    let answer = answer?;
    let status = match answer {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::BAD_REQUEST,
    };
    let (found, days, wrong) = match answer {
        Ok((found, days)) => (found, days, None),
        Err(wrong) => (
            AggregateResponse::default(),
            AggregateResponse::default(),
            Some(wrong),
        ),
    };
    let sketched = found.groups.iter().any(|it| !it.approximate.is_empty());
    let view = Stats {
        frame: Frame::new(ask, "Stats", Place::Stats),
        query: asked.text.to_owned(),
        scope: asked.scope.to_owned(),
        action: ask.links.stats("", "", "", ""),
        by: asked.by.to_owned(),
        measure: asked.measure.to_owned(),
        choices: choices(ask, asked, labels),
        columns: columns(ask, asked),
        rows: rows(ask, asked, &found.groups),
        days: days::drawn(ask, asked.text, asked.scope, &days.groups),
        records: found.records,
        left_out: found.groups_left_out,
        error: sketched.then(|| format!("{:.1}", found.relative_error * 100.0)),
        command: command(ask, asked),
        list: ask.links.runs(asked.text, asked.scope),
        wrong,
    };
    Ok(Page::with(status, &view))
}

fn request(ask: &Ask, asked: Asked<'_>, filter: String) -> AggregateRequest {
    let is_calendar = asked.by.contains("(started)") && !asked.by.contains(',');
    AggregateRequest {
        parent: results_of(asked.scope),
        filter,
        group_by: vec![asked.by.to_owned()],
        measures: vec![asked.measure.to_owned()],
        time_zone: ask.look.zone.clone(),
        order_by: match asked.order {
            "" if is_calendar => format!("{} desc", asked.by),
            "" => match parts(asked.measure).first() {
                Some(first) => format!("{first} desc"),
                None => String::new(),
            },
            order => order.to_owned(),
        },
        limit: GROUPS,
        ..AggregateRequest::default()
    }
}

/// Keys of labels of the newest runs; none if that takes a permission the caller lacks.
async fn labels(ask: &Ask, scope: &str) -> Vec<String> {
    let request = SuggestRequest {
        parent: results_of(scope),
        kind: suggest_request::Kind::LabelKey.into(),
        limit: LABELS,
        ..SuggestRequest::default()
    };
    let found = ask.api.suggest(request).await;
    found.map(|found| found.values).unwrap_or_default()
}

/// The parts of a list, divided at commas outside of parentheses and quotes.
fn parts(list: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (at, c) in list.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(list[begin..at].trim());
                begin = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(list[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Groups to choose from: the usual ones, labels that the filter names, and other labels.
fn choices(ask: &Ask, asked: Asked<'_>, labels: Vec<String>) -> Vec<Choice> {
    let named = query::split(asked.text).into_iter().filter_map(|word| {
        let label = word.strip_prefix("label:")?;
        Some(label.split('=').next().unwrap_or(label).to_owned())
    });
    let is_key = |key: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        !key.is_empty() && key.chars().all(is_plain)
    };
    let mut names: Vec<String> = USUAL.map(str::to_owned).to_vec();
    for label in named.chain(labels).filter(is_key) {
        let name = format!("label({label})");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let choices = names.into_iter().map(|name| Choice {
        link: ask
            .links
            .stats(asked.text, asked.scope, &name, ask.query.get("measure")),
        is_set: name == asked.by,
        name,
    });
    choices.collect()
}

fn columns(ask: &Ask, asked: Asked<'_>) -> Vec<Column> {
    let page = ask
        .links
        .stats(asked.text, asked.scope, asked.by, ask.query.get("measure"));
    let column = |name: &str, is_number: bool| {
        let order = match asked.order.strip_prefix(name) {
            Some(" asc") => "ascending",
            Some(" desc") => "descending",
            _ => "",
        };
        let next = match (order, is_number) {
            ("descending", _) | ("", false) => "asc",
            _ => "desc",
        };
        let order_by = crate::route::encoded(&format!("{name} {next}"));
        Column {
            name: name.to_owned(),
            link: format!("{page}&order={order_by}"),
            is_number,
            order,
        }
    };
    let keys = parts(asked.by).into_iter().map(|name| column(name, false));
    let measures = parts(asked.measure)
        .into_iter()
        .map(|name| column(name, true));
    keys.chain(measures).collect()
}

fn rows(ask: &Ask, asked: Asked<'_>, groups: &[AggregateGroup]) -> Vec<Vec<Cell>> {
    let (keys, measures) = (parts(asked.by), parts(asked.measure));
    let list = |tests: &[Test]| {
        let query = narrowed(asked.text, tests, &ask.present());
        ask.links.runs(&query, asked.scope)
    };
    let row = |group: &AggregateGroup| {
        let tests = keys
            .iter()
            .map(|by| Test::of(by, text_of(group.keys.as_ref(), by)));
        let tests: Option<Vec<Test>> = tests.collect();
        let link = |more: Option<Test>| {
            let mut tests = tests.clone()?;
            tests.extend(more);
            Some(list(&tests))
        };
        let own = keys.iter().map(|name| Cell {
            text: Name::new(&cell(name, value_of(group.keys.as_ref(), name)), 60),
            link: link(None).unwrap_or_default(),
            is_number: false,
            is_about: false,
        });
        let measured = measures.iter().map(|name| Cell {
            text: Name::new(&cell(name, value_of(group.measures.as_ref(), name)), 40),
            link: match state(name) {
                Some(word) => link(Some(Test::word(word))).unwrap_or_default(),
                None => String::new(),
            },
            is_number: true,
            is_about: group.approximate.iter().any(|about| about == name),
        });
        own.chain(measured).collect()
    };
    groups.iter().map(row).collect()
}

/// The word that selects the runs that a measure counts.
fn state(measure: &str) -> Option<&'static str> {
    Some(match measure {
        "succeeded" => "succeeded",
        "failed" => "status:failed",
        "timed_out" => "timeout",
        "cancelled" => "cancelled",
        _ => return None,
    })
}

fn value_of<'a>(fields: Option<&'a Struct>, name: &str) -> Option<&'a Value> {
    fields?.fields.get(name)?.kind.as_ref()
}

fn text_of<'a>(fields: Option<&'a Struct>, name: &str) -> Option<&'a str> {
    match value_of(fields, name)? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn number_of(fields: Option<&Struct>, name: &str) -> Option<f64> {
    match value_of(fields, name)? {
        Value::NumberValue(number) => Some(*number),
        _ => None,
    }
}

/// A key or a measure as text.
fn cell(name: &str, value: Option<&Value>) -> String {
    match value {
        Some(Value::StringValue(text)) if text.is_empty() => "(empty)".to_owned(),
        Some(Value::StringValue(text)) => {
            let is_day = ["day", "week", "month", "year"]
                .iter()
                .any(|unit| name.starts_with(unit));
            match text.split_once('T') {
                Some((date, _)) if is_day => date.to_owned(),
                _ => end_cut(text, 200),
            }
        }
        Some(Value::NumberValue(number)) if name == "success_rate" => {
            format!("{:.1} %", number * 100.0)
        }
        Some(Value::NumberValue(number)) if name.ends_with("(duration)") => length(*number),
        Some(Value::NumberValue(number)) if name.ends_with("(queue)") => length(*number),
        Some(Value::NumberValue(number)) => number.to_string(),
        Some(Value::BoolValue(truth)) => truth.to_string(),
        _ => "–".to_owned(),
    }
}

/// The same on the command line.
fn command(ask: &Ask, asked: Asked<'_>) -> String {
    let mut command = match asked.scope {
        "" => "hindsight stats -A".to_owned(),
        scope => format!("hindsight stats -n {}", quoted(scope)),
    };
    let filter =
        words::read(asked.text, &ask.present()).map_or_else(|_| String::new(), |it| it.cel);
    for (flag, value) in [
        ("--by", asked.by),
        ("--measure", asked.measure),
        ("--filter", &filter),
        ("--order-by", asked.order),
    ] {
        if !value.is_empty() {
            command.push_str(&format!(" {flag} {}", quoted(value)));
        }
    }
    if ask.look.zone != "UTC" {
        command.push_str(&format!(" --time-zone {}", quoted(&ask.look.zone)));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_divided_outside_of_parentheses_and_quotes() {
        assert_eq!(
            parts("label(a,b), day(started) ,'x,y',"),
            ["label(a,b)", "day(started)", "'x,y'"]
        );
        assert!(parts(" ").is_empty());
    }

    #[test]
    fn values_are_shown_in_the_unit_of_their_measure() {
        let number = |number| Some(Value::NumberValue(number));
        for (name, value, text) in [
            ("success_rate", number(0.5), "50.0 %"),
            ("p95(duration)", number(421.0), "7 m 01 s"),
            ("count", number(3.0), "3"),
            (
                "day(started)",
                Some(Value::StringValue("2026-03-02T00:00:00Z".to_owned())),
                "2026-03-02",
            ),
            (
                "label(x)",
                Some(Value::StringValue(String::new())),
                "(empty)",
            ),
            ("label(x)", None, "–"),
        ] {
            assert_eq!(cell(name, value.as_ref()), text);
        }
    }
}
