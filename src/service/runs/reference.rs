//! An object that a run refers to and that is not stored in its result: what it ran on, or what it was made from.

use hindsight_analysis::tree::{RAY_CLUSTER, ray_cluster};
use hindsight_filter::Order;
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value as ColumnValue};
use hindsight_filter::model::{Parent, ParentPattern, Record, ResultPattern};
use hindsight_kfp::{content, history::VERSION_TYPE};
use hindsight_run::View;
use jiff::Timestamp;
use serde_json::Value;

use crate::query::{Engine, Error};

/// What a run refers to.
#[derive(Debug)]
pub(super) struct Reference {
    /// Its kind and name, if the run says them.
    pub(super) object: Option<(&'static str, String)>,
    tests: Vec<Condition>,
    /// Under which parents it is stored.
    parents: Vec<Parent>,
    /// It was made no later than this.
    until: Option<Timestamp>,
}

impl Reference {
    /// What a run of `parent` refers to; pipeline versions are sought under `definitions`.
    pub(super) fn of(parent: &Parent, run: &Value, definitions: &[Parent]) -> Option<Self> {
        Self::cluster(parent, run).or_else(|| Self::version(run, definitions))
    }

    /// The cluster that a RayJob ran on, of its parent and namespace.
    fn cluster(parent: &Parent, job: &Value) -> Option<Self> {
        let name = ray_cluster(job)?;
        let run = View::new(job);
        let object = |field, text| equal(Column::Object(field), text);
        Some(Self {
            object: Some((RAY_CLUSTER, name.to_owned())),
            tests: vec![
                object(ObjectField::Kind, RAY_CLUSTER),
                object(ObjectField::Namespace, run.namespace()?),
                object(ObjectField::Name, name),
            ],
            parents: vec![parent.clone()],
            until: run.ended(),
        })
    }

    /// The pipeline version that a workflow of Kubeflow was compiled from, which it does not name.
    fn version(workflow: &Value, definitions: &[Parent]) -> Option<Self> {
        if definitions.is_empty() {
            return None;
        }
        let digest = content::of_workflow(workflow)?;
        let label = Column::Label(content::CONTENT_LABEL.to_owned());
        Some(Self {
            object: None,
            tests: vec![equal(Column::DataType, VERSION_TYPE), equal(label, &digest)],
            parents: definitions.to_vec(),
            until: View::new(workflow).created(),
        })
    }

    /// The record of the one that was made last.
    pub(super) async fn newest(self, engine: &Engine) -> Result<Option<Record>, Error> {
        let mut tests = self.tests;
        let created = Column::Object(ObjectField::CreationTime);
        tests.extend(self.until.map(|until| {
            let until = ColumnValue::Time(until);
            test(created.clone(), Is::AtMost(until))
        }));
        let parent = match self.parents.as_slice() {
            [parent] => ParentPattern::Exact(parent.clone()),
            parents => {
                let texts = parents.iter();
                let texts = texts.map(|parent| ColumnValue::Text(parent.to_string()));
                tests.push(test(Column::Parent, Is::OneOf(texts.collect())));
                ParentPattern::Any
            }
        };
        let scope = ResultPattern { parent, id: None };
        let newest = Order::by(created, true);
        engine.first(scope, Condition::And(tests), newest).await
    }
}

fn equal(column: Column, text: &str) -> Condition {
    test(column, Is::Equal(ColumnValue::Text(text.to_owned())))
}

fn test(column: Column, is: Is) -> Condition {
    Condition::Test(Test {
        column,
        is,
        negated: false,
    })
}
