//! How soon step changes of durations are found, and how often where there are none.

use hindsight_analysis::{
    flaky::{self, flaky},
    regression::{Change, Kind, Settings, changes},
    series::Run,
};
use hindsight_run::Outcome;
use proptest::prelude::*;

use crate::{
    durations::{Shape, Timed, run, series},
    random::Random,
};

const SEEDS: [u64; 3] = [11, 4_711, 0xfeed_f00d];

/// The changes of one series.
fn found<'a>(timed: &[Timed]) -> Vec<Change<'a>> {
    let runs: Vec<Run<'a>> = timed.iter().map(|it| run("p", it)).collect();
    changes(&runs, &Settings::default())
}

/// The first run from which on a series is judged: more than a week, and at least 60 runs.
fn judged_from(shape: &Shape) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small"
    )]
    let week = (shape.rate * 8.0) as usize;
    week.max(60)
}

/// Lets the runs from `at` on take `factor` times as long.
fn slow_down(timed: &mut [Timed], at: usize, factor: f64) {
    for it in &mut timed[at..] {
        it.duration *= factor;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[test]
fn a_slow_down_of_20_percent_is_found_within_20_runs() {
    for seed in SEEDS {
        let mut random = Random::new(seed);
        let (mut all, mut soon, mut exact, mut delays) = (0, 0, 0, Vec::new());
        for _ in 0..200 {
            let shape = Shape::random(&mut random);
            let from = judged_from(&shape) + usize::try_from(random.range(0, 60)).unwrap();
            let mut timed = series(&mut random, &shape, from + 20, f64::INFINITY);
            slow_down(&mut timed, from, 1.2);
            let found = found(&timed);
            let slower = found
                .iter()
                .find(|it| it.kind == Kind::Slower && it.noticed >= from);
            all += 1;
            if let Some(slower) = slower {
                soon += 1;
                exact += usize::from(slower.began.abs_diff(from) <= 3);
                delays.push(slower.noticed - from + 1);
            }
        }
        delays.sort_unstable();
        let median = delays[delays.len() / 2];
        println!(
            "seed {seed}: 20 % found within 20 runs in {soon} of {all} series, after {median} runs in the median; {exact} began within 3 runs of the truth"
        );
        assert!(share(soon, all) >= 0.95);
    }
}

/// Noise beyond that of the other tests: changes are found later, and still without false alarms.
#[test]
fn more_noise_costs_runs() {
    for (noise, within, wanted) in [(0.05, 20, 0.95), (0.10, 40, 0.9), (0.15, 80, 0.6)] {
        let mut random = Random::new(99);
        let (mut soon, mut later) = (0, 0);
        for _ in 0..100 {
            let shape = Shape {
                noise,
                ..Shape::random(&mut random)
            };
            let from = judged_from(&shape);
            let mut timed = series(&mut random, &shape, from + within, f64::INFINITY);
            slow_down(&mut timed, from, 1.2);
            let found = found(&timed);
            let slower = found
                .iter()
                .find(|it| it.kind == Kind::Slower && it.noticed >= from);
            soon += usize::from(slower.is_some_and(|it| it.noticed < from + 20));
            later += usize::from(slower.is_some());
        }
        println!(
            "noise {noise}: 20 % found within 20 runs in {soon} of 100 series, within {within} in {later}"
        );
        assert!(share(later, 100) >= wanted, "noise {noise}");
    }
}

#[test]
fn a_longer_tail_is_found_while_the_median_stays() {
    let mut random = Random::new(5);
    let shape = Shape {
        rate: 24.0,
        median: 60_000.0,
        noise: 0.06,
        season: 0.03,
        drift: 0.0,
    };
    let mut found_tails = 0;
    for _ in 0..20 {
        let mut timed = series(&mut random, &shape, 1000, f64::INFINITY);
        for it in &mut timed[500..] {
            if random.chance(0.25) {
                it.duration *= 2.0;
            }
        }
        let found = found(&timed);
        let tail = found
            .iter()
            .find(|it| it.kind == Kind::Tail && (450..650).contains(&it.began));
        found_tails += usize::from(tail.is_some_and(|it| it.after.p95 > it.before.p95 * 3 / 2));
    }
    println!("longer tails found in {found_tails} of 20 series");
    assert!(found_tails >= 15);
}

#[test]
fn a_thousand_days_without_a_change_have_at_most_one_alarm() {
    for seed in SEEDS {
        let mut random = Random::new(seed ^ 0xa1a);
        let (mut days, mut alarms) = (0.0, 0);
        for _ in 0..150 {
            let shape = Shape::random(&mut random);
            let timed = series(&mut random, &shape, usize::MAX, 60.0);
            days += 60.0;
            let seen = found(&timed);
            alarms += seen.len();
        }
        println!("seed {seed}: {alarms} alarms in {days} series-days");
        assert!(f64::from(u32::try_from(alarms).unwrap()) <= days / 1000.0);
    }
}

#[test]
fn changes_are_told_from_series_without() {
    for seed in SEEDS {
        let mut random = Random::new(seed ^ 0xb0b);
        let (mut right, mut wrong, mut missed) = (0, 0, 0);
        for nth in 0..300 {
            let shape = Shape::random(&mut random);
            let from = judged_from(&shape) + usize::try_from(random.range(0, 200)).unwrap();
            let mut timed = series(&mut random, &shape, from + 100, f64::INFINITY);
            let changed = nth % 2 == 0;
            if changed {
                slow_down(&mut timed, from, random.between(1.2, 2.0));
            }
            let found = found(&timed);
            let is_right = |it: &&Change<'_>| {
                changed && it.kind == Kind::Slower && it.began.abs_diff(from) <= 10
            };
            let hits = found.iter().filter(is_right).count();
            right += usize::from(hits > 0);
            missed += usize::from(changed && hits == 0);
            wrong += found.len() - hits.min(1);
        }
        let (precision, recall) = (share(right, right + wrong), share(right, right + missed));
        println!(
            "seed {seed}: precision {precision:.3}, recall {recall:.3} of changes of 20 % to 100 %"
        );
        assert!(precision >= 0.95 && recall >= 0.95);
    }
}

#[test]
fn what_cannot_be_judged_has_no_changes() {
    let at = |began, duration| Timed { began, duration };
    assert_eq!(found(&[]), []);
    // A level that never varies, in whole seconds.
    let constant: Vec<_> = (0..2000).map(|nth| at(nth * 1800, 10_000.0)).collect();
    assert_eq!(found(&constant), []);
    // Two hundred runs of one hour say nothing of the next one.
    let hour: Vec<_> = (0..400)
        .map(|nth| at(nth * 18, if nth < 200 { 1e4 } else { 2e4 }))
        .collect();
    assert_eq!(found(&hour), []);
    // Failures end early, so they do not count.
    let runs = |outcome| {
        let run = |nth: i64| Run {
            began: nth * 3600,
            pipeline: "p",
            version: "",
            outcome,
            duration: if nth < 300 { 10_000 } else { 15_000 },
            attempt: 1,
        };
        (0..400).map(run).collect::<Vec<_>>()
    };
    let changes_of = |outcome| changes(&runs(outcome), &Settings::default());
    assert_eq!(changes_of(Outcome::Failure), []);
    let found = changes_of(Outcome::Success);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind, found[0].began), (Kind::Slower, 300));
    assert_eq!((found[0].before.p50, found[0].after.p50), (10_000, 15_000));
}

