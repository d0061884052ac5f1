//! What is asked for is found by reading little.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use hindsight_archive::{Payloads, Reader, Row, Source};
use hindsight_filter::condition::{Column, Condition, ObjectField};
use parquet::file::metadata::ParquetMetaDataReader;

use crate::support::{is, runs, stored, time, written};

/// A file that counts what is read of it.
#[derive(Debug, Clone)]
struct Counted {
    file: Bytes,
    read: Arc<AtomicU64>,
}

impl Source for Counted {
    fn size(&self) -> u64 {
        self.file.len() as u64
    }

    fn read_at(&self, range: Range<u64>) -> std::io::Result<Bytes> {
        self.read
            .fetch_add(range.end - range.start, Ordering::Relaxed);
        self.file.read_at(range)
    }
}

/// A file of row groups of 300 rows, its reader, and what was read of it since.
fn opened(rows: &[Row]) -> (Bytes, Reader<Counted>, Arc<AtomicU64>) {
    let (file, _) = written(rows, 300);
    let read = Arc::new(AtomicU64::new(0));
    let counted = Counted {
        file: file.clone(),
        read: Arc::clone(&read),
    };
    let reader = Reader::open(counted).unwrap();
    read.store(0, Ordering::Relaxed);
    (file, reader, read)
}

#[test]
fn identifiers_are_found_by_bloom_filters() {
    let rows = runs(1000);
    let (file, reader, read) = opened(&rows);
    assert_eq!(reader.groups(), 10);
    let wanted = &rows[1234];
    let name = String::from("run-411-1");
    for (column, text) in [
        (Column::Uid, wanted.record.uid.clone()),
        (Column::Object(ObjectField::Uid), wanted.record.uid.clone()),
        (Column::RecordId, wanted.record.name.id().to_owned()),
        (Column::Object(ObjectField::Name), name),
    ] {
        read.store(0, Ordering::Relaxed);
        let found = reader.find(&is(column.clone(), &text)).unwrap();
        assert_eq!(found.places.len(), 1, "{column:?}");
        // One, unless a filter of the nine others errs, of which each does once in a hundred times.
        assert!(
            found.groups_read <= 2,
            "{column:?}: {} row groups",
            found.groups_read
        );
        let of_find = read.load(Ordering::Relaxed);
        assert_eq!(
            reader.read(&found.places, Payloads::Read).unwrap(),
            std::slice::from_ref(wanted)
        );
        let all = read.load(Ordering::Relaxed);
        assert!(
            all < file.len() as u64 / 10,
            "{column:?}: {of_find}, {all} of {}",
            file.len()
        );
    }
    let found = reader.find(&is(Column::Uid, "absent")).unwrap();
    assert_eq!((found.places.len(), found.groups_read), (0, 0));
}

#[test]
fn times_are_found_by_statistics_and_payloads_are_left_alone() {
    let rows = runs(1000);
    let (file, reader, read) = opened(&rows);
    let hour = 3_600_000_000;
    let range = time(150 * hour)..time(180 * hour);
    let label = Column::Label("team".to_owned());
    let both = Condition::And(vec![stored(range.clone()), is(label, "team-3")]);
    let found = reader.find(&both).unwrap();
    assert_eq!(found.groups_read, 1);
    let found_rows = reader.read(&found.places, Payloads::Skip).unwrap();
    assert!(read.load(Ordering::Relaxed) < file.len() as u64 / 50);
    let mut names: Vec<_> = found_rows
        .iter()
        .map(|row| row.record.name.to_string())
        .collect();
    names.sort();
    let wanted = rows.iter().filter(|row| {
        let value = &row.record.data.as_ref().unwrap().value;
        let is_team = value.windows(8).any(|part| part == b"\"team-3\"");
        range.contains(&row.record.create_time) && is_team
    });
    let wanted: Vec<_> = wanted.map(|row| row.record.name.to_string()).collect();
    assert_eq!((names.len(), &names), (9, &wanted));
    assert!(found_rows.iter().all(|row| row.payload_bytes() == 0));
}

#[test]
fn a_label_that_no_run_has_reads_filters_only() {
    let (file, reader, read) = opened(&runs(1000));
    for label in [("team", "team-77"), ("tea", "team-3")] {
        let found = reader
            .find(&is(Column::Label(label.0.to_owned()), label.1))
            .unwrap();
        assert!(found.places.is_empty());
        assert!(found.groups_read <= 1);
    }
    assert!(read.load(Ordering::Relaxed) < file.len() as u64 / 50);
}

#[test]
fn a_page_of_payloads_is_read_for_one() {
    let rows = runs(1000);
    let (file, _) = written(&rows, 3000);
    let read = Arc::new(AtomicU64::new(0));
    let reader = Reader::open(Counted {
        file: file.clone(),
        read: Arc::clone(&read),
    })
    .unwrap();
    assert_eq!(reader.groups(), 1);
    let found = reader
        .find(&is(Column::Object(ObjectField::Name), "run-411-1"))
        .unwrap();
    read.store(0, Ordering::Relaxed);
    reader.read(&found.places, Payloads::Skip).unwrap();
    let of_columns = read.swap(0, Ordering::Relaxed);
    assert_eq!(reader.read(&found.places, Payloads::Read).unwrap().len(), 1);
    let of_payload = read.load(Ordering::Relaxed) - of_columns;
    // 12 MB of payloads in pages of 1 MiB, which take half of that in the file.
    assert!(file.len() > 5_000_000, "{}", file.len());
    assert!(of_payload < 1 << 20, "{of_payload}");
}

#[test]
fn what_is_sought_has_filters_and_payloads_have_no_statistics() {
    let (file, _) = written(&runs(2), 100);
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .unwrap();
    let columns = metadata.row_group(0).columns().iter();
    let filtered = columns
        .clone()
        .filter(|it| it.bloom_filter_offset().is_some());
    let filtered: Vec<_> = filtered.map(|it| it.column_path().string()).collect();
    let sought = [
        "result_id",
        "record_id",
        "uid",
        "name",
        "object_uid",
        "label_pairs.list.element",
    ];
    assert_eq!(filtered, sought);
    let bare = columns.filter(|it| it.statistics().is_none());
    let bare: Vec<_> = bare.map(|it| it.column_path().string()).collect();
    assert_eq!(bare, ["payload_sha256", "payload"]);
}
