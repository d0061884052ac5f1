//! Files of other releases.

use std::sync::Arc;

use bytes::Bytes;
use hindsight_archive::{Reader, TALLY_KEY, VERSION_KEY};
use hindsight_filter::condition::{Column, ObjectField};
use parquet::{
    column::writer::ColumnCloseResult,
    data_type::Int64Type,
    file::{
        metadata::{KeyValue, ParquetMetaDataReader},
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
    schema::{
        parser::parse_message_type,
        types::{Type, TypePtr},
    },
};

use crate::support::{is, read, runs, written};

/// The same file with another version and without some columns, and with an unknown column.
fn altered(file: &Bytes, version: Option<&str>, without: &[&str]) -> Bytes {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file).unwrap();
    let descriptor = metadata.file_metadata().schema_descr();
    let novel = parse_message_type("message m { optional int64 novel; }").unwrap();
    let mut fields: Vec<TypePtr> = novel.get_fields().to_vec();
    let kept = descriptor.root_schema().get_fields().iter();
    fields.extend(
        kept.filter(|field| !without.contains(&field.name()))
            .cloned(),
    );
    let schema = Type::group_type_builder("record")
        .with_fields(fields)
        .build()
        .unwrap();
    let tally = metadata.file_metadata().key_value_metadata().unwrap();
    let tally = tally.iter().find(|pair| pair.key == TALLY_KEY).cloned();
    let version = version.map(|text| KeyValue::new(VERSION_KEY.to_owned(), text.to_owned()));
    let pairs = tally.into_iter().chain(version).collect();
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(pairs))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .build();
    let mut out = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut out, Arc::new(schema), Arc::new(properties)).unwrap();
    for group in metadata.row_groups() {
        let rows = group.num_rows();
        let mut to = writer.next_row_group().unwrap();
        let mut column = to.next_column().unwrap().unwrap();
        let nulls = vec![0; usize::try_from(rows).unwrap()];
        column
            .typed::<Int64Type>()
            .write_batch(&[], Some(&nulls), None)
            .unwrap();
        column.close().unwrap();
        for column in group.columns() {
            if without.contains(&column.column_path().parts()[0].as_str()) {
                continue;
            }
            let closed = ColumnCloseResult {
                bytes_written: u64::try_from(column.compressed_size()).unwrap(),
                rows_written: u64::try_from(rows).unwrap(),
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            to.append_column(file, closed).unwrap();
        }
        to.close().unwrap();
    }
    writer.close().unwrap();
    out.into()
}

#[test]
fn a_file_of_a_later_version_is_refused_with_what_to_do() {
    let (file, _) = written(&runs(2), 100);
    for version in ["2", "0", "1.1", "next"] {
        let error = Reader::open(altered(&file, Some(version), &[])).unwrap_err();
        let wanted = format!(
            "its columns are of version {version}, of which this release knows up to 1; read it with the release \
             that wrote it, or a later one"
        );
        assert_eq!(error.to_string(), wanted);
    }
    let error = Reader::open(altered(&file, None, &[])).unwrap_err();
    assert!(
        error.to_string().contains("was not written by hindsight"),
        "{error}"
    );
    let error = Reader::open(Bytes::from_static(b"{\"kind\":\"TaskRun\"}")).unwrap_err();
    assert!(
        matches!(error, hindsight_archive::Error::Parquet(_)),
        "{error}"
    );
}

#[test]
fn columns_may_be_new_or_absent() {
    let rows = runs(4);
    let (file, tally) = written(&rows, 5);
    let optional = [
        "engine",
        "name",
        "etag",
        "message",
        "summary_start_time",
        "payload_size",
    ];
    let file = altered(&file, Some("1"), &optional);
    let mut wanted = rows;
    wanted.sort_by_key(|row| row.record.name.to_string());
    assert_eq!(read(&file), wanted);
    let reader = Reader::open(file).unwrap();
    assert_eq!(reader.verify().unwrap(), tally);
    let found = reader
        .find(&is(Column::Object(ObjectField::Name), "run-1-1"))
        .unwrap();
    assert!(found.places.is_empty());
}

#[test]
fn a_required_column_that_is_absent_is_named() {
    let (file, _) = written(&runs(1), 5);
    let reader = Reader::open(altered(&file, Some("1"), &["uid"])).unwrap();
    assert_eq!(
        reader.verify().unwrap_err().to_string(),
        "its column `uid` is not there"
    );
}
