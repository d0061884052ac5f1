//! Requests as the descriptors allow them, with values that mean something most of the time.

use hindsight_proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    MethodDescriptor, Value,
};

use super::random::{Random, spoil_text};
use crate::support::objects::{bytes, task_run};

/// A method, and how REST reaches it.
#[derive(Debug)]
pub struct Method {
    pub descriptor: MethodDescriptor,
    pub path: String,
    pub rest: Option<Rest>,
}

/// The verb, the path template and the name of the field that is the body.
#[derive(Debug)]
pub struct Rest {
    pub verb: &'static str,
    pub template: String,
    pub body: String,
}

/// Every method of ours whose answers end.
pub fn methods() -> Vec<Method> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let option = pool.get_extension_by_name("google.api.http").unwrap();
    let all = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        // A stream of answers to one request has no end that could be judged.
        .filter(|method| !method.is_server_streaming() || method.is_client_streaming());
    let method = |descriptor: MethodDescriptor| {
        let service = descriptor.parent_service().full_name().to_owned();
        let options = descriptor.options();
        let rule = options.get_extension(&option);
        let rule = rule.as_message().unwrap();
        let text = |name: &str| {
            let field = rule.get_field_by_name(name).unwrap();
            field.as_str().unwrap().to_owned()
        };
        let verbs = ["get", "put", "post", "delete", "patch"];
        let verb = verbs.into_iter().find(|verb| rule.has_field_by_name(verb));
        Method {
            path: format!("/{service}/{}", descriptor.name()),
            rest: verb.map(|verb| Rest {
                verb,
                template: text(verb),
                body: text("body"),
            }),
            descriptor,
        }
    };
    all.map(method).collect()
}

/// Values that are fine, and values that are not.
type Values = (&'static [&'static str], &'static [&'static str]);

const PARENTS: Values = (&["ci", "ci", "dev", "c/east/ns/ci"], &["-", "", "a b", "é"]);
const RESULTS: Values = (&["r", "r", "s", "0a1b2c"], &["-", "records", "x", "%2F"]);
const RECORDS: Values = (&["a", "b", "c", "d"], &["summary", "-", "0", "a/b"]);
const FILTERS: Values = (
    &[
        "",
        "",
        "data.metadata.name == 'build'",
        "data_type == 'tekton.dev/v1.TaskRun' && data.status.conditions[0].reason != 'Failed'",
        "data.spec.params.exists(p, p.name == 'revision' && p.value == 'abc')",
        "create_time > timestamp('2026-01-01T00:00:00Z')",
        "name.startsWith('a') || parent.contains('c')",
        "data.metadata.labels['team'].matches('^b.*e$')",
        "has(data.spec.timeout) ? size(data.spec.params) > 0 : false",
        "duration(data.spec.timeout) > duration('5m') && 1.5 * 2.0 != 3.0",
    ],
    &[
        "annotations['a'] == 'b' && summary.status == SUCCESS",
        "team in (blue, red), !app",
        "metadata.namespace=ci,status.phase!=Failed",
    ],
);
const ORDERS: Values = (
    &["", "", "create_time desc", "update_time asc"],
    &[
        "summary.start_time",
        "count desc",
        "data.metadata.name",
        "name",
    ],
);
const GROUPS: Values = (
    &[
        "day(started)",
        "pipeline, outcome",
        "label(team)",
        "param(revision)",
        "week",
        "namespace",
    ],
    &["data.metadata.name", "month startTime", ""],
);
const SUMMARIES: Values = (
    &["total", "total,avg_duration", "last_runtime,succeeded", ""],
    &["p95(duration)", "count"],
);
const SUMMARY_GROUPS: Values = (
    &["", "day", "pipeline", "month startTime", "namespace"],
    &["label(team)", "year created", "hour"],
);
const MEASURES: Values = (
    &[
        "count",
        "p95(duration)",
        "success_rate",
        "last(started)",
        "avg(queue)",
    ],
    &["total,avg_duration", "p99.99999(duration)"],
);
const ZONES: Values = (
    &["", "Europe/Berlin", "UTC"],
    &["Mars/Olympus", "../etc/passwd"],
);
const HAVINGS: Values = (
    &["", "", "count >= 1"],
    &["p95(duration) > 5m", "count > 99999999999"],
);
const TYPES: Values = (
    &["tekton.dev/v1.TaskRun", "t"],
    &["", "results.tekton.dev/v1.Log"],
);
const PATHS: Values = (
    &["data", "data.value", "data.type", "annotations"],
    &[
        "*",
        "results.name",
        "records.data.value.spec",
        "summary",
        "x..y",
        "",
    ],
);
const KEYS: Values = (&["a", "b", "app.kubernetes.io/name"], &["é\u{7}", ""]);

/// Makes requests; knows what earlier answers said.
#[derive(Debug)]
pub struct Maker<'a> {
    pub random: &'a mut Random,
    /// Page tokens and etags that were seen.
    pub seen: &'a [String],
}

