//! Drawings of times: a scale on which long idle gaps are folded, and bars on it.

use std::fmt::{self, Write as _};

use askama::filters::HtmlSafe;

/// Width of a folded gap, in percent.
const FOLDED: f64 = 4.0;
/// A gap is folded if it is longer than this part of the whole, and than so many seconds.
const LONG_SHARE: f64 = 0.15;
const LONG_SECONDS: f64 = 60.0;
/// Narrowest bar, in percent.
const NARROWEST: f64 = 0.35;
/// Most marks of an axis.
const MOST_MARKS: f64 = 6.0;
/// Distances between marks, in seconds.
const DISTANCES: [f64; 18] = [
    0.1,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
];

/// Seconds since the beginning to places from 0 to 100.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    total: f64,
    /// Idle times that are drawn narrow, in order.
    folded: Vec<(f64, f64)>,
}

/// A part of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bar {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) class: &'static str,
}

/// A mark of the axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub(crate) at: f64,
    pub(crate) text: String,
}

impl Scale {
    /// A scale of so many seconds with these idle times.
    pub(crate) fn new(total: f64, gaps: &[(f64, f64)]) -> Self {
        let total = if total.is_finite() {
            total.max(0.001)
        } else {
            1.0
        };
        let is_long =
            |from: f64, to: f64| to - from > LONG_SECONDS && to - from > total * LONG_SHARE;
        let mut folded: Vec<_> = gaps
            .iter()
            .copied()
            .filter(|&(from, to)| from >= 0.0 && to <= total && is_long(from, to))
            .collect();
        folded.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { total, folded }
    }

    /// Where a time is, from 0 to 100.
    pub(crate) fn at(&self, seconds: f64) -> f64 {
        let seconds = seconds.clamp(0.0, self.total);
        let hidden: f64 = self.folded.iter().map(|(from, to)| to - from).sum();
        let narrow = FOLDED * self.folded.len() as f64;
        let per_second = (100.0 - narrow) / (self.total - hidden).max(0.001);
        let mut place = seconds * per_second;
        for &(from, to) in &self.folded {
            if seconds > from {
                let inside = seconds.min(to) - from;
                place += inside / (to - from) * FOLDED - inside * per_second;
            }
        }
        place.clamp(0.0, 100.0)
    }

    /// The folded gaps, each with its length.
    pub(crate) fn folds(&self) -> Vec<Mark> {
        let folds = self.folded.iter().map(|&(from, to)| Mark {
            at: f64::midpoint(self.at(from), self.at(to)),
            text: short(to - from),
        });
        folds.collect()
    }

    /// Marks at round times.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        let hidden: f64 = self.folded.iter().map(|(from, to)| to - from).sum();
        let shown = self.total - hidden;
        let distance = DISTANCES
            .into_iter()
            .find(|distance| shown / distance <= MOST_MARKS)
            .unwrap_or(shown / MOST_MARKS);
        let mut marks: Vec<Mark> = Vec::new();
        let mut seconds = 0.0;
        while seconds <= self.total && marks.len() < 40 {
            let at = self.at(seconds);
            let is_folded = |&(from, to): &(f64, f64)| seconds > from && seconds < to;
            let is_near = marks.last().is_some_and(|last| at - last.at < 7.0);
            if !self.folded.iter().any(is_folded) && !is_near && at < 95.0 {
                marks.push(Mark {
                    at,
                    text: short(seconds),
                });
            }
            seconds += distance;
            if let Some(&(_, to)) = self.folded.iter().find(|gap| is_inside(seconds, **gap)) {
                seconds = (to / distance).ceil() * distance;
            }
        }
        marks
    }

    /// A row of bars, and the folded gaps behind them.
    pub(crate) fn track(&self, bars: &[Bar]) -> Track {
        let mut drawn = String::new();
        for &(from, to) in &self.folded {
            rect(&mut drawn, self.at(from), self.at(to), "fold");
        }
        for bar in bars {
            rect(&mut drawn, self.at(bar.from), self.at(bar.to), bar.class);
        }
        Track(drawn)
    }
}

fn is_inside(seconds: f64, (from, to): (f64, f64)) -> bool {
    seconds > from && seconds < to
}

fn rect(drawn: &mut String, from: f64, to: f64, class: &'static str) {
    let width = (to - from).max(NARROWEST);
    let from = from.min(100.0 - width);
    let written = write!(
        drawn,
        r#"<rect class="{class}" x="{from:.2}%" width="{width:.2}%" y="3" height="12" rx="2"/>"#
    );
    debug_assert!(written.is_ok(), "texts take everything");
}

/// A time of an axis in one unit, or two where one is not round.
fn short(seconds: f64) -> String {
    let whole = seconds.round();
    match whole {
        _ if seconds < 10.0 && (seconds - whole).abs() > 0.01 => format!("{seconds:.1} s"),
        ..60.0 => format!("{whole} s"),
        60.0..3_600.0 if whole % 60.0 >= 1.0 => {
            format!("{} m {:02} s", (whole / 60.0).floor(), whole % 60.0)
        }
        60.0..3_600.0 => format!("{} m", whole / 60.0),
        3_600.0..172_800.0 if whole % 3_600.0 >= 60.0 => {
            let minutes = (whole % 3_600.0 / 60.0).floor();
            format!("{} h {minutes:02} m", (whole / 3_600.0).floor())
        }
        3_600.0..172_800.0 => format!("{} h", (whole / 3_600.0).floor()),
        _ => format!("{} d", (whole / 86_400.0).round()),
    }
}

/// Bars of one row, which hold nothing but numbers and names of classes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Track(String);

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"<svg class="track" width="100%" height="18" aria-hidden="true">{}</svg>"#,
            self.0
        )
    }
}

impl HtmlSafe for Track {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_proportional_unless_a_long_gap_is_folded() {
        let plain = Scale::new(200.0, &[(10.0, 20.0)]);
        assert_eq!(
            [0.0, 50.0, 200.0, 300.0].map(|s| plain.at(s)),
            [0.0, 25.0, 100.0, 100.0]
        );
        let folded = Scale::new(8_000.0, &[(400.0, 7_600.0)]);
        let places = [0.0, 400.0, 7_600.0, 8_000.0].map(|s| folded.at(s).round());
        assert_eq!(places, [0.0, 48.0, 52.0, 100.0]);
        assert_eq!(
            folded.folds(),
            [Mark {
                at: 50.0,
                text: "2 h".to_owned()
            }]
        );
    }

    #[test]
    fn marks_are_at_round_times_and_apart() {
        let texts = |scale: &Scale| -> Vec<String> {
            scale.marks().into_iter().map(|mark| mark.text).collect()
        };
        assert_eq!(texts(&Scale::new(421.0, &[])), ["0 s", "2 m", "4 m", "6 m"]);
        let folded = Scale::new(8_000.0, &[(400.0, 7_600.0)]);
        let marks = folded.marks();
        assert!(marks.len() == 3 && marks.windows(2).all(|two| two[1].at - two[0].at >= 7.0));
        for total in [0.0, 0.5, 1e9, f64::INFINITY, f64::NAN] {
            assert!(!Scale::new(total, &[]).marks().is_empty());
        }
    }

    #[test]
    fn a_bar_is_never_too_narrow_to_be_seen() {
        let bar = Bar {
            from: 100.0,
            to: 100.0,
            class: "succeeded",
        };
        let track = Scale::new(100.0, &[]).track(&[bar]).to_string();
        assert!(
            track.contains(r#"class="succeeded" x="99.65%" width="0.35%""#),
            "{track}"
        );
    }
}
