//! Bars that show when nodes of a tree waited and ran.

use hindsight_proto::v1::{RunNode, RunTree, run_node::Outcome};
use jiff::Timestamp;

use crate::cli::output;

/// Bars for the nodes of a tree.
pub(super) struct Bars {
    /// The time that they stand for: from the first start to the last end.
    time: Option<(Timestamp, Timestamp)>,
    /// How many cells they have.
    cells: usize,
    /// Cells of time before the first step, and of time in steps.
    marks: [char; 2],
}

impl Bars {
    /// Bars of so many cells.
    pub(super) fn of(tree: &RunTree, cells: usize, unicode: bool) -> Self {
        let starts = tree.nodes.iter().filter_map(|node| at(node.start_time));
        let ends = tree.nodes.iter().filter_map(|node| at(node.end_time));
        let last = ends.max().or_else(|| starts.clone().max());
        Self {
            time: starts.min().zip(last).filter(|(start, end)| start < end),
            cells,
            marks: if unicode { ['░', '█'] } else { ['.', '='] },
        }
    }

    /// The bar of nodes.
    pub(super) fn bar(&self, nodes: &[&RunNode]) -> String {
        let [before, within] = self.marks;
        let mut cells = vec![' '; self.cells];
        for node in nodes {
            let Some(start) = at(node.start_time).filter(|_| node.outcome() != Outcome::Skipped)
            else {
                continue;
            };
            let first = self.cell(start, 0.0);
            let ready = self.cell(start, node.init_seconds.unwrap_or_default());
            let last = at(node.end_time).map_or(self.cells - 1, |end| self.cell(end, 0.0));
            for (place, cell) in cells.iter_mut().enumerate() {
                if (ready..=last).contains(&place) {
                    *cell = within;
                } else if (first..=last).contains(&place) && *cell == ' ' {
                    *cell = before;
                }
            }
        }
        cells.into_iter().collect::<String>().trim_end().to_owned()
    }

    /// What is above the bars: how long after the first start their end is.
    pub(super) fn scale(&self) -> String {
        let Some((start, end)) = self.time else {
            return String::new();
        };
        let whole = output::seconds(end.duration_since(start).as_secs_f64());
        format!("0{whole:>width$}", width = self.cells - 1)
    }

    /// Which character of a bar a moment is, so many seconds after `time`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a place in a bar is small, and at least 0"
    )]
    fn cell(&self, time: Timestamp, after: f64) -> usize {
        let Some((start, end)) = self.time else {
            return 0;
        };
        let whole = end.duration_since(start).as_secs_f64();
        let passed = time.duration_since(start).as_secs_f64() + after;
        ((passed / whole * self.cells as f64) as usize).min(self.cells - 1)
    }
}

fn at(time: Option<prost_types::Timestamp>) -> Option<Timestamp> {
    time.and_then(output::time)
}
