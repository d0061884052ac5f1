//! The runs that a run is compared with: those of the same pipeline.

use hindsight_analysis::signature::Key;
use hindsight_analysis::tree::PIPELINE_TASK;
use hindsight_filter::columns::ObjectColumns;
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value};
use hindsight_filter::model::{Parent, ParentPattern, Record, ResultPattern};
use hindsight_run::{Outcome, View, keys};
use jiff::Timestamp;

/// Labels that name what a run is made from, with what people call that; the first of them counts.
const TEMPLATES: &[(&str, &str)] = &[
    (keys::PIPELINE, "pipeline"),
    (
        "workflows.argoproj.io/workflow-template",
        "workflow template",
    ),
    (
        "workflows.argoproj.io/cluster-workflow-template",
        "cluster workflow template",
    ),
    ("workflows.argoproj.io/cron-workflow", "cron workflow"),
    (keys::TASK, "task"),
];

/// Runs of one kind of one pipeline in one namespace.
#[derive(Debug, Clone)]
pub(super) struct Series {
    parent: Parent,
    tests: Vec<Condition>,
    /// The pipeline, which what is below its runs is of too, if that is what they are made from.
    pipeline: Option<String>,
    /// What they are called, as in `pipeline release`.
    pub(super) name: String,
}

impl Series {
    /// The series of a run; `None` if it does not say what it is made from.
    pub(super) fn of(record: &Record, run: &View<'_>) -> Option<Self> {
        let data_type = &record.data.as_ref()?.data_type;
        let label = |key: &str, what: &'static str| {
            let value = run.label(key).filter(|value| !value.is_empty())?;
            Some((Column::Label(key.to_owned()), what, value))
        };
        let reference = |field: ObjectField, what: &'static str| {
            let value = run.object().pointer(field.pointer())?.as_str()?;
            Some((Column::Object(field), what, value))
        };
        let (column, what, value) = TEMPLATES
            .iter()
            .find_map(|(key, what)| label(key, what))
            .or_else(|| reference(ObjectField::PipelineRef, "pipeline"))
            .or_else(|| reference(ObjectField::TaskRef, "task"))?;
        let is_of_pipeline = what == "pipeline";
        let mut tests = vec![
            equal(Column::DataType, text(data_type)),
            equal(column, text(value)),
        ];
        let mut name = format!("{what} {value}");
        if let Some((column, _, task)) = label(PIPELINE_TASK, "task") {
            tests.push(equal(column, text(task)));
            name = format!("{name}, task {task}");
        }
        if let Some(namespace) = run.namespace() {
            let column = Column::Object(ObjectField::Namespace);
            tests.push(equal(column, text(namespace)));
        }
        Some(Self {
            parent: record.name.result().parent().clone(),
            tests,
            pipeline: is_of_pipeline.then(|| value.to_owned()),
            name,
        })
    }

    /// Where its records are.
    pub(super) fn scope(&self) -> ResultPattern {
        ResultPattern {
            parent: ParentPattern::Exact(self.parent.clone()),
            id: None,
        }
    }

    /// What may be below its runs and failed for the cause with this key.
    pub(super) fn alike_below(&self, key: Key, after: Option<Timestamp>) -> Condition {
        let pipeline = self.pipeline.as_deref();
        let tests = pipeline.map(|name| equal(Column::Pipeline, text(name)));
        let tests = tests.into_iter().chain(after.map(self::after));
        Condition::And(tests.chain([of_signature(key)]).collect())
    }

    /// Its runs that pass `more`.
    pub(super) fn with(&self, more: impl IntoIterator<Item = Condition>) -> Condition {
        Condition::And(self.tests.iter().cloned().chain(more).collect())
    }
}

/// What a run is made from by its columns, the same as in [`Series::of`], and its place in a
/// pipeline; `None` if it does not say.
pub(super) fn made_from(object: &ObjectColumns) -> Option<(&str, Option<&str>)> {
    let label = |key: &str| {
        let value = object.labels.get(key).map(String::as_str);
        value.filter(|value| !value.is_empty())
    };
    let name = TEMPLATES
        .iter()
        .find_map(|(key, _)| label(key))
        .or_else(|| object.text(ObjectField::PipelineRef))
        .or_else(|| object.text(ObjectField::TaskRef))?;
    Some((name, label(PIPELINE_TASK)))
}

/// Runs that ended like this.
pub(super) fn ended(outcome: Outcome) -> Condition {
    equal(Column::Outcome, Value::Int(outcome as i64))
}

/// Runs that did not do what they should.
pub(super) fn failed() -> Condition {
    Condition::Or(vec![ended(Outcome::Failure), ended(Outcome::Timeout)])
}

/// TaskRuns that succeeded.
pub(super) fn succeeded_tasks() -> Condition {
    let kind = equal(Column::Object(ObjectField::Kind), text("TaskRun"));
    Condition::And(vec![kind, ended(Outcome::Success)])
}

/// What [`succeeded_tasks`] does not select, also where a record has no kind or no outcome.
pub(super) fn no_succeeded_tasks() -> Condition {
    let success = Is::Equal(Value::Int(Outcome::Success as i64));
    let kind = Column::Object(ObjectField::Kind);
    let tests = [
        (Column::Outcome, Is::Present),
        (Column::Outcome, success),
        (kind.clone(), Is::Present),
        (kind, Is::Equal(text("TaskRun"))),
    ];
    let not = |(column, is)| {
        Condition::Test(Test {
            column,
            is,
            negated: true,
        })
    };
    Condition::Or(tests.into_iter().map(not).collect())
}

/// Records with other ids than this one.
pub(super) fn other_ids(id: &str) -> Condition {
    Condition::Test(Test {
        column: Column::RecordId,
        is: Is::Equal(text(id)),
        negated: true,
    })
}

/// Runs that failed for the cause with this key.
pub(super) fn of_signature(key: Key) -> Condition {
    equal(Column::Signature, Value::Text(key.to_string()))
}

/// What is stored with one of these results.
pub(super) fn in_results<'r>(ids: impl IntoIterator<Item = &'r str>) -> Condition {
    let ids = ids.into_iter().map(text).collect();
    test(Column::ResultId, Is::OneOf(ids))
}

/// Runs that are over.
pub(super) fn over() -> Condition {
    let unknown = Value::Int(Outcome::Unknown as i64);
    test(Column::Outcome, Is::Greater(unknown))
}

/// Runs that started before this time.
pub(super) fn before(time: Timestamp) -> Condition {
    test(Column::Began, Is::Less(Value::Time(time)))
}

/// Runs that started at this time or before.
pub(super) fn until(time: Timestamp) -> Condition {
    test(Column::Began, Is::AtMost(Value::Time(time)))
}

/// Runs that started after this time.
pub(super) fn after(time: Timestamp) -> Condition {
    test(Column::Began, Is::Greater(Value::Time(time)))
}

fn equal(column: Column, value: Value) -> Condition {
    test(column, Is::Equal(value))
}

fn test(column: Column, is: Is) -> Condition {
    Condition::Test(Test {
        column,
        is,
        negated: false,
    })
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}
