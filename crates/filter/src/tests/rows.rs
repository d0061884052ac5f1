//! Small rows to ask about, and how to ask.

pub(super) use crate::samples::known::{record, result, task_record};
use crate::{
    Body, EvalError, Filter, Row,
    model::{Record, Resource, Tier},
};

pub(super) fn judge(filter: &str, row: &Record) -> Result<bool, EvalError> {
    let filter = Filter::compile(filter, Resource::Records).unwrap_or_else(|e| panic!("{e}"));
    let on = |body: &Body| {
        filter.matches(&Row::Record {
            record: row,
            tier: Tier::Hot,
            body,
        })
    };
    let whole = on(&Body::of(row));
    let cut = on(&filter.body(row));
    assert_eq!(cut, whole, "{} on what it reads", filter.text());
    whole
}

/// What a test of the TaskRun above is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    Yes,
    No,
    Unknown,
}

/// A filter that matches is true; one whose negation matches is false; otherwise it is unknown.
pub(super) fn truth_on(filter: &str, row: &Record) -> Truth {
    let negation = format!("!({filter}\n)");
    match (judge(filter, row).unwrap(), judge(&negation, row).unwrap()) {
        (true, false) => Truth::Yes,
        (false, true) => Truth::No,
        (false, false) => Truth::Unknown,
        (true, true) => panic!("`{filter}` is both true and false"),
    }
}

#[track_caller]
pub(super) fn is(truth: Truth, filters: &[&str]) {
    let row = task_record();
    for filter in filters {
        assert_eq!(truth_on(filter, &row), truth, "{filter}");
    }
}

#[track_caller]
pub(super) fn result_is(matched: bool, filters: &[&str]) {
    let row = result();
    for text in filters {
        let filter = Filter::compile(text, Resource::Results).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(filter.matches(&Row::Result(&row)), Ok(matched), "{text}");
    }
}
