//! A tree as text.

mod bars;

use std::collections::HashMap;

use hindsight_proto::v1::{RunNode, RunStep, RunTree, run_node::Outcome};

use self::bars::Bars;
use crate::cli::{
    output::{self, plain},
    terminal::{Cell, Cut, Layout, Screen, paint, painted},
};

/// Most nodes that share a name and are shown because they failed.
const MOST_FAILED: usize = 10;
/// Cells of bars, and of bars on terminals that are narrower than `WIDE`.
const BAR: usize = 24;
const SHORT_BAR: usize = 12;
const WIDE: usize = 100;

/// A line of the table.
struct Row {
    /// How it stands.
    word: &'static str,
    name: String,
    wait: Option<f64>,
    took: Option<f64>,
    bar: String,
    note: String,
}

/// The lines of a tree.
pub(super) fn draw(tree: &RunTree, depth: u32, all: bool, screen: Screen) -> Vec<String> {
    let Some(run) = tree.nodes.first() else {
        return Vec::new();
    };
    let drawing = Drawing::of(tree, all, screen);
    let mut rows = Vec::new();
    drawing.below(&run.id, 0, depth, &mut rows);
    if rows.is_empty() {
        drawing.steps(run, 0, &mut rows);
    }
    let mut lines = vec![head(run, screen)];
    if !rows.is_empty() {
        lines.extend(table(&rows, &drawing.bars.scale(), screen));
    }
    let foot = foot(tree, run).into_iter();
    lines.extend(foot.map(|text| screen.line(&plain(&text, false))));
    lines
}

/// The lines of a table, the first of which has the titles; without bars where there is no room.
fn table(rows: &[Row], scale: &str, screen: Screen) -> Vec<String> {
    let wide = |of: fn(&Row) -> Option<f64>| {
        let all = rows.iter().map(|row| span(of(row)).len());
        all.max().unwrap_or_default().max(4)
    };
    let (wait, took) = (wide(|row| row.wait), wide(|row| row.took));
    let titles = [format!("{:>wait$}", "WAIT"), format!("{:>took$}", "TOOK")];
    let bar = (scale, Cut::Never);
    let columns = |bar: Option<_>| {
        let first = [("STATUS", Cut::Never), ("TASK", Cut::Middle)];
        let times = titles.iter().map(|title| (title.as_str(), Cut::Never));
        let all = first.into_iter().chain(times).chain(bar);
        all.chain([("", Cut::End)]).collect::<Vec<_>>()
    };
    let cells = |bars: bool| {
        let cell = |row: &Row| {
            let times = [(row.wait, wait), (row.took, took)];
            let times = times.map(|(time, width)| format!("{:>width$}", span(time)));
            let bar = bars.then(|| row.bar.clone());
            let texts = [row.name.clone()].into_iter().chain(times).chain(bar);
            let texts = texts.chain([row.note.clone()]).map(|text| text_cell(&text));
            [status(row.word, screen)]
                .into_iter()
                .chain(texts)
                .collect()
        };
        rows.iter().map(cell).collect::<Vec<Vec<_>>>()
    };
    let (mut titled, mut filled) = (columns(Some(bar)), cells(true));
    let mut layout = Layout::of_parts(&titled, &filled, screen);
    if screen.width.is_some_and(|width| layout.width() > width) {
        (titled, filled) = (columns(None), cells(false));
        layout = Layout::of_parts(&titled, &filled, screen);
    }
    let titles: Vec<_> = titled.iter().map(|(title, _)| text_cell(title)).collect();
    [titles]
        .iter()
        .chain(&filled)
        .map(|row| layout.line(row))
        .collect()
}

/// The cell of a status; empty for what has none.
fn status(word: &str, screen: Screen) -> Cell {
    match word {
        "" => text_cell(""),
        word => screen.status(word),
    }
}

fn text_cell(text: &str) -> Cell {
    Cell {
        text: plain(text, false).into_owned(),
        colour: None,
    }
}

/// The word for an outcome.
pub(in crate::cli) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "succeeded",
        Outcome::Failure => "failed",
        Outcome::Timeout => "timeout",
        Outcome::Cancelled => "cancelled",
        Outcome::Skipped => "skipped",
        Outcome::Unknown => "running",
    }
}

