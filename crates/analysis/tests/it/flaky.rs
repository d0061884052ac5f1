//! How well flaky pipelines are told from those that fail for other reasons.

use hindsight_analysis::{
    flaky::{Settings, Verdict, flaky},
    series::Run,
};
use hindsight_run::Outcome;

use crate::random::Random;

const SEEDS: [u64; 3] = [3, 1_234_567, 0xc0ff_ee00];
const PIPELINES: usize = 150;
const DAYS: u64 = 100;
const HOUR: i64 = 3600;

/// Why the runs of a pipeline fail, besides commits that are bad and hours in which all fail.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Nature {
    /// For no other reason.
    Sound,
    /// By chance, with this probability.
    Flaky(f64),
    /// For some days something outside its code is broken.
    Broken { from: i64, until: i64 },
}

/// Owns what runs refer to.
#[derive(Debug)]
struct Pipeline {
    name: String,
    nature: Nature,
    runs: Vec<(i64, String, Outcome, u32)>,
}

fn seconds(random: &mut Random, least: u64, end: u64) -> i64 {
    i64::try_from(random.range(least, end)).unwrap()
}

/// The runs of one pipeline: commits with a few runs each, of which failed ones are often repeated.
fn pipeline(random: &mut Random, nth: usize, outages: &[(i64, i64)]) -> Pipeline {
    let from = seconds(random, 5, 80) * 24 * HOUR;
    let nature = match random.range(0, 10) {
        0..3 => Nature::Flaky(random.between(0.03, 0.4)),
        3..5 => Nature::Broken {
            from,
            until: from + seconds(random, 2, 100) * HOUR,
        },
        _ => Nature::Sound,
    };
    let least = if matches!(nature, Nature::Flaky(_)) {
        60
    } else {
        5
    };
    let count = random.range(least, 400);
    let gap = DAYS * 24 * 3600 / count;
    let mut pipeline = Pipeline {
        name: format!("pipeline-{nth}"),
        nature,
        runs: Vec::new(),
    };
    let mut branches: Vec<(String, bool)> = Vec::new();
    let mut time = 0;
    while time < i64::try_from(DAYS).unwrap() * 24 * HOUR {
        time += seconds(random, 1, 2 * gap);
        // Some branches are worked on at once; each new commit replaces that of its branch.
        if branches.len() < 3 || random.chance(0.4) {
            if branches.len() == 3 {
                branches.remove(usize::try_from(random.range(0, 3)).unwrap());
            }
            branches.push((random.hex(40), random.chance(0.12)));
        }
        let (commit, bad) =
            branches[usize::try_from(random.range(0, branches.len() as u64)).unwrap()].clone();
        let mut attempt = 1;
        loop {
            let outside = match nature {
                Nature::Flaky(probability) => random.chance(probability),
                Nature::Broken { from, until } => (from..until).contains(&time),
                Nature::Sound => false,
            };
            let down = outages
                .iter()
                .any(|(from, until)| (*from..*until).contains(&time))
                && random.chance(0.9);
            let outcome = match (random.chance(0.03), bad || outside || down) {
                (true, _) => random
                    .pick(&[&Outcome::Cancelled, &Outcome::Unknown])
                    .to_owned(),
                (_, true) => random
                    .pick(&[&Outcome::Failure, &Outcome::Failure, &Outcome::Timeout])
                    .to_owned(),
                _ => Outcome::Success,
            };
            pipeline.runs.push((time, commit.clone(), outcome, attempt));
            if outcome == Outcome::Success || attempt == 3 || random.chance(0.4) {
                break;
            }
            attempt += 1;
            time += seconds(random, 60, 1800);
        }
    }
    pipeline
}

fn runs(pipelines: &[Pipeline]) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    for pipeline in pipelines {
        for (began, version, outcome, attempt) in &pipeline.runs {
            runs.push(Run {
                began: *began,
                pipeline: &pipeline.name,
                version,
                outcome: *outcome,
                duration: 1000,
                attempt: *attempt,
            });
        }
    }
    runs
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

