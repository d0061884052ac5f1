//! What the outcome of a request says about its event, and when to try again.

use std::time::Duration;

use jiff::Timestamp;

/// The first pause after a failure, which doubles with each further one.
const FIRST: Duration = Duration::from_millis(250);
/// The longest pause that is ours.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest pause that a receiver can ask for.
const ASKED: Duration = Duration::from_secs(600);

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// An answer with this status, and how long it asks to wait.
    Answered(u16, Option<Duration>),
    /// No request was sent.
    NotSent(String),
    /// A request was sent, and there was no answer to it.
    Unanswered(String),
}

/// What follows for the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is delivered.
    Delivered,
    /// It will never be taken.
    Refused,
    /// The receiver fails at it, which may be because of the event.
    Failing,
    /// The receiver is away or is not set up, whatever the event.
    Away,
}

impl Outcome {
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            Self::NotSent(_) => Verdict::Away,
            Self::Unanswered(_) => Verdict::Failing,
            Self::Answered(status, _) => match status {
                200..=299 => Verdict::Delivered,
                400 | 410 | 413 | 414 | 415 | 422 | 431 => Verdict::Refused,
                300..=399 | 401 | 404 | 405 | 407 | 429 | 502..=504 => Verdict::Away,
                _ => Verdict::Failing,
            },
        }
    }

    /// What it is in words.
    pub(super) fn said(&self) -> String {
        match self {
            Self::Answered(status, _) => format!("the receiver answered {status}"),
            Self::NotSent(why) | Self::Unanswered(why) => why.clone(),
        }
    }

    /// How long to wait after it, at the given number of failures, 1 for the first. `chance` is between
    /// 0 and 1.
    pub(super) fn pause(&self, failures: u32, chance: f64) -> Duration {
        let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let own = doubled.min(LONGEST).mul_f64(0.5 + chance / 2.0);
        match self {
            Self::Answered(_, Some(asked)) => own.max((*asked).min(ASKED)),
            _ => own,
        }
    }
}

/// How long a header `Retry-After` asks to wait: seconds, or until a date.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    let wait = date.timestamp().duration_since(now);
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_becomes_of_the_event() {
        for (status, verdict) in [
            (200, Verdict::Delivered),
            (202, Verdict::Delivered),
            (204, Verdict::Delivered),
            (301, Verdict::Away),
            (400, Verdict::Refused),
            (401, Verdict::Away),
            (403, Verdict::Failing),
            (404, Verdict::Away),
            (408, Verdict::Failing),
            (410, Verdict::Refused),
            (413, Verdict::Refused),
            (429, Verdict::Away),
            (500, Verdict::Failing),
            (503, Verdict::Away),
        ] {
            let outcome = Outcome::Answered(status, None);
            assert_eq!(outcome.verdict(), verdict, "{status}");
        }
        let why = String::new();
        assert_eq!(Outcome::NotSent(why.clone()).verdict(), Verdict::Away);
        assert_eq!(Outcome::Unanswered(why).verdict(), Verdict::Failing);
    }

    #[test]
    fn pauses_grow_to_a_minute_and_are_as_long_as_was_asked() {
        let failed = Outcome::Answered(500, None);
        let millis =
            |outcome: &Outcome, failures, chance| outcome.pause(failures, chance).as_millis();
        assert_eq!(millis(&failed, 1, 1.0), 250);
        assert_eq!(millis(&failed, 1, 0.0), 125);
        assert_eq!(millis(&failed, 3, 1.0), 1_000);
        assert_eq!(millis(&failed, 9, 1.0), 60_000);
        assert_eq!(millis(&failed, u32::MAX, 0.0), 30_000);
        let asked = |seconds| Outcome::Answered(503, Some(Duration::from_secs(seconds)));
        assert_eq!(millis(&asked(5), 1, 0.0), 5_000);
        assert_eq!(millis(&asked(0), 1, 0.0), 125);
        assert_eq!(millis(&asked(86_400), 1, 0.0), 600_000);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "2026-03-01T10:00:00Z".parse().unwrap();
        let wait = |text| retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(wait("7"), Some(7));
        assert_eq!(wait("Sun, 01 Mar 2026 10:02:00 GMT"), Some(120));
        assert_eq!(wait("Sun, 01 Mar 2026 09:00:00 GMT"), Some(0));
        assert_eq!(wait("soon"), None);
    }
}
