//! Writes the files of the benchmark with the archive's own writer: `fill FOLDER ROWS`. Row `n` is the same whenever it
//! is made.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::BufWriter,
    path::Path,
    sync::Arc,
    thread,
};

use hindsight_archive::{Limits, Partition, Row, Writer};
use hindsight_filter::model::{Etag, Payload, Record, ResultName, RunResult};
use jiff::Timestamp;

const NAMESPACES: usize = 5;
const DAYS: usize = 20;
const PIPELINES: usize = 40;
/// Records of a result.
const RECORDS: usize = 10;
/// Files that are written at once.
const THREADS: usize = 2;
/// The first moment of 2026, in microseconds since 1970.
const BEGAN: i64 = 1_767_225_600_000_000;
const DAY: i64 = 86_400_000_000;

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("a folder is given");
    let rows: usize = args
        .next()
        .and_then(|rows| rows.parse().ok())
        .expect("a number is given");
    let results = rows.div_ceil(RECORDS).div_ceil(NAMESPACES * DAYS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let folder = Path::new(&folder);
            scope.spawn(move || {
                let parts =
                    (0..NAMESPACES).flat_map(|space| (0..DAYS).map(move |day| (space, day)));
                for (space, day) in parts.skip(thread).step_by(THREADS) {
                    write(folder, space, day, results);
                }
            });
        }
    });
}

/// Writes the file of a namespace and day, unless it is there.
fn write(folder: &Path, space: usize, day: usize, results: usize) {
    let partition = Partition::of(&result(space, day, 0)).to_string();
    let folder = folder.join(partition);
    let path = folder.join("all.parquet");
    if path.exists() {
        return;
    }
    fs::create_dir_all(&folder).expect("the folder can be made");
    let part = path.with_extension("part");
    let out = BufWriter::new(File::create(&part).expect("the file can be made"));
    let mut writer = Writer::new(out, Limits::default()).expect("a file begins");
    for number in 0..results {
        let result = Arc::new(result(space, day, number));
        for record in 0..RECORDS {
            let row = row(&result, day * results * RECORDS + number * RECORDS + record);
            writer.push(row).expect("a row is written");
        }
    }
    writer.finish().expect("the file ends");
    fs::rename(part, path).expect("the file gets its name");
}

fn result(space: usize, day: usize, number: usize) -> RunResult {
    let name: ResultName = format!("team-{space}/results/{day:02}-{number:06}")
        .parse()
        .expect("it is a name");
    let us = BEGAN + day as i64 * DAY + number as i64 * 1_000_000 % DAY;
    let made = Timestamp::from_microsecond(us).expect("it is a time");
    let uid = format!("{space}-{day}-{number}");
    RunResult {
        name,
        etag: Etag::new(&uid, made),
        uid,
        create_time: made,
        update_time: made,
        annotations: BTreeMap::new(),
        summary: None,
    }
}

fn row(result: &Arc<RunResult>, number: usize) -> Row {
    // Numbers without a pattern, of a linear congruence.
    let dice = (number as u64)
        .wrapping_mul(6_364_136_223_846_793_005)
        .rotate_right(29);
    let pipeline = (dice % PIPELINES as u64) as usize;
    let took = 5_000_000 + i64::try_from(dice >> 44).expect("20 bits are left") * 1_000;
    let start = result.create_time;
    let end = Timestamp::from_microsecond(start.as_microsecond() + took).expect("it is a time");
    let (status, reason) = match dice % 11 {
        0 => ("False", "Failed"),
        1 => ("False", "TaskRunTimeout"),
        _ => ("True", "Succeeded"),
    };
    let payload = format!(
        r#"{{"kind":"TaskRun","metadata":{{"name":"run-{number}","namespace":"x","uid":"{dice:016x}",
        "creationTimestamp":"{start}","labels":{{"tekton.dev/pipeline":"pipeline-{pipeline}",
        "team":"t{}"}}}},"spec":{{"taskRef":{{"name":"task-{}"}}}},"status":{{"startTime":"{start}",
        "completionTime":"{end}","conditions":[{{"type":"Succeeded","status":"{status}","reason":"{reason}"}}]}}}}"#,
        dice % 7,
        dice % 30,
    );
    let uid = format!("{dice:016x}-{number}");
    Row {
        record: Record {
            name: result
                .name
                .record(&format!("r{number}"))
                .expect("it is a name"),
            etag: Etag::new(&uid, end),
            uid,
            create_time: start,
            update_time: end,
            data: Some(Payload::new(
                "tekton.dev/v1.TaskRun".to_owned(),
                payload.into_bytes().into(),
            )),
        },
        result: Arc::clone(result),
        stored: None,
    }
}
