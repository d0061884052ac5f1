//! The rows of a corpus, as files have them.

use std::{collections::HashMap, sync::Arc};

use hindsight_archive::Row;
use hindsight_filter::model::Record;

use crate::corpus::Corpus;

/// The records, each with its result.
pub(crate) fn rows(corpus: &Corpus) -> Vec<Row> {
    let results: HashMap<_, _> = corpus
        .results
        .iter()
        .map(|it| (&it.name, Arc::new(it.clone())))
        .collect();
    let row = |record: &Record| Row {
        record: record.clone(),
        result: Arc::clone(&results[record.name.result()]),
        stored: None,
    };
    corpus.records.iter().map(row).collect()
}
