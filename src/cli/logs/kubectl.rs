//! The command of kubectl that shows the logs of a run while its pods exist.

use hindsight_run::View;

/// Labels by which the pods of a run are found, by group and kind of the run.
const LABELS: [(&str, &str, &str); 5] = [
    ("tekton.dev", "PipelineRun", "tekton.dev/pipelineRun"),
    ("tekton.dev", "TaskRun", "tekton.dev/taskRun"),
    ("argoproj.io", "Workflow", "workflows.argoproj.io/workflow"),
    ("batch", "Job", "batch.kubernetes.io/job-name"),
    ("ray.io", "RayJob", "ray.io/originated-from-cr-name"),
];

/// The command of kubectl; the error says why there is none.
pub(super) fn command(run: &View<'_>) -> Result<String, String> {
    let (Some(kind), Some(name)) = (run.kind(), run.name()) else {
        return Err("the record holds no object with a kind and a name".to_owned());
    };
    let version = run.api_version().unwrap_or_default();
    let group = version.split('/').next().unwrap_or_default();
    let known = LABELS
        .iter()
        .find(|(of, known, _)| *of == group && *known == kind);
    let Some((.., label)) = known else {
        return Err(format!("how the pods of a {kind} are found is not known"));
    };
    let namespace = run.namespace().unwrap_or("default");
    // The line may be given to a shell.
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    match [namespace, name].iter().all(|text| text.chars().all(safe)) {
        true => Ok(format!(
            "kubectl logs -n {namespace} -l {label}={name} --all-containers --prefix --tail=-1"
        )),
        false => Err("the run has a name that no cluster gives".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(api: &str, kind: &str, name: &str) -> Result<String, String> {
        let object: Value = json!({"apiVersion": api, "kind": kind,
            "metadata": {"name": name, "namespace": "shop"}});
        command(&View::new(&object))
    }

    #[test]
    fn pods_are_found_by_the_label_of_their_engine() {
        assert_eq!(
            told("batch/v1", "Job", "backup-1").unwrap(),
            "kubectl logs -n shop -l batch.kubernetes.io/job-name=backup-1 --all-containers \
             --prefix --tail=-1"
        );
        assert!(told("hindsight.dev/v1alpha1", "Workflow", "x").is_err());
        assert!(told("tekton.dev/v1", "TaskRun", "x; reboot").is_err());
    }
}
