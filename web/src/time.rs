//! Times and durations as pages show them.

use askama::Template;
use askama::filters::HtmlSafe;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

/// The present, and the zone that times are shown in.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    pub(crate) now: Timestamp,
    pub(crate) zone: TimeZone,
}

/// A time with the clock's, the date unless it is today's, and how long ago that is.
#[derive(Debug, Clone, Template)]
#[template(
    source = r#"<time datetime="{{ iso }}" title="{{ full }}">{{ clock }} <span class="ago">{{ ago }}</span></time>"#,
    ext = "html"
)]
pub(crate) struct When {
    iso: String,
    full: String,
    clock: String,
    ago: String,
}

impl HtmlSafe for When {}

impl Clock {
    /// A time as it is shown.
    pub(crate) fn when(&self, time: Timestamp) -> When {
        let [then, today] = [time, self.now].map(|time| time.to_zoned(self.zone.clone()));
        let form = match (then.date() == today.date(), then.year() == today.year()) {
            (true, _) => "%H:%M:%S",
            (false, true) => "%b %-d %H:%M",
            (false, false) => "%Y-%m-%d %H:%M",
        };
        When {
            iso: time.to_string(),
            full: then.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
            clock: then.strftime(form).to_string(),
            ago: ago(self.now.duration_since(time)),
        }
    }

    /// A time of a message, if it has one.
    pub(crate) fn when_of(&self, time: Option<prost_types::Timestamp>) -> Option<When> {
        timestamp(time).map(|time| self.when(time))
    }
}

/// A time of a message.
pub(crate) fn timestamp(time: Option<prost_types::Timestamp>) -> Option<Timestamp> {
    let time = time?;
    Timestamp::new(time.seconds, time.nanos).ok()
}

/// Seconds from one time to another.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

fn ago(age: SignedDuration) -> String {
    let seconds = age.as_secs();
    match seconds {
        ..0 => format!("in {}", length(-age.as_secs_f64())),
        0..60 => "just now".to_owned(),
        60..7_200 => format!("{} min ago", seconds / 60),
        7_200..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A duration in two units at most.
pub(crate) fn length(seconds: f64) -> String {
    let took = SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::MAX);
    let whole = took.as_secs();
    match whole {
        ..0 => format!("{whole} s"),
        0..10 => format!("{seconds:.1} s"),
        10..60 => format!("{whole} s"),
        60..3_600 => format!("{} m {:02} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {:02} m", whole / 3_600, whole / 60 % 60),
        _ => format!("{} d {:02} h", whole / 86_400, whole / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_date_unless_it_is_of_today() {
        let clock = Clock {
            now: "2026-03-02T17:00:00Z".parse().unwrap(),
            zone: TimeZone::get("Asia/Kolkata").unwrap(),
        };
        let shown = |time: &str| clock.when(time.parse().unwrap());
        let today = shown("2026-03-02T14:02:11Z");
        assert_eq!(
            (today.clock.as_str(), today.ago.as_str()),
            ("19:32:11", "2 h ago")
        );
        assert_eq!(shown("2026-02-27T14:02:11Z").clock, "Feb 27 19:32");
        assert_eq!(shown("2025-02-27T14:02:11Z").clock, "2025-02-27 19:32");
        assert!(
            today
                .to_string()
                .starts_with("<time datetime=\"2026-03-02T14:02:11Z\"")
        );
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, text) in [
            (0.25, "0.2 s"),
            (42.0, "42 s"),
            (421.0, "7 m 01 s"),
            (7_020.0, "1 h 57 m"),
            (200_000.0, "2 d 07 h"),
        ] {
            assert_eq!(length(seconds), text);
        }
    }
}
