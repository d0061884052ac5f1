//! What makes a group.

use jiff::tz::TimeZone;

use super::{Error, invalid, split};
use crate::query::Grouping;
use hindsight_filter::measure::{Calendar, Unit};
use hindsight_filter::model::Resource;
use hindsight_filter::{
    CostBudget, FilterError, Term,
    condition::{Column, ObjectField},
    nearest,
};
use hindsight_storage::{GroupKey, MAX_KEYS};

/// Something that the records of a group share.
#[derive(Debug, Clone)]
pub(super) struct GroupBy {
    /// As it was asked for.
    pub(super) name: String,
    pub(super) by: Grouping,
    /// Whether integer keys are outcomes, which answers give by name.
    pub(super) is_outcome: bool,
}

/// Words that name a column to group by; times are in `TIMES`.
const WORDS: [(&str, Column); 14] = [
    ("pipeline", Column::Pipeline),
    ("outcome", Column::Outcome),
    ("namespace", Column::Object(ObjectField::Namespace)),
    ("kind", Column::Object(ObjectField::Kind)),
    ("name", Column::Object(ObjectField::Name)),
    ("reason", Column::Reason),
    ("phase", Column::Object(ObjectField::Phase)),
    ("task", Column::Object(ObjectField::TaskRef)),
    ("parent", Column::Parent),
    ("cluster", Column::Cluster),
    ("result", Column::ResultId),
    ("record", Column::RecordId),
    ("type", Column::DataType),
    ("signature", Column::Signature),
];

/// Words that name a time of a record, in groups and in measures.
pub(super) const TIMES: [(&str, Column); 5] = [
    ("created", Column::Object(ObjectField::CreationTime)),
    ("started", Column::Began),
    ("ended", Column::Ended),
    ("stored", Column::CreateTime),
    ("updated", Column::UpdateTime),
];

/// The column of times that is called so.
pub(super) fn time(word: &str) -> Option<Column> {
    let found = TIMES.iter().find(|(name, _)| *name == word);
    found.map(|(_, column)| column.clone())
}

/// The words for times, for people.
pub(super) fn times() -> String {
    TIMES.map(|(name, _)| name).join(", ")
}

/// Understands what makes a group.
pub(super) fn parse(
    texts: &[String],
    zone: &TimeZone,
    budget: &mut CostBudget,
) -> Result<Vec<GroupBy>, Error> {
    let mut keys: Vec<GroupBy> = Vec::new();
    for text in split::items(texts, "group_by")? {
        if keys.iter().any(|key| key.name == text) {
            continue;
        }
        if keys.len() == MAX_KEYS {
            return Err(invalid(format!(
                "group_by: more than {MAX_KEYS} are given, which is the most that goes together"
            )));
        }
        keys.push(one(text, zone, budget)?);
    }
    Ok(keys)
}

fn one(text: &str, zone: &TimeZone, budget: &mut CostBudget) -> Result<GroupBy, Error> {
    let group = |by: Grouping| {
        let is_outcome = matches!(&by, Grouping::Stored(GroupKey::Column(Column::Outcome)));
        let name = text.to_owned();
        GroupBy {
            name,
            by,
            is_outcome,
        }
    };
    let column = |column| group(Grouping::Stored(GroupKey::Column(column)));
    let (word, inside) = match text.split_once('(') {
        Some((word, rest)) => (word.trim(), rest.strip_suffix(')').map(str::trim)),
        None => (text, None),
    };
    if let Some(unit) = Unit::ALL.into_iter().find(|unit| unit.name() == word) {
        let time = match inside.unwrap_or("created") {
            known if time(known).is_some() => time(known),
            other => {
                let times = times();
                return Err(invalid(format!(
                    "group_by `{text}`: `{other}` is no time of a record; want one of {times}"
                )));
            }
        };
        let calendar = Calendar {
            unit,
            zone: zone.clone(),
        };
        let time = time.unwrap_or(Column::CreateTime);
        return Ok(group(Grouping::Stored(GroupKey::Bucket(time, calendar))));
    }
    if let Some((_, found)) = WORDS.iter().find(|(name, _)| *name == text) {
        return Ok(column(found.clone()));
    }
    match (word, inside) {
        ("label", Some(key)) => Ok(column(Column::Label(unquoted(key)))),
        ("annotation", Some(key)) => {
            let key = serde_json::Value::from(unquoted(key));
            Ok(group(term(
                text,
                &format!("data.metadata.annotations[{key}]"),
                budget,
            )?))
        }
        ("param", Some(name)) => {
            let name = serde_json::Value::from(unquoted(name));
            let value = format!("data.spec.params.filter(p, p.name == {name})[0].value");
            Ok(group(term(text, &value, budget)?))
        }
        _ => Ok(group(term(text, text, budget)?)),
    }
}

/// What was probably meant by a word, alone or before what is in brackets.
fn meant(text: &str) -> Option<String> {
    let (word, rest) = text.split_at(text.find('(').unwrap_or(text.len()));
    let units = Unit::ALL.map(Unit::name).into_iter();
    let near = match rest {
        "" => nearest(word, units.chain(WORDS.map(|(name, _)| name))),
        _ => nearest(word, units.chain(["label", "annotation", "param"])),
    };
    near.filter(|near| *near != word)
        .map(|near| format!("{near}{rest}"))
}

fn unquoted(text: &str) -> String {
    for quote in ['"', '\''] {
        let inner = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

fn term(text: &str, cel: &str, budget: &mut CostBudget) -> Result<Grouping, Error> {
    match Term::compile(cel, Resource::Records, budget) {
        Ok(term) => Ok(Grouping::by(term)),
        Err(error @ FilterError::TooCostly { .. }) => Err(error.into()),
        Err(error) => {
            if let Some(near) = meant(text) {
                return Err(invalid(format!(
                    "group_by `{text}` is not known; did you mean `{near}`?"
                )));
            }
            let units = Unit::ALL.map(Unit::name).join(", ");
            let words = WORDS.map(|(name, _)| name).join(", ");
            Err(invalid(format!(
                "group_by `{text}`: {error}; want one of {units} (also of {}, as in \
                 `day(started)`), {words}, label(KEY), annotation(KEY), param(NAME), or an \
                 expression of the filter language",
                times()
            )))
        }
    }
}
