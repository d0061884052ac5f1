//! What a run says of its end: the message, the signature of its failure, and which attempt it is.

use hindsight_run::{Outcome, View};
use serde_json::Value;

use super::{MAX_MESSAGE, MAX_NAME, Node, State, cut, steps};
use crate::signature::{Evidence, Exit, Key, Signature};

impl Node {
    /// The signature of its failure; `None` if it says nothing of it.
    pub fn signature(&self) -> Option<Signature> {
        self.signature_with("")
    }

    /// The same with the end of the log of [`failed_step`](Self::failed_step), which counts if
    /// [`is_vague`](Self::is_vague) says so.
    pub fn signature_with(&self, log_tail: &str) -> Option<Signature> {
        Signature::of(&Evidence {
            log_tail,
            ..self.evidence(&self.exits())
        })
    }

    /// Whether it failed and says no more than that, so that its log may tell why.
    pub fn is_vague(&self) -> bool {
        self.state == State::Failure && self.evidence(&self.exits()).is_vague()
    }

    fn exits(&self) -> Vec<Exit<'_>> {
        let failed = self.steps.iter().filter(|step| step.state.is_failure());
        let exits = failed.filter_map(|step| {
            Some(Exit {
                step: &step.name,
                code: step.exit_code?,
                reason: &step.reason,
            })
        });
        exits.collect()
    }

    fn evidence<'a>(&'a self, exits: &'a [Exit<'a>]) -> Evidence<'a> {
        Evidence {
            reason: &self.reason,
            message: &self.message,
            exits,
            log_tail: "",
        }
    }

    /// What an object says of the failure of its run, without its place in a tree; `None` if it did not fail.
    pub fn of_failure(run: &View<'_>) -> Option<Self> {
        let end = run.finish();
        let has_failed = matches!(
            end.outcome,
            Outcome::Failure | Outcome::Timeout | Outcome::Cancelled
        );
        has_failed.then(|| Self {
            state: end.outcome.into(),
            ..said(run)
        })
    }
}

/// Reason, message and steps of a run that ended.
fn said(run: &View<'_>) -> Node {
    let end = run.finish();
    let closed = run.closed().map(|closed| closed.reason);
    let message = closed.or(end.message).unwrap_or_default();
    let status = run.object().get("status").unwrap_or(&Value::Null);
    Node {
        reason: cut(end.reason.unwrap_or_default(), MAX_NAME),
        message: cut(message, MAX_MESSAGE),
        steps: steps::of(status),
        ..Node::default()
    }
}

/// What an object says of the end of its run. It is read from the conditions, the steps and the
/// texts of the status alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The key of its failure, the same as of [`Node::signature`]; only of a run that failed, timed
    /// out or was cancelled, and there always.
    pub signature: Option<Key>,
    /// What it says of its end, cut to [`MAX_MESSAGE`] characters, unless it succeeded or goes on.
    pub message: Option<String>,
    /// Which attempt it is, of a run that was tried again: 2 or more.
    pub attempt: Option<u16>,
}

impl Said {
    /// What a run says.
    pub fn by(run: &View<'_>) -> Self {
        let status = run.object().get("status").unwrap_or(&Value::Null);
        let tries = status.get("retriesStatus").and_then(Value::as_array);
        let tries = tries.filter(|tries| !tries.is_empty());
        let attempt = tries.map(|tries| u16::try_from(tries.len()).unwrap_or(u16::MAX - 1) + 1);
        let end = run.finish();
        let has_failed = matches!(
            end.outcome,
            Outcome::Failure | Outcome::Timeout | Outcome::Cancelled
        );
        if !has_failed && run.closed().is_none() {
            return Self {
                attempt,
                ..Self::default()
            };
        }
        let node = said(run);
        let signature = has_failed.then(|| match node.signature() {
            Some(signature) => signature.key(),
            None => Key::of_nothing(),
        });
        Self {
            signature,
            message: Some(node.message).filter(|message| !message.is_empty()),
            attempt,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tree::{Part, Tree};

    fn task(reason: &str, message: &str, code: i64) -> Value {
        json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"uid": "u"},
            "status": {
                "conditions": [{"type": "Succeeded", "status": "False", "reason": reason,
                    "message": message}],
                "steps": [{"name": "unit", "terminated": {"exitCode": code, "reason": "OOMKilled"}}],
            },
        })
    }

    #[test]
    fn a_row_says_what_the_leaf_of_a_tree_says() {
        let long = "é".repeat(400);
        for (message, code) in [("cannot reach 10.0.0.1", 1), ("", 137), (&long, 0)] {
            let object = task("Failed", message, code);
            let said = Said::by(&View::new(&object));
            let tree = Tree::of(
                Part::of("a/results/r/records/u", &object),
                Vec::new(),
                Vec::new(),
            );
            let leaf = &tree.nodes[tree.failed_leaf().unwrap()];
            let key = leaf.signature().map(|signature| signature.key());
            assert_eq!(said.signature, key, "{message}");
            assert_eq!(said.message.unwrap_or_default(), leaf.message);
        }
    }

    #[test]
    fn a_failure_that_says_nothing_has_a_signature_and_a_success_has_none() {
        let mut object = task("Failed", "", 0);
        let said = Said::by(&View::new(&object));
        assert_eq!(said.signature, Some(Key::of_nothing()));
        assert_eq!((said.message, said.attempt), (None, None));
        object["status"]["conditions"][0]["status"] = json!("True");
        object["status"]["conditions"][0]["message"] = json!("All Steps have completed");
        object["status"]["retriesStatus"] = json!([{}, {}]);
        let attempt = Some(3);
        let wanted = Said {
            attempt,
            ..Said::default()
        };
        assert_eq!(Said::by(&View::new(&object)), wanted);
    }

    #[test]
    fn a_run_that_vanished_says_why_and_has_no_signature() {
        let mut object = task("Running", "", 0);
        object["status"]["conditions"][0]["status"] = json!("Unknown");
        let closed = hindsight_run::Closed {
            at: jiff::Timestamp::UNIX_EPOCH,
            reason: "deleted before it finished",
        };
        let object = View::new(&object).close(closed).unwrap();
        let said = Said::by(&View::new(&object));
        assert_eq!(said.message.as_deref(), Some("deleted before it finished"));
        assert_eq!(said.signature, None);
    }
}
