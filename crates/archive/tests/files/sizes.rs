//! What runs take, on a part of what `make bench-archive` writes.

use crate::{
    corpus::{Corpus, LARGE, SMALL},
    rows::rows,
    support::written,
};

#[test]
fn runs_are_small() {
    for (shape, most) in [(SMALL, 4 << 10), (LARGE, 12 << 10)] {
        let corpus = Corpus::new(shape, 100);
        let rows = rows(&corpus);
        let raw: usize = corpus.payloads().iter().map(|text| text.len()).sum();
        let (file, _) = written(&rows, 8192);
        let bytes = file.len() / corpus.runs;
        assert!(
            bytes <= most && bytes * 10 < raw / corpus.runs,
            "{} tasks: {bytes}",
            shape.tasks
        );
    }
}
