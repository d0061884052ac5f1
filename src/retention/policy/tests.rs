//! When a result is due.

use super::*;

fn policy(keep_for: KeepFor, keep_last: u32) -> Policy {
    Policy {
        name: "p".to_owned(),
        when: None,
        outcomes: Vec::new(),
        terms: Terms {
            keep_for,
            keep_last: NonZeroU32::new(keep_last),
            archive_after: None,
        },
        namespaces: BTreeMap::new(),
    }
}

fn at(day: i64) -> Timestamp {
    Timestamp::from_second(day * 86_400).unwrap()
}

fn ended(name: &str, day: i64, tops: &[(usize, Option<&str>)]) -> Ended {
    let top = |(policy, pipeline): &(usize, Option<&str>)| TopRun {
        policy: *policy,
        pipeline: pipeline.map(str::to_owned),
    };
    Ended {
        name: format!("a/results/{name}").parse().unwrap(),
        at: at(day),
        tops: tops.iter().map(top).collect(),
    }
}

const WEEK: KeepFor = KeepFor::Age(Duration::from_secs(7 * 86_400));
const NOT: KeepFor = KeepFor::Age(Duration::ZERO);

#[test]
fn age_counts_from_the_end_to_the_microsecond() {
    let policies = [policy(WEEK, 0)];
    let run = ended("r", 10, &[(0, None)]);
    let none = Newest::default();
    assert_eq!(due(&policies, &none, &run, at(17)), Some(0));
    let before = at(17) - jiff::SignedDuration::from_micros(1);
    assert_eq!(due(&policies, &none, &run, before), None);
    let forever = [policy(KeepFor::Forever, 0)];
    assert_eq!(due(&forever, &none, &run, at(100_000)), None);
    let nothing = ended("r", 10, &[]);
    assert_eq!(due(&policies, &none, &nothing, at(100)), None, "no runs");
}

#[test]
fn the_newest_of_a_pipeline_stay_whatever_their_age() {
    let policies = [policy(NOT, 2)];
    let mut newest = Newest::default();
    let runs: Vec<_> = (1..=4)
        .map(|day| ended(&format!("r{day}"), day, &[(0, Some("build"))]))
        .chain([
            ended("other", 1, &[(0, Some("release"))]),
            ended("alone", 1, &[(0, None)]),
        ])
        .collect();
    // In whatever order they are seen.
    runs.iter()
        .rev()
        .for_each(|run| newest.note(&policies, run));
    let stays = |run: &Ended| due(&policies, &newest, run, at(90)).is_none();
    let stay: Vec<_> = runs.iter().map(stays).collect();
    assert_eq!(stay, [false, false, true, true, true, true]);
    let aged = [policy(WEEK, 2)];
    assert_eq!(due(&aged, &newest, &runs[5], at(90)), Some(0), "by its age");
}

#[test]
fn a_run_that_ends_while_results_are_looked_at_is_one_of_the_newest() {
    let policies = [policy(NOT, 1)];
    let mut newest = Newest::default();
    let build = |name, day| ended(name, day, &[(0, Some("build"))]);
    newest.note(&policies, &build("old", 1));
    // Each is noted again before it is judged.
    newest.note(&policies, &build("late", 2));
    assert_eq!(due(&policies, &newest, &build("late", 2), at(90)), None);
    // A retry of it ended later: its first end takes no place.
    newest.note(&policies, &build("late", 3));
    newest.note(&policies, &build("late", 1));
    newest.note(&policies, &build("other", 2));
    assert_eq!(due(&policies, &newest, &build("other", 2), at(90)), None);
}

#[test]
fn of_several_top_runs_all_must_be_due() {
    let policies = [policy(WEEK, 0), policy(KeepFor::Forever, 0)];
    let none = Newest::default();
    let both = ended("r", 1, &[(0, None), (1, None)]);
    assert_eq!(due(&policies, &none, &both, at(90)), None);
    let two = ended("r", 1, &[(0, None), (0, None)]);
    assert_eq!(due(&policies, &none, &two, at(90)), Some(0));
}