impl Maker<'_> {
    /// A request message of this type.
    pub fn message(&mut self, of: &MessageDescriptor) -> DynamicMessage {
        let mut message = DynamicMessage::new(of.clone());
        for field in of.fields() {
            let given = match field.name() {
                "record" | "result" | "name" | "parent" | "type" => 99,
                "summary" => 30,
                _ => 60,
            };
            if !self.random.percent(given) || field.containing_oneof().is_some() {
                continue;
            }
            let value = if field.is_map() {
                let Kind::Message(entry) = field.kind() else {
                    continue;
                };
                let of = entry.map_entry_value_field();
                let entry =
                    |maker: &mut Self| (MapKey::String(maker.text(&field)), maker.value(&of));
                Value::Map((0..self.random.below(3)).map(|_| entry(self)).collect())
            } else if field.is_list() {
                Value::List(
                    (0..self.random.below(4))
                        .map(|_| self.value(&field))
                        .collect(),
                )
            } else {
                self.value(&field)
            };
            message.set_field(&field, value);
        }
        message
    }

    fn value(&mut self, field: &FieldDescriptor) -> Value {
        match field.kind() {
            Kind::String => Value::String(self.text(field)),
            Kind::Bytes => Value::Bytes(self.payload().into()),
            Kind::Bool => Value::Bool(self.random.percent(50)),
            Kind::Int32 => Value::I32(self.number()),
            Kind::Enum(_) => Value::EnumNumber(self.number()),
            Kind::Int64 | Kind::Sint64 => Value::I64(self.random.next().cast_signed()),
            Kind::Uint64 => Value::U64(self.random.next()),
            Kind::Double => Value::F64(f64::from_bits(self.random.next())),
            Kind::Message(of) if of.full_name() == "google.protobuf.Timestamp" => {
                Value::Message(self.time(of))
            }
            Kind::Message(of) => Value::Message(self.message(&of)),
            other => panic!(
                "{} is a {other:?}, which no request had yet",
                field.full_name()
            ),
        }
    }

    fn number(&mut self) -> i32 {
        let odd = self.random.percent(10);
        match self.random.below(8) {
            0 if odd => i32::MIN,
            1 if odd => i32::MAX,
            2 if odd => -1,
            3 if odd => 10_000,
            _ => i32::try_from(self.random.below(6)).unwrap(),
        }
    }

    fn time(&mut self, of: MessageDescriptor) -> DynamicMessage {
        let mut time = DynamicMessage::new(of);
        let seconds = match self.random.below(40) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => -62_135_596_801,
            3 => 253_402_300_800,
            _ => 1_772_359_200 + i64::from(self.number()) % 100_000,
        };
        let nanos = self.number();
        time.set_field_by_name("seconds", Value::I64(seconds));
        time.set_field_by_name("nanos", Value::I32(nanos));
        time
    }

    fn payload(&mut self) -> Vec<u8> {
        match self.random.below(20) {
            0 => self.random.bytes(200),
            1 => Vec::new(),
            2 => b"{\"n\": 1, \"n\": [1e400, \"\\ud800\"]}".to_vec(),
            _ => {
                let name = ["build", "test", "x\0y"][self.random.below(3)];
                bytes(&task_run(
                    name,
                    ["Succeeded", "Failed"][self.random.below(2)],
                ))
            }
        }
    }

    /// Mostly one that is fine.
    fn one(&mut self, of: Values) -> String {
        let of = if self.random.percent(96) { of.0 } else { of.1 };
        self.random.pick(of).to_owned()
    }

    /// A name of a result, or of a record.
    fn name(&mut self, records: bool) -> String {
        let result = format!("{}/results/{}", self.one(PARENTS), self.one(RESULTS));
        if records {
            format!("{result}/records/{}", self.one(RECORDS))
        } else {
            result
        }
    }

    fn text(&mut self, field: &FieldDescriptor) -> String {
        let of = field.parent_message().name().to_owned();
        let summed = of == "RecordListSummaryRequest";
        let mut text = match field.name() {
            // The same as in the name, or nothing.
            "parent" if of.starts_with("Create") => String::new(),
            "parent" if of == "ListResultsRequest" => self.one(PARENTS),
            "parent" => self.name(false),
            "name" | "record" => self.name(of.contains("Record")),
            "filter" => self.one(FILTERS),
            "order_by" if summed || of == "AggregateRequest" => String::new(),
            "order_by" => self.one(ORDERS),
            "group_by" if summed => self.one(SUMMARY_GROUPS),
            "group_by" => self.one(GROUPS),
            "summary" => self.one(SUMMARIES),
            "measures" => self.one(MEASURES),
            "time_zone" => self.one(ZONES),
            "having" => self.one(HAVINGS),
            "type" => self.one(TYPES),
            "paths" => self.one(PATHS),
            "page_token" | "etag" if !self.seen.is_empty() && self.random.percent(20) => {
                self.seen[self.random.below(self.seen.len())].clone()
            }
            "page_token" | "etag" | "id" | "uid" => String::new(),
            _ => self.one(KEYS),
        };
        if self.random.percent(3) {
            spoil_text(&mut text, self.random);
        }
        text
    }

    /// What else a query or metadata may say.
    pub fn beside(&mut self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        if self.random.percent(15) {
            all.push(("fields", self.one(PATHS)));
        }
        if self.random.percent(4) {
            all.push(("labelSelector", "team in (blue), app!=x".to_owned()));
        }
        if self.random.percent(4) {
            all.push(("fieldSelector", "metadata.namespace=ci".to_owned()));
        }
        if self.random.percent(4) {
            let languages = ["cel", "labels", "fields", "sql"];
            all.push(("filterLanguage", self.random.pick(&languages).to_owned()));
        }
        for (_, text) in &mut all {
            if self.random.percent(10) {
                spoil_text(text, self.random);
            }
        }
        all
    }
}