/// How long a node took from its start to its end.
fn took(node: &RunNode) -> Option<f64> {
    Some(node.init_seconds.unwrap_or_default() + node.run_seconds?)
}

/// Whether a node did not do what it should.
fn has_failed(node: &RunNode) -> bool {
    matches!(node.outcome(), Outcome::Failure | Outcome::Timeout)
}

/// How a node stands; of one that did not begin, and is not to be skipped, nothing is known.
fn word_of(node: &RunNode) -> &'static str {
    match node.outcome() {
        _ if node.reference => "",
        Outcome::Unknown if node.start_time.is_none() => "unknown",
        Outcome::Unknown if node.end_time.is_some() => "vanished",
        outcome => word(outcome),
    }
}

fn head(run: &RunNode, screen: Screen) -> String {
    let word = word_of(run);
    let how = match took(run) {
        Some(took) => format!("{word} in {}", output::seconds(took)),
        None => word.to_owned(),
    };
    let wait = run.wait_seconds.filter(|wait| *wait >= 1.0);
    let wait = wait.map(|wait| format!("  (waited {})", output::seconds(wait)));
    let start = run.start_time.and_then(output::time);
    let start = start.map(|start| format!("  started {start}"));
    let why = match run.outcome() {
        Outcome::Success | Outcome::Unknown => String::new(),
        _ => format!("  {}", why(run)),
    };
    let shape = screen.shape(word).to_string();
    let text = format!(
        "{shape} {}  {}  {how}{}{}{why}",
        run.object,
        run.kind,
        wait.unwrap_or_default(),
        start.unwrap_or_default()
    );
    let text = screen.line(&plain(&text, false));
    match (text.strip_prefix(&shape), paint(word)) {
        (Some(rest), Some(code)) if screen.colour => format!("{}{rest}", painted(&shape, code)),
        _ => text,
    }
}

/// Reason and message of a node.
fn why(node: &RunNode) -> String {
    let both = [node.reason.as_str(), node.message.as_str()];
    let both: Vec<_> = both.into_iter().filter(|text| !text.is_empty()).collect();
    both.join(": ")
}

fn foot(tree: &RunTree, run: &RunNode) -> Vec<String> {
    let mut lines = Vec::new();
    let names = tree.nodes.iter().map(|node| (&node.id, &node.name));
    let names: HashMap<_, _> = names.collect();
    let path = tree.critical_path.iter().filter_map(|id| names.get(id));
    let path: Vec<_> = path.map(|name| name.as_str()).collect();
    if path.len() > 1 {
        let shown = match path.as_slice() {
            [first @ .., last] if path.len() > 8 => {
                format!("{} > ... > {last}", first[..6].join(" > "))
            }
            all => all.join(" > "),
        };
        let of = took(run).map(|took| format!(" of {}", output::seconds(took)));
        let seconds = output::seconds(tree.critical_seconds);
        lines.push(format!(
            "critical path, {seconds}{}: {shown}",
            of.unwrap_or_default()
        ));
    }
    if tree.idle_seconds >= 1.0 {
        let idle = output::seconds(tree.idle_seconds);
        lines.push(format!("nothing ran for {idle}"));
    }
    lines
}

/// What the lines of a tree are made from.
struct Drawing<'a> {
    below: HashMap<&'a str, Vec<&'a RunNode>>,
    bars: Bars,
    all: bool,
}

impl<'a> Drawing<'a> {
    fn of(tree: &'a RunTree, all: bool, screen: Screen) -> Self {
        let mut below: HashMap<&str, Vec<&RunNode>> = HashMap::new();
        for node in tree.nodes.iter().skip(1) {
            below.entry(&node.parent).or_default().push(node);
        }
        let cells = match screen.width {
            Some(..WIDE) => SHORT_BAR,
            _ => BAR,
        };
        let bars = Bars::of(tree, cells, screen.unicode);
        Self { below, bars, all }
    }

