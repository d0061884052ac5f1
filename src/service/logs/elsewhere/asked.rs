//! A run whose log is looked for elsewhere, as its stored record tells of it. Of what clients write nothing
//! but names and times is used, and only below the parent of the record.

use hindsight_filter::model::RecordName;
use hindsight_logs::{Template, Variable};
use hindsight_run::View;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Most containers of which the order is known.
const CONTAINERS: usize = 500;
/// Longest name that is used, in bytes.
const NAME: usize = 253;

/// A run whose log is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedLog {
    record: RecordName,
    log: String,
    uid: Option<String>,
    name: Option<String>,
    kind: Option<String>,
    pod: Option<String>,
    began: Timestamp,
    ended: Option<Timestamp>,
    last: Timestamp,
    containers: Vec<String>,
}

impl AskedLog {
    /// By the record of the run, the object in it, when the record was made and the present time, and the name that
    /// Tekton Results gives to the record of its log.
    pub fn new(
        record: RecordName,
        view: &View<'_>,
        (made, now): (Timestamp, Timestamp),
        log: String,
    ) -> Self {
        let short = |text: Option<&str>| {
            let text = text.filter(|text| !text.is_empty() && text.len() <= NAME);
            text.map(str::to_owned)
        };
        let status = &view.object()["status"];
        let names = |list: &str, prefix: &str| -> Vec<String> {
            let list = status[list].as_array().into_iter().flatten();
            let name = |entry: &serde_json::Value| match entry["container"].as_str() {
                Some(container) => Some(container.to_owned()),
                None => Some(format!("{prefix}{}", entry["name"].as_str()?)),
            };
            list.filter_map(name).take(CONTAINERS).collect()
        };
        let steps = names("steps", "step-").into_iter();
        Self {
            log,
            uid: short(view.uid()),
            name: short(view.name()),
            kind: short(view.kind()),
            pod: short(status["podName"].as_str()),
            began: view.started().or_else(|| view.created()).unwrap_or(made),
            ended: view.ended(),
            last: view.ended().unwrap_or(now),
            containers: steps.chain(names("sidecars", "sidecar-")).collect(),
            record,
        }
    }

    /// The record of the run.
    #[must_use]
    pub fn record(&self) -> &RecordName {
        &self.record
    }

    /// The kind of the object, if it has one.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// When the run began.
    #[must_use]
    pub fn began(&self) -> Timestamp {
        self.began
    }

    /// When the run ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Timestamp> {
        self.ended
    }

    /// When the run ended, or the present time.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// The place of a container among those of the run; one that is not known comes last.
    #[must_use]
    pub fn place_of(&self, container: &str) -> usize {
        let mut known = self.containers.iter();
        let place = known.position(|known| known == container);
        place.unwrap_or(usize::MAX)
    }

    /// A template with what is known of the run, each value as `safe` lets it through; none if something is not
    /// known or not safe.
    pub fn fill(
        &self,
        template: &Template,
        safe: impl Fn(Variable, &str) -> Option<String>,
    ) -> Option<String> {
        let has = |variable| template.has(variable);
        // Namespaces of different clusters have the same names.
        if self.in_cluster().is_some() && has(Variable::Namespace) {
            let is_told = has(Variable::Parent) || has(Variable::Cluster);
            if !is_told {
                return None;
            }
        }
        template.fill(|variable| safe(variable, &self.value(variable)?))
    }

    /// An address for people, in which values are percent-encoded.
    pub(in crate::service::logs) fn link(&self, template: &Template) -> Option<String> {
        self.fill(template, |_, value| {
            Some(utf8_percent_encode(value, NON_ALPHANUMERIC).to_string())
        })
    }

    /// Cluster and namespace of a parent in the form that the watcher gives it.
    fn in_cluster(&self) -> Option<(&str, &str)> {
        let parent = self.record.result().parent();
        let (cluster, namespace) = (parent.cluster()?, parent.namespace());
        let is_usual = parent.as_str() == format!("cluster/{cluster}/namespace/{namespace}");
        is_usual.then_some((cluster, namespace))
    }

    fn value(&self, variable: Variable) -> Option<String> {
        let parent = self.record.result().parent();
        match variable {
            Variable::Parent => Some(parent.as_str().to_owned()),
            Variable::Namespace => match self.in_cluster() {
                Some((_, namespace)) => Some(namespace.to_owned()),
                // Of another form it is not known what the last segment is.
                None => Some(parent.as_str().to_owned()).filter(|parent| !parent.contains('/')),
            },
            Variable::Cluster => self.in_cluster().map(|(cluster, _)| cluster.to_owned()),
            Variable::Result => Some(self.record.result().id().to_owned()),
            Variable::Record => Some(self.record.id().to_owned()),
            Variable::Log => Some(self.log.clone()),
            Variable::Uid => self.uid.clone(),
            Variable::Name => self.name.clone(),
            Variable::Kind => self.kind.as_deref().map(|kind| {
                let (first, rest) = kind.split_at(kind.chars().next().map_or(0, char::len_utf8));
                first.to_lowercase() + rest
            }),
            Variable::Pod => self.pod.clone(),
            Variable::Start => Some(self.began.as_millisecond().to_string()),
            Variable::End => Some(self.ended?.as_millisecond().to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(record: &str) -> AskedLog {
        let object = json!({
            "kind": "TaskRun",
            "metadata": {"name": "build", "uid": "u-1"},
            "status": {
                "podName": "build-pod",
                "steps": [{"name": "a", "container": "step-a"}, {"name": "b"}],
                "sidecars": [{"name": "dind"}],
            },
        });
        let record = record.parse().unwrap();
        AskedLog::new(
            record,
            &View::new(&object),
            (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH),
            "log-id".to_owned(),
        )
    }

    fn filled(record: &str, template: &str) -> Option<String> {
        let template = Template::parse(template).unwrap();
        asked(record).fill(&template, |_, value| Some(value.to_owned()))
    }

    #[test]
    fn a_template_is_filled_from_the_name_of_the_record_and_its_object() {
        let record = "ci/results/r/records/run";
        let all = "${parent}/${namespace}/${result}/${record}/${log}/${uid}/${name}/${kind}/${pod}";
        assert_eq!(
            filled(record, all).unwrap(),
            "ci/ci/r/run/log-id/u-1/build/taskRun/build-pod"
        );
        assert_eq!(filled(record, "${start}").unwrap(), "0");
        assert_eq!(filled(record, "${end}"), None, "it goes on");
        assert_eq!(filled(record, "${cluster}"), None);
    }

    #[test]
    fn a_namespace_of_a_cluster_is_not_taken_for_that_of_another() {
        let record = "cluster/east/namespace/ci/results/r/records/run";
        assert_eq!(filled(record, "${namespace}/${uid}"), None);
        assert_eq!(
            filled(record, "${cluster}/${namespace}").unwrap(),
            "east/ci"
        );
        let odd = "cluster/east/team/ci/results/r/records/run";
        for template in ["${namespace}", "${cluster}", "${cluster}/${namespace}"] {
            assert_eq!(filled(odd, template), None, "{template}");
        }
        assert_eq!(filled(odd, "${parent}").unwrap(), "cluster/east/team/ci");
    }

    #[test]
    fn containers_have_the_order_of_the_steps_and_then_of_the_sidecars() {
        let asked = asked("ci/results/r/records/run");
        let places = ["step-a", "step-b", "sidecar-dind", "other"]
            .map(|container| asked.place_of(container));
        assert_eq!(places, [0, 1, 2, usize::MAX]);
    }
}
