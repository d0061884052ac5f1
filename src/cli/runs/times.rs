//! How times are told: as long ago, by the clock, or both.

use clap::ValueEnum;
use hindsight_filter::words::Now;
use jiff::{Timestamp, tz::TimeZone};

use crate::cli::output;

/// Forms of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TimeForm {
    /// By the local clock, and how long ago
    Both,
    /// How long ago
    Relative,
    /// By the local clock
    Local,
    /// By the clock of UTC
    Utc,
    /// RFC 3339, in UTC
    Iso,
}

/// Tells times in one form.
#[derive(Debug, Clone)]
pub(super) struct Times {
    now: Now,
    form: TimeForm,
    /// Whether the form was asked for.
    is_chosen: bool,
    is_terminal: bool,
}

impl Times {
    pub(super) fn new(now: Now, form: Option<TimeForm>, is_terminal: bool) -> Self {
        let usual = match is_terminal {
            true => TimeForm::Both,
            false => TimeForm::Iso,
        };
        Self {
            now,
            form: form.unwrap_or(usual),
            is_chosen: form.is_some(),
            is_terminal,
        }
    }

    /// The same in less room, unless the form was asked for.
    pub(super) fn shorter(&self) -> Self {
        let form = match self.is_chosen {
            true => self.form,
            false => TimeForm::Relative,
        };
        Self {
            form,
            ..self.clone()
        }
    }

    /// A time; a dash on terminals, and nothing elsewhere, if there is none.
    pub(super) fn time(&self, time: Option<Timestamp>) -> String {
        let Some(time) = time else {
            return self.none();
        };
        let ago = || output::ago(Some(time), self.now.time);
        match self.form {
            TimeForm::Both => format!("{} ({})", self.clock(time, &self.now.zone), ago()),
            TimeForm::Relative => ago(),
            TimeForm::Local => self.clock(time, &self.now.zone),
            TimeForm::Utc => self.clock(time, &TimeZone::UTC),
            TimeForm::Iso => time.to_string(),
        }
    }

    /// A length of time in seconds; in words on terminals.
    pub(super) fn length(&self, seconds: Option<f64>) -> String {
        match seconds {
            None => self.none(),
            Some(seconds) if self.is_terminal => output::seconds(seconds),
            Some(seconds) => seconds.to_string(),
        }
    }

    fn none(&self) -> String {
        String::from(if self.is_terminal { "-" } else { "" })
    }

    /// By the clock of a zone, with the date unless that is today's.
    fn clock(&self, time: Timestamp, zone: &TimeZone) -> String {
        let [then, today] = [time, self.now.time].map(|time| time.to_zoned(zone.clone()));
        let form = match then.date() == today.date() {
            true => "%H:%M:%S",
            false => "%Y-%m-%d %H:%M:%S",
        };
        then.strftime(form).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_date_unless_it_is_of_today() {
        let now = Now {
            time: "2026-03-02T17:00:00Z".parse().unwrap(),
            zone: TimeZone::get("Asia/Kolkata").unwrap(),
        };
        let today = Some("2026-03-02T14:02:11Z".parse().unwrap());
        let before = Some("2026-03-01T01:00:00.5Z".parse().unwrap());
        for (form, of_today, of_before) in [
            (
                TimeForm::Both,
                "19:32:11 (2h ago)",
                "2026-03-01 06:30:00 (39h ago)",
            ),
            (TimeForm::Relative, "2h ago", "39h ago"),
            (TimeForm::Local, "19:32:11", "2026-03-01 06:30:00"),
            (TimeForm::Utc, "14:02:11", "2026-03-01 01:00:00"),
            (
                TimeForm::Iso,
                "2026-03-02T14:02:11Z",
                "2026-03-01T01:00:00.5Z",
            ),
        ] {
            let times = Times::new(now.clone(), Some(form), true);
            assert_eq!(
                (times.time(today), times.time(before)),
                (of_today.into(), of_before.into())
            );
            assert_eq!(times.shorter().time(today), of_today);
        }
        let terminal = Times::new(now.clone(), None, true);
        assert_eq!(terminal.time(today), "19:32:11 (2h ago)");
        assert_eq!(terminal.shorter().time(today), "2h ago");
        assert_eq!(
            (terminal.length(Some(421.0)), terminal.time(None)),
            ("7m01s".into(), "-".into())
        );
        let pipe = Times::new(now, None, false);
        assert_eq!(pipe.time(before), "2026-03-01T01:00:00.5Z");
        assert_eq!(
            (pipe.length(Some(421.25)), pipe.length(None)),
            ("421.25".into(), String::new())
        );
    }
}
