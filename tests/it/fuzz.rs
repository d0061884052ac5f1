//! Every input of the fuzzers' corpus, fuzz/corpus, is checked again.

mod checks;
mod payloads;

use std::{fs, path::Path};

fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut count = 0;
    for file in fs::read_dir(corpus.join(target)).unwrap() {
        check(&fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "no corpus for {target}");
}

#[test]
fn filters_of_the_corpus_hold() {
    replay("filter", checks::filter);
}

#[test]
fn selectors_of_the_corpus_hold() {
    replay("selector", checks::selector);
}

#[test]
fn words_of_the_corpus_hold() {
    replay("words", checks::words);
}

#[test]
fn orders_of_the_corpus_hold() {
    replay("order", checks::order);
}

#[test]
fn page_tokens_of_the_corpus_hold() {
    replay("token", checks::token);
}

#[test]
fn payloads_of_the_corpus_hold() {
    replay("payload", payloads::check);
}

#[test]
fn twenty_thousand_payloads_hold() {
    let mut state = 0_u64;
    for _ in 0..20_000 {
        let choices: Vec<u8> = (0..64).map(|_| random(&mut state)).collect();
        payloads::check(&choices);
    }
}

/// The next byte of a sequence that is the same in every run (SplitMix64).
fn random(state: &mut u64) -> u8 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 56) as u8
}

#[test]
fn names_of_the_corpus_hold() {
    replay("name", checks::name);
}

#[test]
fn hostile_filters_of_the_corpus_hold() {
    replay("cost", checks::cost);
}

/// A filter is read and judged within the time that its steps stand for, on any machine that is
/// not a hundred times slower than those that they were measured on. What is not charged takes
/// minutes.
#[cfg(target_os = "linux")]
#[test]
fn no_hostile_filter_takes_longer_than_it_is_charged_for() {
    /// How long this thread was on a processor.
    fn busy() -> std::time::Duration {
        let said = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanos = said.split(' ').next().unwrap().parse().unwrap();
        std::time::Duration::from_nanos(nanos)
    }
    let mut seed = 1_u64;
    for _ in 0..1_000 {
        let bytes: Vec<_> = std::iter::repeat_with(|| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 32) as u8
        })
        .take(64)
        .collect();
        let began = busy();
        checks::cost(&bytes);
        let took = busy() - began;
        assert!(took.as_secs() < 10, "{bytes:?} took {took:?}");
    }
}
