//! What runs a run.

use super::Kind;

/// The system that a kind of run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Tekton: PipelineRuns, TaskRuns and CustomRuns.
    Tekton,
    /// Argo Workflows, also beneath Kubeflow Pipelines.
    Argo,
    /// The Job controller of Kubernetes.
    Job,
    /// KubeRay: jobs of Ray clusters.
    Ray,
    /// Any other controller of runs.
    Custom,
}

impl Engine {
    /// The engine of a record's `data.type`.
    pub fn of_type(data_type: &str) -> Self {
        match Kind::of_type(data_type).map(|kind| kind.group) {
            Some("tekton.dev") => Self::Tekton,
            Some("argoproj.io") => Self::Argo,
            Some("batch") => Self::Job,
            Some("ray.io") => Self::Ray,
            _ => Self::Custom,
        }
    }

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tekton => "tekton",
            Self::Argo => "argo",
            Self::Job => "job",
            Self::Ray => "ray",
            Self::Custom => "custom",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_an_engine() {
        for (data_type, name) in [
            ("tekton.dev/v1.TaskRun", "tekton"),
            ("pipeline.tekton.dev/TaskRun", "tekton"),
            ("argoproj.io/v1alpha1.Workflow", "argo"),
            ("batch/v1.Job", "job"),
            ("ray.io/v1.RayJob", "ray"),
            ("sparkoperator.k8s.io/v1beta2.SparkApplication", "custom"),
            ("", "custom"),
        ] {
            assert_eq!(Engine::of_type(data_type).name(), name, "{data_type}");
        }
    }
}
