//! What a page may take, and what it takes beside that: as a table, and as a line of JSON for each page.

use std::{io::Write as _, path::Path, process::ExitCode};

use serde_json::{Map, Value, json};

use crate::measure::Seen;

/// The most of each figure of a page.
#[derive(Debug)]
pub struct Budget {
    pub server: f64,
    html: f64,
}

impl Budget {
    /// A page of rows that an index answers, such as runs and records.
    pub const LIST: Self = Self {
        server: 50.0,
        html: 12.0,
    };
    /// A page that adds up many runs.
    pub const SUMS: Self = Self {
        server: 600.0,
        html: 60.0,
    };
    /// A page of one run, whose tree is read and drawn.
    pub const RUN: Self = Self {
        server: 150.0,
        html: 60.0,
    };

    /// Names, what was seen, and the most that it may be.
    fn figures(&self, seen: &Seen) -> [(&'static str, f64, Option<f64>); 14] {
        [
            ("server_ms", seen.server, Some(self.server)),
            ("first_ms", seen.first, Some(400.0)),
            ("largest_ms", seen.largest, Some(600.0)),
            ("shift", seen.shift, Some(0.0)),
            ("task_ms", seen.task, Some(200.0)),
            ("script_ms", seen.script, None),
            ("input_ms", seen.input, Some(100.0)),
            ("frame_ms", seen.frame, Some(50.0)),
            ("nodes", seen.nodes, Some(3_000.0)),
            ("heap_mib", seen.heap_mib, Some(60.0)),
            ("requests", seen.requests, Some(4.0)),
            ("html_kib", seen.html / 1024.0, Some(self.html)),
            ("css_kib", seen.css / 1024.0, Some(10.0)),
            ("js_kib", seen.js / 1024.0, Some(20.0)),
        ]
    }
}

/// The table, and what of it is over its budget.
#[derive(Debug)]
pub struct Rows {
    file: std::fs::File,
    database: &'static str,
    records: usize,
    missed: Vec<String>,
}

impl Rows {
    pub fn new(path: &Path) -> Self {
        Self {
            file: std::fs::File::create(path).unwrap(),
            database: "",
            records: 0,
            missed: Vec::new(),
        }
    }

    /// Begins a table of a database.
    pub fn heading(&mut self, database: &'static str, records: usize) {
        (self.database, self.records) = (database, records);
        println!("\n{database} with {records} records; * is over the budget");
        print!("{:<22}", "");
        for (name, _, most) in Budget::LIST.figures(&Seen::default()) {
            print!("{:>12}", most.map_or(name.to_owned(), |_| name.to_owned()));
        }
        println!();
    }

    /// A page and its figures.
    pub fn add(&mut self, page: &str, seen: &Seen, budget: &Budget) {
        print!("{page:<22}");
        let mut line = Map::new();
        for (name, value, most) in budget.figures(seen) {
            let value = (value * 1e3).round() / 1e3;
            line.insert(name.to_owned(), value.into());
            let is_over = most.is_some_and(|most| value > most);
            print!("{value:>11.1}{}", if is_over { '*' } else { ' ' });
            if is_over {
                let most = most.unwrap_or_default();
                self.miss(&format!("{page}: {name} is {value}, more than {most}"));
            }
        }
        println!();
        self.write(page, line);
    }

    /// One number beside the most that it may be.
    pub fn value(&mut self, what: &str, value: f64, unit: &str, most: f64) {
        let is_over = value > most;
        println!(
            "{what}: {value:.2} {unit}{}",
            if is_over { " *" } else { "" }
        );
        if is_over {
            self.miss(&format!("{what} is {value:.2}, more than {most}"));
        }
        self.write(what, Map::from_iter([("value".to_owned(), value.into())]));
    }

    fn miss(&mut self, what: &str) {
        let (database, records) = (self.database, self.records);
        self.missed.push(format!("{database} {records}: {what}"));
    }

    fn write(&mut self, what: &str, figures: Map<String, Value>) {
        let mut line = json!({"database": self.database, "records": self.records, "page": what});
        line.as_object_mut().unwrap().extend(figures);
        writeln!(self.file, "{line}").unwrap();
    }

    /// Says what is over its budget, and fails if anything is.
    pub fn end(self) -> ExitCode {
        if self.missed.is_empty() {
            println!("\nevery page is within its budget");
            return ExitCode::SUCCESS;
        }
        println!("\nover the budget:\n  {}", self.missed.join("\n  "));
        ExitCode::FAILURE
    }
}