    /// Adds the rows of what is below a node, so many levels of it.
    fn below(&self, id: &str, level: usize, depth: u32, rows: &mut Vec<Row>) {
        let (Some(nodes), Some(depth)) = (self.below.get(id), depth.checked_sub(1)) else {
            return;
        };
        let mut same: HashMap<&str, Vec<&RunNode>> = HashMap::new();
        for node in nodes {
            same.entry(&node.name).or_default().push(node);
        }
        for node in nodes {
            match same.get(node.name.as_str()) {
                Some(group) if group.len() > 1 && !self.all => {
                    self.group(group, level, rows);
                    same.remove(node.name.as_str());
                }
                Some(_) => {
                    rows.push(self.row(node, level));
                    let is_leaf = !self.below.contains_key(node.id.as_str());
                    if self.all || (has_failed(node) && is_leaf) {
                        self.steps(node, level + 1, rows);
                    }
                    self.below(&node.id, level + 1, depth, rows);
                }
                None => {}
            }
        }
    }

    /// Adds a row for nodes that share a name, and rows for those of them that failed.
    fn group(&self, nodes: &[&RunNode], level: usize, rows: &mut Vec<Row>) {
        let is = |outcome| {
            nodes
                .iter()
                .filter(|node| node.outcome() == outcome)
                .count()
        };
        let worst_first = [
            Outcome::Failure,
            Outcome::Timeout,
            Outcome::Cancelled,
            Outcome::Unknown,
            Outcome::Success,
            Outcome::Skipped,
        ];
        let found: Vec<_> = worst_first.into_iter().filter(|o| is(*o) > 0).collect();
        let counts = found.iter().map(|o| format!("{} {}", is(*o), word(*o)));
        let largest = |of: fn(&RunNode) -> Option<f64>| {
            let all = nodes.iter().filter_map(|node| of(node));
            all.max_by(f64::total_cmp)
        };
        let name = nodes.first().map_or("", |node| node.name.as_str());
        rows.push(Row {
            word: word(found.first().copied().unwrap_or_default()),
            name: indented(&format!("{name} (x{})", nodes.len()), level),
            wait: largest(|node| node.wait_seconds),
            took: largest(took),
            bar: self.bars.bar(nodes),
            note: counts.collect::<Vec<_>>().join(", "),
        });
        let failed = nodes.iter().filter(|node| has_failed(node));
        for node in failed.take(MOST_FAILED) {
            rows.push(Row {
                name: indented(&node.object, level + 1),
                ..self.row(node, level + 1)
            });
            self.steps(node, level + 2, rows);
        }
    }

    fn row(&self, node: &RunNode, level: usize) -> Row {
        let mut notes = Vec::new();
        if node.retries > 0 {
            let tries = node.retries.saturating_add(1).max(node.attempt);
            notes.push(format!("try {} of {tries}", node.attempt));
        } else if node.attempt > 1 {
            notes.push(format!("try {}", node.attempt));
        }
        match node.outcome() {
            _ if node.reference => notes.push(node.kind.clone()),
            Outcome::Success => {}
            _ => notes.push(why(node)),
        }
        Row {
            word: word_of(node),
            name: indented(&node.name, level),
            wait: node.wait_seconds,
            took: took(node),
            bar: self.bars.bar(&[node]),
            note: notes.join(", "),
        }
    }

    fn steps(&self, node: &RunNode, level: usize, rows: &mut Vec<Row>) {
        rows.extend(node.steps.iter().map(|step| Row {
            word: word(step.outcome()),
            name: indented(&step.name, level),
            wait: None,
            took: step_took(step),
            bar: String::new(),
            note: ended(step),
        }));
    }
}

/// How long a step took.
fn step_took(step: &RunStep) -> Option<f64> {
    let (start, end) = (
        output::time(step.start_time?)?,
        output::time(step.end_time?)?,
    );
    Some(end.duration_since(start).as_secs_f64())
}

/// How a step ended, unless it succeeded.
fn ended(step: &RunStep) -> String {
    let mut parts = Vec::new();
    if step.outcome() != Outcome::Success && !step.reason.is_empty() {
        parts.push(step.reason.clone());
    }
    let code = step.exit_code.filter(|code| *code != 0);
    parts.extend(code.map(|code| format!("exit {code}")));
    if !step.message.is_empty() {
        parts.push(step.message.clone());
    }
    parts.join(", ")
}

fn indented(name: &str, level: usize) -> String {
    format!("{}{}", "  ".repeat(level.min(20)), name)
}

fn span(seconds: Option<f64>) -> String {
    seconds.map_or_else(String::new, output::seconds)
}

#[cfg(test)]
mod tests;
