//! How well signatures group failures by cause.
//!
//! *Purity* is the share of failures whose cause is the most frequent one of their signature;
//! *completeness* the share of failures whose signature is the most frequent one of their cause
//! (inverse purity). *Homogeneity* and *entropy completeness* are those of Rosenberg and Hirschberg,
//! "V-Measure" (2007): one less the part of the entropy of causes that the signature leaves open,
//! and one less the part of the entropy of signatures that the cause leaves open.

use std::collections::BTreeMap;

use hindsight_analysis::signature::{Evidence, Exit, Key, MAX_TEMPLATE, Signature};

use crate::{
    corpus::{Cause, Failure, causes, causes_in_logs},
    random::Random,
};

/// How many causes one seed draws of those that there are, and of those that only logs tell apart.
const CAUSES: usize = 50;
const CAUSES_IN_LOGS: usize = 25;
const FAILURES: usize = 10_000;
const WANTED: f64 = 0.95;

fn signature(failure: &Failure) -> Signature {
    let exits = failure.exits.iter().map(|(step, code, reason)| Exit {
        step,
        code: *code,
        reason,
    });
    let exits: Vec<_> = exits.collect();
    let evidence = Evidence {
        reason: &failure.reason,
        message: &failure.message,
        exits: &exits,
        log_tail: &failure.log,
    };
    Signature::of(&evidence).unwrap()
}

/// How often each cause got each signature.
type Table = BTreeMap<(usize, Key), f64>;

/// The sums of `table` by what `by` takes of a cell.
fn sums<A: Ord>(table: &Table, by: impl Fn(&(usize, Key)) -> A) -> BTreeMap<A, f64> {
    let mut sums = BTreeMap::new();
    for (cell, count) in table {
        *sums.entry(by(cell)).or_default() += count;
    }
    sums
}

/// The share of failures that are in the largest cell of their group.
fn majority<A: Ord>(table: &Table, by: impl Fn(&(usize, Key)) -> A) -> f64 {
    let mut largest: BTreeMap<A, f64> = BTreeMap::new();
    for (cell, count) in table {
        let most = largest.entry(by(cell)).or_default();
        *most = most.max(*count);
    }
    largest.values().sum::<f64>() / table.values().sum::<f64>()
}

/// 1 - H(of | given) / H(of).
fn explained<A: Ord, B: Ord>(
    table: &Table,
    of: impl Fn(&(usize, Key)) -> A,
    given: impl Fn(&(usize, Key)) -> B,
) -> f64 {
    let all: f64 = table.values().sum();
    let entropy = |counts: &BTreeMap<A, f64>| -> f64 {
        counts
            .values()
            .map(|count| -(count / all) * (count / all).ln())
            .sum()
    };
    let groups = sums(table, &given);
    let open: f64 = table
        .iter()
        .map(|(cell, count)| -(count / all) * (count / groups[&given(cell)]).ln())
        .sum();
    1.0 - open / entropy(&sums(table, of))
}

#[track_caller]
fn groups_by_cause(seed: u64) {
    groups(seed, causes(), CAUSES);
}

#[track_caller]
fn groups_by_the_ends_of_logs(seed: u64) {
    groups(seed, causes_in_logs(), CAUSES_IN_LOGS);
}

#[track_caller]
fn groups(seed: u64, mut causes: Vec<Cause>, drawn: usize) {
    let mut random = Random::new(seed);
    random.shuffle(&mut causes);
    let mut table = Table::new();
    for nth in 0..FAILURES {
        let cause = nth % drawn;
        let key = signature(&causes[cause](&mut random)).key();
        *table.entry((cause, key)).or_default() += 1.0;
    }
    let figures = [
        ("purity", majority(&table, |cell| cell.1)),
        ("completeness", majority(&table, |cell| cell.0)),
        (
            "homogeneity",
            explained(&table, |cell| cell.0, |cell| cell.1),
        ),
        (
            "entropy completeness",
            explained(&table, |cell| cell.1, |cell| cell.0),
        ),
    ];
    let signatures = sums(&table, |cell| cell.1).len();
    println!("seed {seed}: {FAILURES} failures, {drawn} causes, {signatures} signatures");
    for (name, figure) in figures {
        println!("seed {seed}: {name} {figure:.4}");
        assert!(figure >= WANTED, "{name} is {figure:.4}, want {WANTED}");
    }
}

#[test]
fn failures_of_the_first_seed_are_grouped_by_cause() {
    groups_by_cause(1);
}

#[test]
fn failures_of_the_second_seed_are_grouped_by_cause() {
    groups_by_cause(20_240_501);
}

#[test]
fn failures_of_the_third_seed_are_grouped_by_cause() {
    groups_by_cause(0xdead_beef);
}

#[test]
fn failures_that_only_logs_explain_are_grouped_by_cause() {
    for seed in [2, 20_261_123, 0xfeed_f00d] {
        groups_by_the_ends_of_logs(seed);
    }
}

#[test]
fn failures_that_only_logs_explain_are_alike_without_them() {
    let mut random = Random::new(5);
    let keys = causes_in_logs().into_iter().map(|cause| {
        let failure = Failure {
            log: String::new(),
            ..cause(&mut random)
        };
        signature(&failure).key()
    });
    let keys: std::collections::BTreeSet<_> = keys.collect();
    // What is left is the name of the step and its code.
    let (keys, causes) = (keys.len(), causes_in_logs().len());
    assert!(
        keys * 3 < causes * 2,
        "{keys} signatures of {causes} causes"
    );
}

#[test]
fn the_measures_see_bad_groups() {
    let key = |text: &str| Signature::of_text(text).unwrap().key();
    let one = Table::from([((0, key("a")), 5.0), ((1, key("a")), 5.0)]);
    assert!(majority(&one, |cell| cell.1) < 0.6);
    assert!(explained(&one, |cell| cell.0, |cell| cell.1) < 0.1);
    let split = Table::from([((0, key("a")), 5.0), ((0, key("b")), 5.0)]);
    assert!(majority(&split, |cell| cell.0) < 0.6);
    assert!(explained(&split, |cell| cell.1, |cell| cell.0) < 0.1);
}

#[test]
fn each_template_of_the_corpus_is_its_own_template() {
    let mut random = Random::new(7);
    for (nth, cause) in causes().iter().enumerate() {
        for _ in 0..10 {
            let first = signature(&cause(&mut random));
            let again = Signature::of_text(first.template()).unwrap();
            assert_eq!(again, first, "cause {nth}");
            assert!(first.template().chars().count() <= MAX_TEMPLATE);
        }
    }
}
