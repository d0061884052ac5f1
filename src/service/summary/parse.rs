//! The texts of a summary request.

use super::{Measure, SummaryQuery};
use crate::service::{Error, limits};
use hindsight_filter::measure::Unit;

/// Which time of a record is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Creation,
    Start,
    Completion,
}

/// What makes a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupBy {
    Time(Unit, Moment),
    Pipeline,
    Namespace,
    Repository,
}

/// A summary request, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) measures: Vec<Measure>,
    pub(super) group_by: Option<GroupBy>,
    /// Which measure, and whether the largest comes first.
    pub(super) order: Option<(Measure, bool)>,
}

impl Measure {
    /// Every measure that a request may name, as error messages list them.
    pub const ALL: [Self; 11] = [
        Self::Total,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Running,
        Self::Others,
        Self::AvgDuration,
        Self::MaxDuration,
        Self::MinDuration,
        Self::TotalDuration,
        Self::LastRuntime,
    ];

    /// Its name in requests and replies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Running => "running",
            Self::Others => "others",
            Self::AvgDuration => "avg_duration",
            Self::MaxDuration => "max_duration",
            Self::MinDuration => "min_duration",
            Self::TotalDuration => "total_duration",
            Self::LastRuntime => "last_runtime",
        }
    }

    fn parse(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|measure| measure.name() == text)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::name).join(", ");
                Error::Invalid(format!(
                    "summary `{text}` is not known: want some of {names}"
                ))
            })
    }
}

/// Parses the texts of a request; unknown words and long texts are errors.
pub(super) fn plan(query: &SummaryQuery) -> Result<Plan, Error> {
    limits::text("summary", &query.summary)?;
    limits::text("group_by", &query.group_by)?;
    limits::text("order_by", &query.order_by)?;
    let mut measures = Vec::new();
    for text in query.summary.split(',').map(str::trim) {
        if text.is_empty() && query.summary.trim().is_empty() {
            break;
        }
        let measure = Measure::parse(text)?;
        if !measures.contains(&measure) {
            measures.push(measure);
        }
    }
    if measures.is_empty() {
        measures.push(Measure::Total);
    }
    let group_by = match query.group_by.trim() {
        "" => None,
        text => Some(group_by(text)?),
    };
    let order = match query.order_by.trim() {
        "" => None,
        text => Some(order(text, &measures, group_by.is_some())?),
    };
    Ok(Plan {
        measures,
        group_by,
        order,
    })
}

fn group_by(text: &str) -> Result<GroupBy, Error> {
    let refuse = || {
        Error::Invalid(format!(
            "group_by `{text}` is not known: want pipeline, namespace, repository, or one of year \
             month week day hour minute, alone or followed by startTime or completionTime"
        ))
    };
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let second = words.next();
    if words.next().is_some() {
        return Err(refuse());
    }
    let unit = match (first, second) {
        ("pipeline", None) => return Ok(GroupBy::Pipeline),
        ("namespace", None) => return Ok(GroupBy::Namespace),
        ("repository", None) => return Ok(GroupBy::Repository),
        ("year", _) => Unit::Year,
        ("month", _) => Unit::Month,
        ("week", _) => Unit::Week,
        ("day", _) => Unit::Day,
        ("hour", _) => Unit::Hour,
        ("minute", _) => Unit::Minute,
        _ => return Err(refuse()),
    };
    let moment = match second {
        None => Moment::Creation,
        Some("startTime") => Moment::Start,
        Some("completionTime") => Moment::Completion,
        Some(_) => return Err(refuse()),
    };
    Ok(GroupBy::Time(unit, moment))
}

fn order(text: &str, measures: &[Measure], grouped: bool) -> Result<(Measure, bool), Error> {
    let refuse = |why: &str| Error::Invalid(format!("order_by `{text}`: {why}"));
    let words: Vec<_> = text.split_whitespace().collect();
    let [name, direction] = words[..] else {
        return Err(refuse("want `<summary> asc` or `<summary> desc`"));
    };
    if !grouped {
        return Err(refuse("there is one group only; ask for group_by too"));
    }
    let measure = Measure::parse(name).map_err(|_e| {
        refuse(&format!(
            "`{name}` is no summary; order by one that is asked for"
        ))
    })?;
    if !measures.contains(&measure) {
        return Err(refuse(&format!(
            "`{name}` is not among the summaries asked for"
        )));
    }
    match direction {
        "asc" | "ASC" => Ok((measure, false)),
        "desc" | "DESC" => Ok((measure, true)),
        _ => Err(refuse(&format!(
            "`{direction}` is no direction; want asc or desc"
        ))),
    }
}
