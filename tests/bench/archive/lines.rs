//! The baseline: the same records as lines of JSON, compressed as one stream in the order of storing.

use std::{io::Write as _, time::Instant};

use serde_json::{json, value::RawValue};

use crate::corpus::Corpus;

pub(crate) fn measure(corpus: &Corpus) {
    for level in [3, 9] {
        let began = Instant::now();
        let mut out = zstd::Encoder::new(Vec::new(), level).unwrap();
        for record in &corpus.records {
            let data = record.data.as_ref().unwrap();
            let value = RawValue::from_string(String::from_utf8(data.value.to_vec()).unwrap());
            let line = json!({"name": record.name.to_string(), "uid": record.uid, "type": data.data_type,
                "createTime": record.create_time.to_string(), "updateTime": record.update_time.to_string()});
            writeln!(out, "{{\"record\":{line},\"value\":{}}}", value.unwrap()).unwrap();
        }
        let stream = out.finish().unwrap();
        let wrote = began.elapsed();
        let name = corpus.records[corpus.records.len() / 2].name.to_string();
        let began = Instant::now();
        let text = zstd::decode_all(&stream[..]).unwrap();
        let found = text.split(|byte| *byte == b'\n').filter(|line| {
            line.get(..200)
                .is_some_and(|start| String::from_utf8_lossy(start).contains(&name))
        });
        assert_eq!(found.count(), 1, "{name} is not found once");
        let got = began.elapsed();
        let rows = corpus.records.len() as u64;
        println!(
            "{}",
            json!({"bench": "archive", "form": "jsonl.zst", "level": level,
                "records_per_run": corpus.shape.tasks + 1, "runs": corpus.runs,
                "bytes_per_run": stream.len() / corpus.runs,
                "write_rows_s": rows * 1000 / u64::try_from(wrote.as_millis()).unwrap().max(1),
                "get_p50_ms": (got.as_secs_f64() * 1e5).round() / 1e2, "get_bytes": stream.len()})
        );
    }
}
