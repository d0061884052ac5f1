//! Bars beside measures, for comparison at a glance.

use std::collections::HashMap;

use hindsight_proto::v1::AggregateResponse;
use prost_types::value::Kind;

use super::{field, said};
use crate::cli::terminal::Screen;

/// Cells of a whole bar.
const CELLS: usize = 10;
/// What has bars: counts, as shares of the largest, and the share of runs that succeeded.
const MEASURES: [&str; 2] = ["count", "success_rate"];

/// Draws bars for people who look at several groups.
#[derive(Debug)]
pub(super) struct Bars {
    unicode: bool,
    /// The largest count.
    most: f64,
    /// Cells of the widest text of each measure with bars; none for a single group.
    widths: HashMap<&'static str, usize>,
}

impl Bars {
    pub(super) fn of(reply: &AggregateResponse, screen: Screen) -> Self {
        let groups = || reply.groups.iter();
        let counts = groups().filter_map(|group| number(field(group.measures.as_ref(), "count")));
        let width = |name| {
            let texts = groups().map(|group| said(group, name).chars().count());
            (name, texts.max().unwrap_or(0))
        };
        let has_bars = reply.groups.len() > 1;
        Self {
            unicode: screen.unicode,
            most: counts.fold(0.0, f64::max),
            widths: MEASURES
                .into_iter()
                .filter(|_| has_bars)
                .map(width)
                .collect(),
        }
    }

    /// What people read of a measure: its text, and a bar beside it where it has one.
    pub(super) fn beside(&self, name: &str, value: Option<&Kind>, text: String) -> String {
        let (Some(number), Some(width)) = (number(value), self.widths.get(name)) else {
            return text;
        };
        let share = match name {
            "count" => number / self.most.max(1.0),
            _ => number,
        };
        format!("{text:>width$} {}", self.bar(share))
    }

    /// A bar for a share of one; of a share above zero at least a cell.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share is between 0 and 1"
    )]
    fn bar(&self, share: f64) -> String {
        let cells = (share.clamp(0.0, 1.0) * CELLS as f64).round() as usize;
        let cells = cells.max(usize::from(share > 0.0));
        let mark = if self.unicode { "█" } else { "=" };
        mark.repeat(cells)
    }
}

fn number(value: Option<&Kind>) -> Option<f64> {
    match value {
        Some(Kind::NumberValue(number)) => Some(*number),
        _ => None,
    }
}
