//! What runs are runs of: a pipeline, or a template of workflows that their labels name.

mod around;

use hindsight_filter::words::value;
use hindsight_proto::v1::{ListRunsRequest, RunRow};

use crate::ask::{Ask, results_of};
use crate::route::Of;

pub(super) use around::{Around, Moment};

/// A pipeline or a template, by its kind and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Series<'a> {
    pub(super) of: Of,
    pub(super) name: &'a str,
}

impl<'a> Series<'a> {
    /// That of a run, if it is known; rows must have the labels of `asking`.
    pub(super) fn of(run: &'a RunRow) -> Option<Self> {
        if !run.pipeline.is_empty() {
            let (of, name) = (Of::Pipeline, run.pipeline.as_str());
            return Some(Self { of, name });
        }
        Self::labelled(|label| run.labels.get(label).map(String::as_str))
    }

    /// That which labels name.
    pub(super) fn labelled(label: impl Fn(&'static str) -> Option<&'a str>) -> Option<Self> {
        let named = |of: Of| Some((of, label(of.label()?)?));
        let (of, name) = Of::LABELLED
            .into_iter()
            .filter_map(named)
            .find(|(_, name)| !name.is_empty())?;
        Some(Self { of, name })
    }

    /// The words that select its runs.
    pub(super) fn query(self, namespace: &str) -> String {
        let namespace = value(namespace);
        match self.of.label() {
            None => format!("pipeline:{} is:top ns:{namespace}", value(self.name)),
            Some(label) => format!("label:{label}={} kind:wf ns:{namespace}", value(self.name)),
        }
    }

    /// Its page; none for runs without a namespace.
    pub(super) fn link(self, ask: &Ask, run: &RunRow) -> Option<String> {
        let parent = parent_of(&run.record);
        let link = ask
            .links
            .pipeline(self.of, parent, &run.namespace, self.name);
        (!run.namespace.is_empty()).then_some(link)
    }
}

/// The parent in the name of a record.
pub(super) fn parent_of(record: &str) -> &str {
    record.split("/results/").next().unwrap_or_default()
}

/// A list of runs below a parent, with what says of which series they are.
pub(super) fn asking(scope: &str, query: &str) -> ListRunsRequest {
    let labels = Of::LABELLED.into_iter().filter_map(Of::label);
    ListRunsRequest {
        parent: results_of(scope),
        query: query.to_owned(),
        label_keys: labels.map(str::to_owned).collect(),
        ..ListRunsRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_is_of_its_template_and_a_tekton_run_of_its_pipeline() {
        let mut run = RunRow {
            pipeline: "release".to_owned(),
            ..RunRow::default()
        };
        let [template, _, cron] = Of::LABELLED.map(|of| of.label().unwrap().to_owned());
        run.labels.insert(cron, "nightly".to_owned());
        let series = Series::of(&run).unwrap();
        assert_eq!(series.query("a b"), "pipeline:release is:top ns:\"a b\"");
        run.pipeline.clear();
        assert_eq!(Series::of(&run).unwrap().of, Of::Cron);
        run.labels.insert(template, "etl, x".to_owned());
        assert_eq!(
            Series::of(&run).unwrap().query("data"),
            "label:workflows.argoproj.io/workflow-template=\"etl, x\" kind:wf ns:data"
        );
        assert_eq!(Series::of(&RunRow::default()), None);
    }
}
