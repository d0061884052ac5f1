//! The command `hindsight logs`: where the logs of a run are, while the server stores none.

use std::process::ExitCode;

use clap::Args;
use hindsight_run::{View, json};

use super::{
    failure::Failure,
    output,
    run_ref::{Lookup, RUN},
};

/// Labels by which the pods of a run are found, by group and kind of the run.
const LABELS: [(&str, &str, &str); 5] = [
    ("tekton.dev", "PipelineRun", "tekton.dev/pipelineRun"),
    ("tekton.dev", "TaskRun", "tekton.dev/taskRun"),
    ("argoproj.io", "Workflow", "workflows.argoproj.io/workflow"),
    ("batch", "Job", "batch.kubernetes.io/job-name"),
    ("ray.io", "RayJob", "ray.io/originated-from-cr-name"),
];

/// Print the command that shows the logs of a run, while its pods exist
///
/// Logs are not stored yet. What is printed is a command of kubectl for the pods of the run.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN}

Examples:
  hindsight logs release-42 -n shop
  hindsight logs @last-failed -n shop
  hindsight logs shop/release-42 | sh"))]
pub(super) struct Logs {
    /// Run whose logs are wanted
    run: String,

    #[command(flatten)]
    lookup: Lookup,
}

impl Logs {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let record = self.lookup.whole(&self.run).await?;
        let data = record.data.unwrap_or_default();
        let object = json::parse(&data.value).unwrap_or_default();
        let command = command(&View::new(&object)).map_err(Failure::other)?;
        output::say(&command)?;
        output::note("logs are not stored; this shows them while the pods of the run exist");
        Ok(ExitCode::SUCCESS)
    }
}

/// The command of kubectl; the error says why there is none.
fn command(run: &View<'_>) -> Result<String, String> {
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
