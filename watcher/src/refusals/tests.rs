//! What is refused is tried ever more rarely, by one for all.

use std::time::Duration;

use super::*;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

fn refusals() -> Refusals {
    Refusals::new(Backoff {
        first: Duration::from_secs(1),
        most: Duration::from_secs(600),
    })
}

fn scope(namespace: &str) -> Scope {
    Scope {
        action: Action::Annotate,
        kind: "TaskRun",
        namespace: namespace.into(),
    }
}

fn uids(names: &[&str]) -> Vec<Uid> {
    names.iter().map(|name| Uid::from(*name)).collect()
}

#[test]
fn after_a_refusal_one_at_a_time_tries_ever_more_rarely_and_the_others_wait() {
    let (refusals, ci) = (refusals(), scope("ci"));
    let mut now = Timestamp::UNIX_EPOCH;
    let [a, b] = &uids(&["a", "b"])[..] else {
        panic!("two")
    };
    assert_eq!(refusals.admit(&ci, Some(a), now), Ok(()));
    refusals.refused(&ci, Some(a), "403", "no", now);
    assert_eq!(refusals.admit(&ci, Some(b), now), Err("no".to_owned()));
    // One that had begun before makes it no rarer.
    assert!(!refusals.refused(&ci, None, "403", "no", now));
    assert_eq!(refusals.lock().closed[&ci].failures, 1);
    // Another namespace is not concerned.
    assert_eq!(refusals.admit(&scope("cd"), Some(b), now), Ok(()));
    let mut tried = 0;
    let end = now + SignedDuration::from_hours(10);
    while now < end {
        now += SECOND;
        if let Ok((Action::Annotate, uid)) = refusals.wake(now) {
            assert_eq!(refusals.admit(&ci, Some(&uid), now), Ok(()));
            refusals.refused(&ci, Some(&uid), "403", "no", now);
            tried += 1;
        }
    }
    // Each ten minutes at last, or somewhat more often.
    assert!((60..150).contains(&tried), "{tried}");
    let (all, count) = refusals.all(5);
    assert_eq!((all[0].waiting, count), (2, 1));
    let mut woken = refusals.accepted(&ci);
    woken.sort();
    assert_eq!(woken, uids(&["a", "b"]));
    assert_eq!(refusals.admit(&ci, Some(a), now), Ok(()));
}

#[test]
fn one_that_was_woken_and_does_not_try_keeps_no_other_from_it() {
    let (refusals, ci) = (refusals(), scope("ci"));
    let now = Timestamp::UNIX_EPOCH;
    for uid in uids(&["a", "b"]) {
        refusals.refused(&ci, Some(&uid), "403", "no", now);
    }
    let later = now + 10 * SECOND;
    assert_eq!(refusals.wake(later).unwrap().1.as_str(), "a");
    let at = refusals.wake(later).unwrap_err().unwrap();
    assert_eq!(refusals.wake(at).unwrap().1.as_str(), "b");
    assert_eq!(refusals.wake(at + 600 * SECOND), Err(None));
}
