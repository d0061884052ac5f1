//! Times of calls, and the figures made of them.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Runs one call and says how long it took.
pub async fn call<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    let answer = work.await;
    (answer, began.elapsed())
}

/// The times of many calls.
#[derive(Debug)]
pub struct Timed {
    began: Instant,
    took: Duration,
    calls: Vec<Duration>,
    wanted: usize,
}

impl Timed {
    pub fn start(wanted: usize) -> Self {
        Self {
            began: Instant::now(),
            took: Duration::ZERO,
            calls: Vec::with_capacity(wanted),
            wanted,
        }
    }

    pub fn add(&mut self, took: Duration) {
        self.calls.push(took);
    }

    pub fn finish(&mut self) {
        self.took = self.began.elapsed();
        self.calls.sort_unstable();
    }

    pub fn per_second(&self) -> f64 {
        f64::from(u32::try_from(self.wanted).unwrap()) / self.took.as_secs_f64()
    }

    fn quantile(&self, of: f64) -> Option<f64> {
        let last = self.calls.len().checked_sub(1)?;
        let at = (f64::from(u32::try_from(last).unwrap()) * of).round();
        let at: usize = format!("{at}").parse().unwrap();
        Some((self.calls[at].as_secs_f64() * 1e6).round() / 1e3)
    }
}

/// Everything measured, printed and kept.
#[derive(Debug)]
pub struct Figures {
    path: PathBuf,
    file: std::fs::File,
}

impl Figures {
    pub fn new(path: PathBuf) -> Self {
        let file = std::fs::File::create(&path).unwrap();
        Self { path, file }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn timed(&mut self, database: &str, bench: &str, timed: &Timed, callers: usize) {
        let rate = timed.per_second().round();
        let (p50, p99) = (timed.quantile(0.5), timed.quantile(0.99));
        self.write(
            &json!({"bench": bench, "database": database, "calls": timed.wanted,
            "callers": callers, "seconds": timed.took.as_secs_f64(), "per_second": rate,
            "p50_ms": p50, "p99_ms": p99}),
        );
        let ms = |value: Option<f64>| value.map_or_else(String::new, |ms| format!("{ms:.2} ms"));
        println!(
            "  {bench:<24} {rate:>8}/s   p50 {:>10}   p99 {:>10}",
            ms(p50),
            ms(p99)
        );
    }

    /// Milliseconds of processor that a call takes of the server and of the database.
    pub fn cpu(&mut self, database: &str, bench: &str, (server, of): (f64, Option<f64>)) {
        self.write(&json!({"bench": bench, "database": database,
            "server_cpu_ms": server, "database_cpu_ms": of}));
        let of = of.map_or_else(String::new, |ms| format!(", database {ms:.3} ms"));
        println!("  {bench:<24} processor a call: server {server:.3} ms{of}");
    }

    pub fn value(&mut self, database: &str, bench: &str, value: u64) {
        self.write(&json!({"bench": bench, "database": database, "value": value}));
        println!("  {bench:<24} {value:>8}");
    }

    fn write(&mut self, line: &Value) {
        writeln!(self.file, "{line}").unwrap();
    }
}
