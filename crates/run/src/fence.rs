//! Which of two states of one run is the later one.

use super::View;

/// Whether `new` is an earlier state of the run than `stored`, so that a late or repeated sender
/// must not replace it: an unfinished state never replaces a finished one, and of two finished
/// ones that with the lower resourceVersion is the earlier. An unfinished state reopens a run that was
/// closed, unless its resourceVersion is lower.
///
/// resourceVersions are compared only if both are numbers, and only between finished states or with
/// a closed one: a cluster that was restored from a backup counts from an earlier number again, and
/// its runs must still be able to finish.
pub fn is_earlier(new: &View<'_>, stored: &View<'_>) -> bool {
    if new.uid() != stored.uid() {
        return false;
    }
    let version = |view: &View<'_>| view.resource_version()?.parse::<u64>().ok();
    let is_lower =
        || matches!((version(new), version(stored)), (Some(new), Some(stored)) if new < stored);
    match (stored.finish().done, new.finish().done) {
        (true, true) => is_lower(),
        (true, false) => true,
        (false, true) => false,
        (false, false) => stored.closed().is_some() && is_lower(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::Closed;

    fn is_earlier(new: &Value, stored: &Value) -> bool {
        super::is_earlier(&View::new(new), &View::new(stored))
    }

    fn state(uid: &str, status: &str, version: &str) -> Value {
        json!({"metadata": {"uid": uid, "resourceVersion": version},
            "status": {"conditions": [{"type": "Succeeded", "status": status}]}})
    }

    #[test]
    fn an_unfinished_state_never_replaces_a_finished_one() {
        let done = state("u", "True", "7");
        assert!(is_earlier(&state("u", "Unknown", "9"), &done));
        assert!(!is_earlier(&done, &state("u", "Unknown", "9")));
    }

    #[test]
    fn a_closed_run_is_reopened_by_no_earlier_state() {
        let closed = Closed {
            at: Timestamp::UNIX_EPOCH,
            reason: "vanished",
        };
        let stored = state("u", "Unknown", "10");
        let closed = View::new(&stored).close(closed).unwrap();
        assert!(is_earlier(&state("u", "Unknown", "9"), &closed));
        assert!(!is_earlier(&state("u", "Unknown", "10"), &closed));
        assert!(!is_earlier(&state("u", "True", "9"), &closed));
        assert!(!is_earlier(&closed, &stored));
        assert!(is_earlier(&closed, &state("u", "True", "9")));
    }

    #[test]
    fn of_two_finished_states_the_higher_version_wins() {
        assert!(is_earlier(
            &state("u", "True", "9"),
            &state("u", "False", "10")
        ));
        assert!(!is_earlier(
            &state("u", "True", "10"),
            &state("u", "False", "9")
        ));
        assert!(!is_earlier(
            &state("u", "True", "x"),
            &state("u", "False", "9")
        ));
    }

    #[test]
    fn states_of_different_runs_are_not_compared() {
        assert!(!is_earlier(
            &state("a", "Unknown", "1"),
            &state("b", "True", "2")
        ));
    }
}
