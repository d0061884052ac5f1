//! What was measured, printed and kept as one JSON object a line.

use std::{io::Write as _, path::Path, time::Duration};

use serde_json::{Value, json};

#[derive(Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// How many calls they are of.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that so many of a thousand calls stay under, in milliseconds.
    pub fn quantile(&self, thousandths: usize) -> f64 {
        let mut times = self.0.clone();
        times.sort_unstable();
        let last = times.len().saturating_sub(1);
        let at = (last * thousandths).div_ceil(1000);
        times
            .get(at)
            .map_or(0.0, |took| (took.as_secs_f64() * 1e5).round() / 1e2)
    }
}

#[derive(Debug)]
pub struct Figures {
    file: std::fs::File,
    pub database: &'static str,
    pub records: usize,
    /// Figures that missed what they should reach.
    pub missed: Vec<String>,
}

impl Figures {
    pub fn new(path: &Path) -> Self {
        Self {
            file: std::fs::File::create(path).unwrap(),
            database: "",
            records: 0,
            missed: Vec::new(),
        }
    }

    /// Times of calls, the rows that each gave, and the milliseconds that `thousandths` of them
    /// should stay under.
    pub fn timed(&mut self, case: &str, times: &Times, rows: usize, target: (usize, f64)) {
        let (p50, p95, p99) = (
            times.quantile(500),
            times.quantile(950),
            times.quantile(990),
        );
        let met = times.quantile(target.0) <= target.1;
        self.write(
            json!({"case": case, "calls": times.count(), "rows": rows, "p50_ms": p50,
            "p95_ms": p95, "p99_ms": p99, "target_ms": target.1, "met": met}),
        );
        println!(
            "  {case:<58} {rows:>6} rows  p50 {p50:>8.2}  p95 {p95:>8.2}  p99 {p99:>8.2} ms {}",
            self.mark(case, met)
        );
    }

    /// One number, and what it should reach.
    pub fn value(&mut self, case: &str, value: f64, unit: &str, met: Option<bool>) {
        self.write(json!({"case": case, "value": value, "unit": unit, "met": met}));
        let mark = met.map_or("", |met| self.mark(case, met));
        println!("  {case:<58} {value:>12.2} {unit} {mark}");
    }

    fn mark(&mut self, case: &str, met: bool) -> &'static str {
        if met {
            return "";
        }
        self.missed
            .push(format!("{} {}: {case}", self.database, self.records));
        "  MISSED"
    }

    fn write(&mut self, mut line: Value) {
        line["database"] = self.database.into();
        line["records"] = self.records.into();
        writeln!(self.file, "{line}").unwrap();
    }
}
