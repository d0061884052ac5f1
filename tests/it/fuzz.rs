//! Every input of the fuzzers' corpus, fuzz/corpus, is checked again.

mod checks;

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
fn orders_of_the_corpus_hold() {
    replay("order", checks::order);
}

#[test]
fn page_tokens_of_the_corpus_hold() {
    replay("token", checks::token);
}

#[test]
fn names_of_the_corpus_hold() {
    replay("name", checks::name);
}
