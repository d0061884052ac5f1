//! `hindsight stats`.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{AggregateRequest, AggregateResponse};
use prost_types::{Struct, value::Kind};
use serde_json::{Map, Value};

use super::{
    cluster::InCluster,
    connect::Connect,
    failure::Failure,
    output::{self, Format},
    place::Place,
    selection::Selection,
};

/// Count and time runs in groups
#[derive(Debug, Args)]
#[command(after_long_help = "Groups (--by):
  minute hour day week month year, alone or of a time: day(started)
  pipeline outcome cluster namespace kind name reason phase task parent result record type
  signature: what failures have in common
  label(KEY) annotation(KEY) param(NAME), or an expression of the filter language
Measures (--measure):
  count succeeded failed timed_out cancelled success_rate
  unfinished, which are running waiting vanished
  avg min max sum p50 p95 p99.9 ... of duration or queue: p95(duration)
  first and last of created started ended stored updated: last(started)

Examples:
  hindsight stats -n ci --by pipeline,day --measure 'count,success_rate,p95(duration)'
  hindsight stats -A --by pipeline --having 'count >= 10' --order-by 'success_rate asc' --limit 5
  hindsight stats -A --by 'label(team),week' --time-zone Europe/Berlin -o json")]
pub(super) struct Stats {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    cluster: InCluster,

    /// Only the records of this result: its id, or its full name
    #[arg(long, value_name = "RESULT")]
    result: Option<String>,

    /// Count all records, not only those of runs
    #[arg(long)]
    records: bool,

    /// What makes a group; separated by commas, or given several times
    #[arg(long, value_name = "GROUP")]
    by: Vec<String>,

    /// What is measured; separated by commas, or given several times
    #[arg(
        short,
        long,
        value_name = "MEASURE",
        default_value = "count,success_rate,p50(duration),p95(duration)"
    )]
    measure: Vec<String>,

    #[command(flatten)]
    rows: Selection,

    /// Where days begin: a name such as `Europe/Berlin`
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,

    /// Which groups, such as `count >= 10 && p95(duration) > 5m`
    #[arg(
        long,
        value_name = "TESTS",
        default_value = "",
        hide_default_value = true
    )]
    having: String,

    /// A group or measure, then `asc` or `desc`; several are separated by commas
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "",
        hide_default_value = true
    )]
    order_by: String,

    /// Maximum number of groups to print
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    limit: i32,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    #[command(flatten)]
    connect: Connect,
}

impl Stats {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let request = AggregateRequest {
            parent: self.cluster.within(&self.place, self.result.as_deref()),
            filter: self
                .cluster
                .filter(&self.place, &self.rows.record_filter(!self.records)?)?,
            group_by: self.by.clone(),
            measures: self.measure.clone(),
            time_zone: self.time_zone.clone(),
            having: self.having.clone(),
            order_by: self.order_by.clone(),
            limit: self.limit,
        };
        let mut queries = self.connect.client()?.queries();
        let reply = queries.aggregate(self.rows.request(request)?).await;
        let reply = reply
            .map_err(|status| self.connect.failure(&status))?
            .into_inner();
        match self.output {
            Format::Json | Format::Yaml => output::document(self.output, &document(&reply))?,
            Format::Table | Format::Wide => self.print(&reply)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, reply: &AggregateResponse) -> Result<(), Failure> {
        let Some(first) = reply.groups.first() else {
            let what = match (reply.records, self.having.is_empty()) {
                (1.., false) => "no group passes --having",
                _ => "no runs match",
            };
            output::note(&format!("{what} {}", self.place.said()));
            return Ok(());
        };
        let keys = in_order(&self.by, first.keys.as_ref());
        let measures = in_order(&self.measure, first.measures.as_ref());
        let header: Vec<_> = keys
            .iter()
            .chain(&measures)
            .map(|n| n.to_uppercase())
            .collect();
        let header: Vec<_> = header.iter().map(String::as_str).collect();
        let mut rows = Vec::with_capacity(reply.groups.len());
        let mut sketched = false;
        for group in &reply.groups {
            let mut row: Vec<_> = keys
                .iter()
                .map(|name| cell(name, field(group.keys.as_ref(), name)))
                .collect();
            for name in &measures {
                let about = if group.approximate.contains(name) {
                    "~"
                } else {
                    ""
                };
                sketched |= !about.is_empty();
                row.push(format!(
                    "{about}{}",
                    cell(name, field(group.measures.as_ref(), name))
                ));
            }
            rows.push(row);
        }
        output::table(&header, &rows)?;
        if sketched {
            let percent = reply.relative_error * 100.0;
            output::note(&format!(
                "~ is at most {percent} % off, because the group is large"
            ));
        }
        if reply.groups_left_out > 0 {
            let more = reply.groups_left_out;
            output::note(&format!(
                "{more} more groups: raise --limit, or use --having"
            ));
        }
        Ok(())
    }
}

