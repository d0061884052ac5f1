//! Words that very many rows repeat: types, kinds, reasons, phases, and keys and values of labels. A column of words keeps the
//! number of one instead of its text, as an escape and one character, so that a TaskRun
//! with five labels takes some 120 bytes less, in its row and in each index of these columns.
//!
//! A number means the same word for ever: words are added at the end, and none is changed or taken
//! out. A word that is not listed is kept as text.

use std::borrow::Cow;

use super::ESCAPE;

/// The words, the place of each being its number.
const WORDS: [&str; 76] = [
    "tekton.dev/v1.TaskRun",
    "tekton.dev/v1.PipelineRun",
    "tekton.dev/v1beta1.TaskRun",
    "tekton.dev/v1beta1.PipelineRun",
    "tekton.dev/v1beta1.CustomRun",
    "argoproj.io/v1alpha1.Workflow",
    "batch/v1.Job",
    "results.tekton.dev/v1alpha3.Log",
    "results.tekton.dev/v1alpha2.Log",
    "TaskRun",
    "PipelineRun",
    "CustomRun",
    "Workflow",
    "tekton.dev/pipeline",
    "tekton.dev/pipelineRun",
    "tekton.dev/pipelineRunUID",
    "tekton.dev/pipelineTask",
    "tekton.dev/task",
    "tekton.dev/taskRun",
    "tekton.dev/taskRunUID",
    "tekton.dev/memberOf",
    "tekton.dev/clusterTask",
    "tekton.dev/customRun",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/component",
    "app.kubernetes.io/part-of",
    "triggers.tekton.dev/trigger",
    "triggers.tekton.dev/eventlistener",
    "triggers.tekton.dev/triggers-eventid",
    "pipelinesascode.tekton.dev/sha",
    "pipelinesascode.tekton.dev/repository",
    "pipelinesascode.tekton.dev/branch",
    "pipelinesascode.tekton.dev/event-type",
    "pipelinesascode.tekton.dev/url-org",
    "pipelinesascode.tekton.dev/url-repository",
    "pipelinesascode.tekton.dev/state",
    "pipelinesascode.tekton.dev/pull-request",
    "pipelinesascode.tekton.dev/sender",
    "pipelinesascode.tekton.dev/original-prname",
    "pipelinesascode.tekton.dev/git-provider",
    "pipelinesascode.tekton.dev/check-run-id",
    "pipelinesascode.tekton.dev/cancel-in-progress",
    "appstudio.openshift.io/application",
    "appstudio.openshift.io/component",
    "appstudio.openshift.io/snapshot",
    "pipelines.appstudio.openshift.io/type",
    "workflows.argoproj.io/workflow",
    "workflows.argoproj.io/phase",
    "workflows.argoproj.io/completed",
    "workflows.argoproj.io/workflow-template",
    "workflows.argoproj.io/cron-workflow",
    "workflows.argoproj.io/creator",
    "workflows.argoproj.io/workflow-archiving-status",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
    "job-name",
    "controller-uid",
    "pipeline/runid",
    "pipelines.kubeflow.org/run_name",
    "kueue.x-k8s.io/queue-name",
    "ray.io/cluster",
    "ray.io/originated-from-crd",
    "Succeeded",
    "Completed",
    "Failed",
    "Error",
    "Running",
    "Pending",
    "True",
    "False",
    "Unknown",
    "tekton-pipelines",
    "tasks",
];

/// The character of the first word; those below it escape others.
const FIRST: u32 = 0x10;

/// A word as a column of words keeps it.
pub(crate) fn stored(word: &str) -> Cow<'_, str> {
    match WORDS.iter().position(|known| *known == word) {
        Some(at) => Cow::Owned(code(at)),
        None => super::stored(word),
    }
}

/// The number of a word, which is the character that follows the escape.
pub(crate) fn number(word: &str) -> Option<i64> {
    let at = WORDS.iter().position(|known| *known == word)?;
    Some(i64::from(FIRST) + i64::try_from(at).ok()?)
}

fn code(at: usize) -> String {
    let number = u32::try_from(at)
        .ok()
        .and_then(|at| char::from_u32(FIRST + at));
    format!("{}{}", ESCAPE, number.expect("there are few words"))
}

/// The word of a character that follows an escape.
pub(super) fn of(character: char) -> Option<&'static str> {
    let at = u32::from(character).checked_sub(FIRST)?;
    WORDS.get(usize::try_from(at).ok()?).copied()
}

/// The texts between which those are that are numbers of words.
pub(crate) fn codes() -> [String; 2] {
    [
        code(0),
        char::from_u32(u32::from(ESCAPE) + 1).into_iter().collect(),
    ]
}

/// A key of labels as their JSON has it, quotes included.
pub(crate) fn key_json(kept: &str) -> String {
    serde_json::Value::from(kept).to_string()
}

/// Every word, after what a column keeps of it.
pub(crate) fn all() -> impl Iterator<Item = (String, &'static str)> {
    WORDS.iter().enumerate().map(|(at, word)| (code(at), *word))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::codec::text;

    #[test]
    fn words_are_two_bytes_and_come_back() {
        for (code, word) in all() {
            assert_eq!(
                (stored(word).len(), stored(word).as_ref()),
                (2, code.as_str())
            );
            assert_eq!(text::shown(code).unwrap(), word);
        }
        for other in ["", "tekton.dev/v1.TaskRuns", "\0", "\u{1}", "\u{1}\u{10}"] {
            assert_eq!(text::shown(stored(other).into_owned()).unwrap(), other);
        }
        let all: HashSet<_> = WORDS.iter().collect();
        assert_eq!(all.len(), WORDS.len(), "a word is there twice");
    }

    #[test]
    fn no_text_is_kept_as_a_number() {
        let [first, end] = codes();
        for kept in ["\0", "\u{1}", "\u{1}\u{10}", "\u{2}", "\u{2}\u{10}", ""] {
            let kept = text::stored(kept);
            assert!(*kept < *first || *kept >= *end, "{kept:?}");
        }
        assert!(all().all(|(code, _)| code >= first && code < end));
    }

    #[test]
    fn words_keep_their_numbers() {
        // Add words at the end, and their number here with the digest of them all.
        let released = WORDS[..76].join("\n");
        let digest = Sha256::digest(released);
        assert_eq!(format!("{:x}", digest)[..16], *"ab27c03ac893a529");
    }
}
