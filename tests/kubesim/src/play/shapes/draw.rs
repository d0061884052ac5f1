//! Which run comes next: its kind, its outcome and its parts are drawn here.

use jiff::{SignedDuration, Timestamp};

use super::{Act, Role};
use crate::play::{Mix, Outcome, Plan, random::Random};

const PIPELINES: &[(&str, &[&str])] = &[
    (
        "nightly-release",
        &["fetch-source", "build-image", "publish"],
    ),
    ("integration-tests", &["fetch-source", "run-tests"]),
    ("deploy-staging", &["render-manifests", "apply-manifests"]),
    ("docs-site", &["build-docs"]),
];

const TASKS: &[&str] = &["lint", "unit-tests", "security-scan", "backup-database"];

const CUSTOM: &[&str] = &["approval", "wait-for-window"];

const WORKFLOWS: &[&str] = &["etl", "train-model"];

/// A run with the task runs it owns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) main: Act,
    pub(crate) children: Vec<Act>,
    /// How long it claims to have taken.
    pub(crate) seconds: u32,
}

impl Run {
    /// The `number`th run of a plan; `None` when no kind may be drawn.
    pub(crate) fn draw(random: &mut Random, number: usize, plan: &Plan, mix: &Mix) -> Option<Self> {
        let total = mix.pipeline_runs + mix.task_runs + mix.custom_runs + mix.workflows;
        if total == 0 {
            return None;
        }
        let mut drawn = random.below(total);
        let mut falls_in = |weight: u32| {
            let inside = drawn < weight;
            drawn = drawn.wrapping_sub(weight);
            inside
        };
        let (role, of) = if falls_in(mix.pipeline_runs) {
            let (pipeline, tasks) = random.one(PIPELINES)?;
            (Role::PipelineRun(tasks), *pipeline)
        } else if falls_in(mix.task_runs) {
            (Role::TaskRun, *random.one(TASKS)?)
        } else if falls_in(mix.custom_runs) {
            (Role::CustomRun, *random.one(CUSTOM)?)
        } else {
            (Role::Workflow, *random.one(WORKFLOWS)?)
        };
        let outcome = match random.below(100) {
            0..78 => Outcome::Succeeded,
            78..90 => Outcome::Failed,
            90..95 => Outcome::Cancelled,
            _ => Outcome::TimedOut,
        };
        let namespace = random
            .one(&plan.namespaces)
            .cloned()
            .unwrap_or_else(|| "default".into());
        let uid = random.uid();
        let revision = format!(
            "{:016x}{:016x}{:08x}",
            random.next(),
            random.next(),
            random.below(u32::MAX)
        );
        let name = format!("{of}-{number:05}");
        let main = Act {
            role,
            name,
            namespace,
            uid,
            outcome,
            of,
            revision,
            number,
        };
        let tasks = if let Role::PipelineRun(tasks) = role {
            tasks
        } else {
            &[]
        };
        let children = tasks
            .iter()
            .enumerate()
            .map(|(position, task)| Act {
                role: Role::TaskRun,
                name: format!("{}-{task}", main.name),
                uid: random.uid(),
                outcome: if position + 1 == tasks.len() {
                    outcome
                } else {
                    Outcome::Succeeded
                },
                of: task,
                ..main.clone()
            })
            .collect();
        let told = plan.told.end().saturating_sub(*plan.told.start());
        let seconds = plan.told.start() + random.below(told.saturating_add(1));
        Some(Self {
            main,
            children,
            seconds,
        })
    }

    /// When the child at `position` begins, and the one before it has ended.
    pub(crate) fn share_of(&self, created: Timestamp, position: usize) -> Timestamp {
        let parts = i64::try_from(self.children.len().max(1)).unwrap_or(1);
        let position = i64::try_from(position).unwrap_or(0);
        created + SignedDuration::from_secs(i64::from(self.seconds) * position / parts)
    }
}