/// The names of fields, in the order in which they were asked for.
fn in_order(asked: &[String], fields: Option<&Struct>) -> Vec<String> {
    let mut names: Vec<String> = fields
        .map(|fields| fields.fields.keys().cloned().collect())
        .unwrap_or_default();
    let asked = asked.join(",");
    names.sort_by_key(|name| asked.find(name.as_str()).unwrap_or(usize::MAX));
    names
}

pub(super) fn field<'f>(fields: Option<&'f Struct>, name: &str) -> Option<&'f Kind> {
    fields?.fields.get(name)?.kind.as_ref()
}

pub(super) fn cell(name: &str, value: Option<&Kind>) -> String {
    match value {
        Some(Kind::StringValue(text)) if text.is_empty() => "\"\"".to_owned(),
        Some(Kind::StringValue(text)) => {
            let date = ["day", "week", "month", "year"];
            let is_date = date.iter().any(|unit| {
                name.strip_prefix(unit)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
            });
            match text.split_once('T') {
                Some((date, _)) if is_date => date.to_owned(),
                _ => text.clone(),
            }
        }
        Some(Kind::NumberValue(number)) if name == "success_rate" => {
            format!("{:.1}%", number * 100.0)
        }
        Some(Kind::NumberValue(number))
            if name.ends_with("(duration)") || name.ends_with("(queue)") =>
        {
            output::seconds(*number)
        }
        Some(Kind::NumberValue(number)) => number.to_string(),
        Some(Kind::BoolValue(truth)) => truth.to_string(),
        _ => "-".to_owned(),
    }
}

fn document(reply: &AggregateResponse) -> Value {
    let groups = reply.groups.iter().map(|group| {
        let mut object = Map::new();
        object.insert("keys".to_owned(), json(group.keys.as_ref()));
        object.insert("measures".to_owned(), json(group.measures.as_ref()));
        if !group.approximate.is_empty() {
            object.insert("approximate".to_owned(), group.approximate.clone().into());
        }
        Value::Object(object)
    });
    let mut object = Map::new();
    object.insert("groups".to_owned(), groups.collect());
    object.insert("groupsLeftOut".to_owned(), reply.groups_left_out.into());
    object.insert("records".to_owned(), reply.records.into());
    object.insert("relativeError".to_owned(), reply.relative_error.into());
    Value::Object(object)
}

/// A number without a fraction, as the server writes it in JSON.
#[expect(
    clippy::cast_possible_truncation,
    reason = "whole numbers up to 2^53 are the same in both types"
)]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

fn json(fields: Option<&Struct>) -> Value {
    let fields = fields.map(|fields| &fields.fields).into_iter().flatten();
    let fields = fields.map(|(name, value)| {
        let value = match &value.kind {
            Some(Kind::NumberValue(number)) => whole(*number).map_or((*number).into(), Value::from),
            Some(Kind::StringValue(text)) => text.clone().into(),
            Some(Kind::BoolValue(truth)) => (*truth).into(),
            _ => Value::Null,
        };
        (name.clone(), value)
    });
    Value::Object(fields.collect())
}
