//! Groups of records and what is measured of them: `hindsight.v1.Queries/Aggregate`.
//!
//! Every matching record counts, whatever its type; filter by `data_type` to count runs of one
//! kind. Measures of outcomes and times are of the records that are runs.

mod answer;
mod groups;
mod having;
mod measures;
mod split;

use std::num::NonZeroU32;

pub use answer::{Answered, AnsweredGroup, Value};
use jiff::tz::TimeZone;

use self::{groups::GroupBy, having::Having, measures::Measure};
use super::{Error, Selector, Service, limits, selection::understood};
use crate::query::Aggregate;
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::CostBudget;
use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_runtime::low_priority;
use hindsight_storage as storage;

/// Most groups that are given out.
const MOST: u32 = 10_000;
/// Default of the most groups in an answer.
const USUAL: u32 = 1_000;
/// Most measures that one question may have.
const MOST_MEASURES: usize = 50;

/// What is asked, as it comes from outside.
#[derive(Debug, Clone, Default)]
pub struct AggregateAsk {
    /// What makes a group; several in one text are separated by commas.
    pub group_by: Vec<String>,
    /// What is measured, likewise; nothing means `count`.
    pub measures: Vec<String>,
    /// A name of the IANA database; empty means UTC.
    pub time_zone: String,
    /// Which groups, by their measures: comparisons joined by `&&`.
    pub having: String,
    /// `<measure or group> [asc|desc]`, several separated by commas; empty means the order of
    /// the groups.
    pub order_by: String,
    /// Most groups to give out; 0 means 1,000.
    pub limit: i32,
}

/// An `AggregateAsk` whose texts are parsed and whose limits are checked.
#[derive(Debug)]
struct Plan {
    keys: Vec<GroupBy>,
    measures: Vec<Measure>,
    zone: TimeZone,
    having: Having,
    order: Vec<Order>,
    limit: NonZeroU32,
}

/// By what groups are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Order {
    by: By,
    descending: bool,
}

/// A place among the keys or the measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Key(usize),
    Measure(usize),
}

impl Service {
    /// Measures those of the selected records that belong to the results called `result` (`None`:
    /// to any result) under the parent that `grant` is for.
    ///
    /// # Errors
    /// If a part of the question is wrong, if there are too many groups, or if too many payloads
    /// would be read.
    pub async fn aggregate_records(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        selector: Selector,
        ask: AggregateAsk,
    ) -> Result<Answered, Error> {
        let parent = grant.scope(Verb::List, Resource::Records)?.clone();
        let reading = self.reading(&selector)?;
        let bytes = selector.len() + split::bytes(&ask.group_by);
        let read = move |budget: &mut CostBudget| {
            let filter = selector.parse(&reading, Resource::Records, budget)?;
            Ok((filter, plan(&ask, budget)?))
        };
        let (filter, plan) = understood(&by.quota, read, bytes).await?;
        let tally = measures::tally(plan.measures.iter().chain(plan.having.measures()));
        let groups = self
            .engine
            .with_quota(&by.quota)
            .aggregate(Aggregate {
                scope: ResultPattern { parent, id: result },
                filter,
                keys: plan.keys.iter().map(|key| key.by.clone()).collect(),
                counts: tally.counts.clone(),
                amounts: tally.amounts.clone(),
            })
            .await?;
        let answering = low_priority::block(move |_| answer::answer(&plan, &tally, groups));
        let answered = answering.await.map_err(|broken| {
            let source = broken.into();
            storage::Error::Unavailable {
                what: "answering",
                source,
            }
        });
        Ok(answered?)
    }
}

fn invalid(text: impl Into<String>) -> Error {
    Error::Invalid(text.into())
}

fn plan(ask: &AggregateAsk, budget: &mut CostBudget) -> Result<Plan, Error> {
    limits::text("having", &ask.having)?;
    limits::text("order_by", &ask.order_by)?;
    let zone = limits::zone(&ask.time_zone)?;
    let keys = groups::parse(&ask.group_by, &zone, budget)?;
    let mut measures = Vec::new();
    for text in split::items(&ask.measures, "measures")? {
        let measure = Measure::parse(text)?;
        if !measures.contains(&measure) {
            measures.push(measure);
        }
        if measures.len() > MOST_MEASURES {
            return Err(invalid(format!(
                "measures: more than {MOST_MEASURES} are asked for, which is the most that is \
                 answered at once"
            )));
        }
    }
    if measures.is_empty() {
        measures.push(Measure::COUNT);
    }
    let limit = match u32::try_from(ask.limit) {
        Ok(0) => USUAL,
        Ok(limit) if limit <= MOST => limit,
        _ => {
            let limit = ask.limit;
            return Err(invalid(format!(
                "limit {limit}: want 1 to {MOST}, or 0 for {USUAL}"
            )));
        }
    };
    let order = order(&ask.order_by, &keys, &measures)?;
    Ok(Plan {
        having: Having::parse(&ask.having)?,
        keys,
        measures,
        zone,
        order,
        limit: NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN),
    })
}

fn order(text: &str, keys: &[GroupBy], measures: &[Measure]) -> Result<Vec<Order>, Error> {
    let mut order = Vec::new();
    for item in split::items(&[text.to_owned()], "order_by")? {
        let (name, descending) = match item.rsplit_once(char::is_whitespace) {
            Some((name, word)) if word.eq_ignore_ascii_case("desc") => (name.trim(), true),
            Some((name, word)) if word.eq_ignore_ascii_case("asc") => (name.trim(), false),
            _ => (item, false),
        };
        let key = keys.iter().position(|key| key.name == name);
        let measure = || {
            measures
                .iter()
                .position(|m| Some(m) == Measure::parse(name).ok().as_ref())
        };
        let by = key.map(By::Key).or_else(|| measure().map(By::Measure));
        let by = by.ok_or_else(|| {
            let known: Vec<_> = keys.iter().map(|key| key.name.clone()).collect();
            let known = known.into_iter().chain(measures.iter().map(Measure::name));
            let known = known.map(|name| format!("`{name}`")).collect::<Vec<_>>();
            let column = text
                .find(item)
                .map_or(1, |at| text[..at].chars().count() + 1);
            invalid(format!(
                "order_by column {column}: `{name}` is neither a group nor a measure that is \
                 asked for; want one of {}, then `asc` or `desc`",
                known.join(", ")
            ))
        })?;
        order.push(Order { by, descending });
    }
    Ok(order)
}

#[cfg(test)]
mod tests;