fn run(began: i64, version: &'static str, outcome: Outcome, attempt: u32) -> Run<'static> {
    Run {
        began,
        pipeline: "p",
        version,
        outcome,
        duration: 1,
        attempt,
    }
}

/// The positions of a run that failed and of one that succeeded.
type Positions = (Option<usize>, usize);

/// The verdict on `runs`, and its pairs.
#[track_caller]
fn judged(runs: &[Run<'_>]) -> Option<(Verdict, Vec<Positions>)> {
    let findings = flaky(runs, &Settings::default());
    findings.into_iter().next().map(|it| {
        let pairs = it.pairs.iter().map(|pair| (pair.failed, pair.succeeded));
        (it.verdict, pairs.collect())
    })
}

/// Runs an hour apart, of one version for each word: `s` for a success, `F` for a failure.
fn history(words: &[&'static str]) -> Vec<Run<'static>> {
    let mut runs = Vec::new();
    for word in words {
        for letter in word.chars() {
            let outcome = if letter == 'F' {
                Outcome::Failure
            } else {
                Outcome::Success
            };
            let nth = i64::try_from(runs.len()).unwrap();
            runs.push(run(nth * HOUR, word, outcome, 1));
        }
    }
    runs
}

#[test]
fn evidence_is_both_outcomes_on_one_version() {
    assert_eq!(
        judged(&history(&["sss", "FFF", "sss"])),
        None,
        "a bad commit"
    );
    assert_eq!(judged(&history(&["sFs"])), None, "too few runs");
    assert_eq!(
        judged(&history(&["ssFFF", "s"])),
        Some((Verdict::Suspected, vec![(Some(2), 1)]))
    );
    assert_eq!(
        judged(&history(&["ssFFs", "s"])),
        Some((Verdict::Suspected, vec![(Some(2), 4)]))
    );
    let twice = vec![(Some(1), 2), (Some(4), 5)];
    assert_eq!(
        judged(&history(&["sFs", "sFs"])),
        Some((Verdict::Flaky, twice))
    );
}

#[test]
fn what_breaks_for_all_versions_is_one_episode() {
    // Two branches, both broken at once and well again.
    let order = [
        ("a", 's'),
        ("b", 's'),
        ("a", 'F'),
        ("b", 'F'),
        ("a", 'F'),
        ("a", 's'),
        ("b", 's'),
    ];
    let outcome = |letter| {
        if letter == 'F' {
            Outcome::Failure
        } else {
            Outcome::Success
        }
    };
    let runs: Vec<_> = order
        .iter()
        .zip(0..)
        .map(|((version, letter), nth)| run(nth * HOUR, version, outcome(*letter), 1))
        .collect();
    assert_eq!(
        judged(&runs),
        Some((Verdict::Suspected, vec![(Some(2), 5)]))
    );
}

#[test]
fn a_retry_that_helped_is_evidence_without_the_run_that_failed() {
    let mut runs: Vec<_> = (0..6)
        .map(|nth| run(nth, "", Outcome::Success, 1))
        .collect();
    assert_eq!(judged(&runs), None);
    runs[2].attempt = 3;
    runs[5].attempt = 2;
    assert_eq!(
        judged(&runs),
        Some((Verdict::Flaky, vec![(None, 2), (None, 5)]))
    );
    // An attempt that was cancelled did not fail.
    let cancelled = [
        run(6, "c", Outcome::Cancelled, 1),
        run(7, "c", Outcome::Success, 2),
    ];
    runs = (0..6)
        .map(|nth| run(nth, "", Outcome::Success, 1))
        .collect();
    runs.extend(cancelled);
    assert_eq!(judged(&runs), None);
}

#[test]
fn flaky_pipelines_are_told_from_broken_ones() {
    for seed in SEEDS {
        let mut random = Random::new(seed);
        let outages: Vec<_> = (0..6)
            .map(|_| {
                let from = seconds(&mut random, 0, DAYS * 24 * 3600);
                (from, from + seconds(&mut random, 1800, 6 * 3600))
            })
            .collect();
        let pipelines: Vec<_> = (0..PIPELINES)
            .map(|nth| pipeline(&mut random, nth, &outages))
            .collect();
        let mut runs = runs(&pipelines);
        random.shuffle(&mut runs);
        let findings = flaky(&runs, &Settings::default());
        let is_flaky = |it: &Pipeline| matches!(it.nature, Nature::Flaky(_));
        let (mut right, mut wrong) = (0, 0);
        for finding in findings.iter().filter(|it| it.verdict == Verdict::Flaky) {
            let pipeline = pipelines
                .iter()
                .find(|it| it.name == finding.pipeline)
                .unwrap();
            if is_flaky(pipeline) {
                right += 1
            } else {
                wrong += 1;
            }
            for pair in &finding.pairs {
                let succeeded = &runs[pair.succeeded];
                assert_eq!(
                    (succeeded.pipeline, succeeded.outcome),
                    (finding.pipeline, Outcome::Success)
                );
                let failed = pair.failed.map(|at| &runs[at]);
                assert!(failed.is_none_or(
                    |it| it.version == succeeded.version && it.outcome != Outcome::Success
                ));
            }
        }
        let truth = pipelines.iter().filter(|it| is_flaky(it)).count();
        let (precision, recall) = (share(right, right + wrong), share(right, truth));
        println!(
            "seed {seed}: {truth} of {PIPELINES} pipelines are flaky; precision {precision:.3}, recall {recall:.3}"
        );
        assert!(precision >= 0.95 && recall >= 0.95);
    }
}
