//! What runs take, on a part of what `make bench-archive` writes.

use std::{collections::HashMap, sync::Arc};

use hindsight_archive::Row;

use crate::{
    corpus::{Corpus, LARGE, SMALL},
    support::written,
};

#[test]
fn runs_are_small() {
    for (shape, most) in [(SMALL, 4 << 10), (LARGE, 12 << 10)] {
        let corpus = Corpus::new(shape, 100);
        let results: HashMap<_, _> = corpus
            .results
            .iter()
            .map(|it| (&it.name, Arc::new(it.clone())))
            .collect();
        let row = |record: &hindsight_filter::model::Record| Row {
            record: record.clone(),
            result: Arc::clone(&results[record.name.result()]),
        };
        let rows: Vec<Row> = corpus.records.iter().map(row).collect();
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
