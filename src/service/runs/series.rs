//! The runs that a run is compared with: those of the same pipeline.

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
/// Label naming the place of a TaskRun in its pipeline.
const PIPELINE_TASK: &str = "tekton.dev/pipelineTask";

/// Runs of one kind of one pipeline in one namespace.
#[derive(Debug, Clone)]
pub(super) struct Series {
    parent: Parent,
    tests: Vec<Condition>,
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
