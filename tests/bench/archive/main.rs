//! What runs take in Parquet files, how fast they are written, and what is read to find them, beside the same
//! records as lines of JSON under zstd.
//!
//! Run it with `cargo bench --bench archive`.
//!
//! `HINDSIGHT_BENCH_RUNS` is the number of runs; the argument `small` or `large` plays one of the two shapes alone.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, is configured by the environment and stops at the unexpected"
)]

#[path = "../storage/corpus.rs"]
#[expect(dead_code, reason = "the bench of the store shares it")]
mod corpus;
mod counted;
mod lines;
mod rows;

use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    time::{Duration, Instant},
};

use hindsight_archive::{Limits, Partition, Payloads, Reader, Row, Writer};
use hindsight_filter::condition::{Column, Condition, Is, Test, Value as Sought};
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use self::{corpus::Corpus, counted::Counted, rows::rows};

/// Bytes that a run of eleven tasks may take.
const MOST: u64 = 12 << 10;
const GETS: usize = 50;
const PAGE: usize = 50;

/// Writes rows by cluster, namespace and day, or into one file.
fn write(rows: &[Row], dir: &Path, by_day: bool) {
    let mut partitions: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let partition = if by_day {
            Partition::of(&row.result).to_string()
        } else {
            String::new()
        };
        partitions.entry(partition).or_default().push(row.clone());
    }
    for (partition, rows) in partitions {
        let folder = dir.join(partition);
        std::fs::create_dir_all(&folder).unwrap();
        let file = File::create(folder.join("0.parquet")).unwrap();
        let mut writer = Writer::new(file, Limits::default()).unwrap();
        for row in rows {
            writer.push(row).unwrap();
        }
        writer.finish().unwrap();
    }
}

fn test(column: Column, is: Is) -> Condition {
    Condition::Test(Test {
        column,
        is,
        negated: false,
    })
}

fn is(column: Column, text: &str) -> Condition {
    test(column, Is::Equal(Sought::Text(text.to_owned())))
}

/// The files below a directory.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn quantile(times: &mut [Duration], hundredths: usize) -> f64 {
    times.sort_unstable();
    let at = ((times.len() - 1) * hundredths).div_ceil(100);
    (times[at].as_secs_f64() * 1e5).round() / 1e2
}

/// Records by their names, each from the files of its namespace, which are opened anew.
fn gets(rows: &[Row], dir: &Path, by_day: bool) -> Value {
    let counter = Counted::counter();
    let mut times = Vec::new();
    for wanted in rows.iter().step_by(rows.len() / GETS) {
        let began = Instant::now();
        let namespace = format!("namespace={}/", wanted.result.name.parent().namespace());
        let name = &wanted.record.name;
        let both = Condition::And(vec![
            is(Column::Parent, name.result().parent().as_str()),
            is(Column::RecordId, name.id()),
        ]);
        let mut found = Vec::new();
        for file in files(dir) {
            if by_day && !file.display().to_string().contains(&namespace) {
                continue;
            }
            let reader = Reader::open(Counted::open(&file, &counter)).unwrap();
            let places = reader.find(&both).unwrap().places;
            if !places.is_empty() {
                found.extend(reader.read(&places, Payloads::Read).unwrap());
            }
        }
        times.push(began.elapsed());
        assert!(
            found == std::slice::from_ref(wanted),
            "{name} is not what was written"
        );
    }
    json!({"get_p50_ms": quantile(&mut times, 50), "get_p95_ms": quantile(&mut times, 95),
        "get_bytes": Counted::taken(&counter) / times.len() as u64})
}

