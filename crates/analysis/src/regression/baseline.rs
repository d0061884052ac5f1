//! The durations that a run is compared with. All are logarithms of milliseconds.

use std::collections::VecDeque;

const DAY: i64 = 86_400;

/// How many of the latest runs are kept.
const LATEST: usize = 120;

/// How many runs are kept for an hour of the day, and at most of one day.
const HOURLY: usize = 60;
const HOURLY_OF_DAY: usize = 12;

/// How many runs a reference has at least, and how much time it covers.
const LEAST: usize = 30;
const LEAST_TIME: i64 = 2 * DAY;

/// How many days runs of one time of day come from at least, less one.
const LEAST_DAYS: i64 = 3;

#[derive(Debug, Clone, Copy)]
struct Entry {
    time: i64,
    duration: f64,
}

/// Runs of the past.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    latest: VecDeque<Entry>,
    hours: [VecDeque<Entry>; 24],
}

impl Baseline {
    pub(super) fn add(&mut self, time: i64, duration: f64) {
        let entry = Entry { time, duration };
        if self.latest.len() == LATEST {
            self.latest.pop_front();
        }
        self.latest.push_back(entry);
        let hour = &mut self.hours[hour(time)];
        let today = hour
            .iter()
            .rev()
            .take_while(|it| day(it.time) == day(time))
            .count();
        if today < HOURLY_OF_DAY {
            if hour.len() == HOURLY {
                hour.pop_front();
            }
            hour.push_back(entry);
        }
    }

    /// Puts the durations with which a run at `time` is compared into `reference`; `false` if there
    /// are too few of them.
    pub(super) fn reference(&self, time: i64, reference: &mut Vec<f64>) -> bool {
        reference.clear();
        let near = [23, 0, 1].map(|shift| &self.hours[(hour(time) + shift) % 24]);
        let times = || {
            near.iter()
                .flat_map(|hour| [hour.front(), hour.back()])
                .flatten()
                .map(|it| it.time)
        };
        let days = times().max().map_or(0, day) - times().min().map_or(0, day);
        if days >= LEAST_DAYS && near.iter().map(|hour| hour.len()).sum::<usize>() >= LEAST {
            reference.extend(
                near.iter()
                    .flat_map(|hour| hour.iter())
                    .map(|it| it.duration),
            );
            return true;
        }
        let covered = match (self.latest.front(), self.latest.back()) {
            (Some(first), Some(last)) => last.time.saturating_sub(first.time),
            _ => 0,
        };
        if self.latest.len() >= LEAST && covered >= LEAST_TIME {
            reference.extend(self.latest.iter().map(|it| it.duration));
        }
        !reference.is_empty()
    }

    /// Moves all durations to a new level.
    pub(super) fn shift(&mut self, by: f64) {
        for entry in self
            .latest
            .iter_mut()
            .chain(self.hours.iter_mut().flatten())
        {
            entry.duration += by;
        }
    }
}

fn hour(time: i64) -> usize {
    usize::try_from(time.rem_euclid(DAY) / 3600).unwrap_or(0)
}

fn day(time: i64) -> i64 {
    time.div_euclid(DAY)
}