#[test]
fn pipelines_do_not_see_each_other() {
    let mut random = Random::new(8);
    let shape = Shape {
        rate: 24.0,
        median: 60_000.0,
        noise: 0.05,
        season: 0.0,
        drift: 0.0,
    };
    let mut slower = series(&mut random, &shape, 400, f64::INFINITY);
    slow_down(&mut slower, 300, 1.5);
    let other = series(&mut random, &shape, 400, f64::INFINITY);
    let mut runs: Vec<Run<'_>> = slower.iter().map(|it| run("a", it)).collect();
    runs.extend(other.iter().map(|it| run("b", it)));
    random.shuffle(&mut runs);
    let found = changes(&runs, &Settings::default());
    assert_eq!(
        found.iter().map(|it| it.pipeline).collect::<Vec<_>>(),
        ["a"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_runs_are_judged(
        runs in proptest::collection::vec((any::<i64>(), any::<u64>(), 0_usize..3, 0_u32..4), 0..200),
    ) {
        let outcomes = [Outcome::Success, Outcome::Failure, Outcome::Cancelled];
        let runs: Vec<Run<'_>> = runs
            .iter()
            .map(|(began, duration, outcome, attempt)| Run {
                began: *began,
                pipeline: ["a", "b", ""][usize::try_from(duration % 3).unwrap()],
                version: ["", "1"][usize::try_from(duration % 2).unwrap()],
                outcome: outcomes[*outcome],
                duration: *duration,
                attempt: *attempt,
            })
            .collect();
        for change in changes(&runs, &Settings::default()) {
            prop_assert!(runs[change.began].began <= runs[change.noticed].began);
        }
        for finding in flaky(&runs, &flaky::Settings::default()) {
            prop_assert!(finding.pairs.len() <= finding.episodes);
        }
    }
}