/// The newest rows with a label of the 30 days before the last one, without payloads.
fn first_page(rows: &[Row], dir: &Path) -> Value {
    let counter = Counted::counter();
    let end = rows.iter().map(|row| row.record.create_time).max().unwrap();
    let begin: Timestamp = end - (30 * 24).hours();
    let label = Column::Label("tekton.dev/pipeline".to_owned());
    let all = Condition::And(vec![
        test(Column::CreateTime, Is::AtLeast(Sought::Time(begin))),
        test(Column::CreateTime, Is::Less(Sought::Time(end))),
        is(label, "pipeline-3"),
    ]);
    let mut times = Vec::new();
    let (mut groups, mut read) = (0, 0);
    for _ in 0..5 {
        let began = Instant::now();
        let readers: Vec<_> = files(dir)
            .iter()
            .map(|file| Reader::open(Counted::open(file, &counter)).unwrap())
            .collect();
        let mut places = Vec::new();
        (groups, read) = (0, 0);
        for (number, reader) in readers.iter().enumerate() {
            let found = reader.find(&all).unwrap();
            groups += reader.groups();
            read += found.groups_read;
            let times = reader.values(&found.places, &Column::CreateTime).unwrap();
            let times = times.into_iter().filter_map(|time| match time {
                Some(Sought::Time(time)) => Some(time),
                _ => None,
            });
            let found = times.zip(found.places);
            places.extend(found.map(|(time, place)| (time, place, number)));
        }
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.truncate(PAGE);
        let mut page = 0;
        for (number, reader) in readers.iter().enumerate() {
            let of_it: Vec<_> = places
                .iter()
                .filter(|it| it.2 == number)
                .map(|it| it.1)
                .collect();
            page += reader.read(&of_it, Payloads::Skip).unwrap().len();
        }
        assert_eq!(page, PAGE.min(places.len()));
        assert!(page > 0, "no row is found");
        times.push(began.elapsed());
    }
    json!({"page_p50_ms": quantile(&mut times, 50), "page_bytes": Counted::taken(&counter) / 5,
        "row_groups": groups, "row_groups_read": read})
}

fn measure(corpus: &Corpus, rows: &[Row], layout: &str) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let by_day = layout == "days";
    let began = Instant::now();
    write(rows, dir.path(), by_day);
    let wrote = began.elapsed();
    let began = Instant::now();
    let files = files(dir.path());
    for file in &files {
        Reader::open(File::open(file).unwrap())
            .unwrap()
            .verify()
            .unwrap();
    }
    let verified = began.elapsed();
    let bytes: u64 = files
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    let per_run = bytes / corpus.runs as u64;
    let mut line = json!({"bench": "archive", "form": "parquet", "layout": layout, "files": files.len(),
        "records_per_run": corpus.shape.tasks + 1, "runs": corpus.runs, "bytes_per_run": per_run,
        "write_rows_s": per_second(rows, wrote), "verify_rows_s": per_second(rows, verified)});
    for figures in [gets(rows, dir.path(), by_day), first_page(rows, dir.path())] {
        for (key, value) in figures.as_object().unwrap() {
            line[key] = value.clone();
        }
    }
    println!("{line}");
    per_run
}

fn per_second(rows: &[Row], took: Duration) -> u64 {
    let millis = u64::try_from(took.as_millis()).unwrap().max(1);
    rows.len() as u64 * 1000 / millis
}

fn main() {
    let runs = std::env::var("HINDSIGHT_BENCH_RUNS").map_or(1000, |runs| runs.parse().unwrap());
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    for (name, shape) in [("small", corpus::SMALL), ("large", corpus::LARGE)] {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let corpus = Corpus::new(shape, runs);
        let raw: usize = corpus.payloads().iter().map(|text| text.len()).sum();
        println!(
            "{runs} runs of {} records and {} bytes of JSON each",
            shape.tasks + 1,
            raw / runs
        );
        let rows = rows(&corpus);
        for layout in ["days", "one file"] {
            let bytes = measure(&corpus, &rows, layout);
            // Below so many runs there are but few of a pipeline on a day.
            assert!(
                bytes <= MOST || runs < 500,
                "{name}, {layout}: a run takes {bytes} bytes, more than {MOST}"
            );
        }
        lines::measure(&corpus);
    }
}
