//! `hindsight stats`.

mod bars;

use std::process::ExitCode;

use clap::Args;
use hindsight_filter::{Filter, model::Resource};
use hindsight_proto::v1::{AggregateGroup, AggregateRequest, AggregateResponse};
use prost_types::{Struct, value::Kind};
use serde_json::{Map, Value as Json};

use self::bars::Bars;
use super::{
    caret::wrong_filter,
    cluster::InCluster,
    connect::Connect,
    failure::Failure,
    output,
    place::Place,
    selection::Selection,
    table::{Column, Form, Look, Table, Value},
    terminal::Cut,
};

/// Selects what has a signature.
const SIGNED: &str = "has(run.signature)";

/// Count and time runs in groups
#[derive(Debug, Args)]
#[command(after_long_help = "Groups (--by):
  minute hour day week month year, alone or of a time: day(started)
  pipeline outcome cluster namespace kind name reason phase task parent result record type
  signature: what failures have in common; leaves out what has none
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
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    connect: Connect,
}

impl Stats {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let request = AggregateRequest {
            parent: self.cluster.within(&self.place, self.result.as_deref()),
            filter: self.cluster.filter(&self.place, &self.filter()?)?,
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
            Form::Json | Form::Yaml => {
                output::document(
                    self.look.out(),
                    self.output == Form::Yaml,
                    &document(&reply),
                )?;
            }
            Form::Table | Form::Csv => self.print(&reply)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The filter; where signatures make groups, those that have none are no group.
    fn filter(&self) -> Result<String, Failure> {
        let filter = self.rows.record_filter(!self.records)?;
        let mut groups = self.by.iter().flat_map(|by| by.split(','));
        if !groups.any(|group| group.trim() == "signature") {
            return Ok(filter);
        }
        Filter::compile(&filter, Resource::Records)
            .map_err(|error| wrong_filter("--filter ", &filter, &error))?;
        Ok(match filter.trim().is_empty() {
            true => SIGNED.to_owned(),
            false => format!("({filter}\n) && {SIGNED}"),
        })
    }

    fn print(&self, reply: &AggregateResponse) -> Result<(), Failure> {
        let (keys, measures) = match reply.groups.first() {
            Some(first) => (
                in_order(&self.by, first.keys.as_ref()),
                in_order(&self.measure, first.measures.as_ref()),
            ),
            None => (Vec::new(), Vec::new()),
        };
        if !reply.groups.is_empty() {
            let key = |name: &String| Column::usual(name, Cut::Middle);
            let measure = |name: &String| Column::usual(name, Cut::Never).titled(title(name));
            let columns = keys.iter().map(key).chain(measures.iter().map(measure));
            let mut table = Table::new(columns.collect(), &self.look, false)?;
            let bars = Bars::of(reply, self.look.screen());
            for group in &reply.groups {
                table.row(row(group, &keys, &measures, &bars));
            }
            table.print(self.output == Form::Csv, &self.look)?;
        }
        self.note(reply, &measures);
        Ok(())
    }

    /// Says what the table does not.
    fn note(&self, reply: &AggregateResponse, measures: &[String]) {
        if reply.groups.is_empty() {
            let what = match (reply.records, self.having.is_empty()) {
                (1.., false) => "no group passes --having",
                _ => "no runs match",
            };
            output::note(&format!("{what} {}", self.place.said()));
        }
        let mut groups = reply.groups.iter();
        if groups.any(|group| measures.iter().any(|name| group.approximate.contains(name))) {
            let percent = reply.relative_error * 100.0;
            output::note(&format!(
                "~ is at most {percent} % off, because the group is large"
            ));
        }
        match reply.groups_left_out {
            0 => {}
            1 => output::note("1 more group: raise --limit, or use --having"),
            more => output::note(&format!(
                "{more} more groups: raise --limit, or use --having"
            )),
        }
    }
}

/// What stands above a measure on terminals: `P95` for that of the duration.
fn title(measure: &str) -> String {
    let short = match measure {
        "success_rate" => "success",
        other => match other.strip_suffix("(duration)") {
            Some("sum") => "time",
            Some(short) => short,
            None => other,
        },
    };
    short.to_uppercase().replace('_', " ")
}

fn row(group: &AggregateGroup, keys: &[String], measures: &[String], bars: &Bars) -> Vec<Value> {
    let key = |name: &String| {
        let value = field(group.keys.as_ref(), name);
        Value::both(exact(name, value), cell(name, value))
    };
    let measure = |name: &String| {
        let value = field(group.measures.as_ref(), name);
        let shown = bars.beside(name, value, said(group, name));
        Value::both(exact(name, value), shown)
    };
    let keys = keys.iter().map(key);
    keys.chain(measures.iter().map(measure)).collect()
}

/// A measure for people, marked if it is approximate.
fn said(group: &AggregateGroup, name: &str) -> String {
    let is_about = group.approximate.iter().any(|about| about == name);
    let mark = if is_about { "~" } else { "" };
    let value = field(group.measures.as_ref(), name);
    format!("{mark}{}", cell(name, value))
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

/// A value for programs: numbers as they are, times in seconds.
pub(super) fn exact(name: &str, value: Option<&Kind>) -> String {
    match value {
        Some(Kind::NumberValue(number)) => number.to_string(),
        Some(Kind::StringValue(text)) if text.is_empty() => String::new(),
        Some(Kind::NullValue(_)) | None => String::new(),
        other => cell(name, other),
    }
}

/// What is printed as JSON or YAML.
pub(super) fn document(reply: &AggregateResponse) -> Json {
    let groups = reply.groups.iter().map(|group| {
        let mut object = Map::new();
        object.insert("keys".to_owned(), json(group.keys.as_ref()));
        object.insert("measures".to_owned(), json(group.measures.as_ref()));
        if !group.approximate.is_empty() {
            object.insert("approximate".to_owned(), group.approximate.clone().into());
        }
        Json::Object(object)
    });
    let mut object = Map::new();
    object.insert("groups".to_owned(), groups.collect());
    object.insert("groupsLeftOut".to_owned(), reply.groups_left_out.into());
    object.insert("records".to_owned(), reply.records.into());
    object.insert("relativeError".to_owned(), reply.relative_error.into());
    Json::Object(object)
}

/// A number without a fraction, as the server writes it in JSON.
#[expect(
    clippy::cast_possible_truncation,
    reason = "whole numbers up to 2^53 are the same in both types"
)]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

fn json(fields: Option<&Struct>) -> Json {
    let fields = fields.map(|fields| &fields.fields).into_iter().flatten();
    let fields = fields.map(|(name, value)| {
        let value = match &value.kind {
            Some(Kind::NumberValue(number)) => whole(*number).map_or((*number).into(), Json::from),
            Some(Kind::StringValue(text)) => text.clone().into(),
            Some(Kind::BoolValue(truth)) => (*truth).into(),
            _ => Json::Null,
        };
        (name.clone(), value)
    });
    Json::Object(fields.collect())
}
