//! What kind of thing went wrong, and what each kind is on the wire.
//!
//! Rooms own their errors and yield an [`ErrorKind`]; the edges translate by the table
//! here and nowhere else. No room's error lives in this file.

use std::{error::Error, time::Duration};

/// A decision that a caller can take about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is malformed; sending it again changes nothing.
    Invalid,
    /// What was asked for is not there.
    Missing,
    /// What was to be created is there already.
    Exists,
    /// The thing changed since the etag was read; read it again, then retry.
    StaleEtag,
    /// No credentials, or none that hold.
    Unauthenticated,
    /// The caller is known and may not do this.
    Denied,
    /// The request or its answer is larger than the limit.
    TooLarge,
    /// A budget is spent: a filter that reads too much, too many callers at once.
    Exhausted,
    /// Something this server needs does not answer; retry.
    Unavailable,
    /// The deadline passed before the work was done.
    Timeout,
    /// The caller went away.
    Cancelled,
    /// Not offered by this server.
    Unsupported,
    /// A broken invariant; the caller can do nothing about it.
    Internal,
    /// What was stored is not there any more, or damaged; an operator has to bring it back.
    Lost,
    /// The place to go on from is too old; begin anew.
    Expired,
}

impl ErrorKind {
    /// Every kind, in the order of the table.
    pub const ALL: [Self; 15] = [
        Self::Invalid,
        Self::Missing,
        Self::Exists,
        Self::StaleEtag,
        Self::Unauthenticated,
        Self::Denied,
        Self::TooLarge,
        Self::Exhausted,
        Self::Unavailable,
        Self::Timeout,
        Self::Cancelled,
        Self::Unsupported,
        Self::Internal,
        Self::Lost,
        Self::Expired,
    ];

    /// Number of the gRPC code.
    #[must_use]
    pub const fn grpc_code(self) -> i32 {
        match self {
            Self::Cancelled => 1,
            Self::Invalid => 3,
            Self::Timeout => 4,
            Self::Missing => 5,
            Self::Exists => 6,
            Self::Denied => 7,
            Self::TooLarge | Self::Exhausted => 8,
            Self::StaleEtag => 9,
            Self::Expired => 11,
            Self::Unsupported => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
            Self::Lost => 15,
            Self::Unauthenticated => 16,
        }
    }

    /// Name of the gRPC code, as in `NOT_FOUND`.
    #[must_use]
    pub const fn grpc_name(self) -> &'static str {
        grpc_name(self.grpc_code())
    }

    /// Status of an HTTP answer: that of the code, except that what is too large is told apart
    /// from what may be tried again later.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::TooLarge => 413,
            _ => http_status(self.grpc_code()),
        }
    }
}

/// The HTTP status that gateways of gRPC services answer for the code with this number, and
/// that clients of Tekton Results know: a stale etag is 400, a spent budget 429. What is out of range
/// is 410 and not 400: it is only ever a place in a feed that has expired.
#[must_use]
pub const fn http_status(code: i32) -> u16 {
    match code {
        0 => 200,
        1 => 499,
        3 | 9 => 400,
        4 => 504,
        5 => 404,
        6 | 10 => 409,
        7 => 403,
        8 => 429,
        11 => 410,
        12 => 501,
        14 => 503,
        16 => 401,
        _ => 500,
    }
}

/// Name of the gRPC code with this number; `UNKNOWN` for numbers that are no code.
#[must_use]
pub const fn grpc_name(code: i32) -> &'static str {
    match code {
        0 => "OK",
        1 => "CANCELLED",
        3 => "INVALID_ARGUMENT",
        4 => "DEADLINE_EXCEEDED",
        5 => "NOT_FOUND",
        6 => "ALREADY_EXISTS",
        7 => "PERMISSION_DENIED",
        8 => "RESOURCE_EXHAUSTED",
        9 => "FAILED_PRECONDITION",
        10 => "ABORTED",
        11 => "OUT_OF_RANGE",
        12 => "UNIMPLEMENTED",
        13 => "INTERNAL",
        14 => "UNAVAILABLE",
        15 => "DATA_LOSS",
        16 => "UNAUTHENTICATED",
        _ => "UNKNOWN",
    }
}

/// An error that knows its kind.
pub trait HasKind {
    /// What a caller can decide about this error.
    fn kind(&self) -> ErrorKind;

    /// The bare reason, without what was not done because of it; where clients look for it.
    fn reason(&self) -> Option<&str> {
        None
    }

    /// When it may be tried again, where that is known.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

/// The texts of `error` and of everything that caused it, outermost first, joined by `: `.
///
/// Errors do not print their source themselves; this is the one place that does. A cause that
/// is said already is not said again: some crates repeat it in their own text.
#[must_use]
pub fn report(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{said}")]
    struct Layer {
        said: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(said: &[&'static str]) -> Layer {
        let (first, rest) = said.split_first().unwrap();
        let source = (!rest.is_empty()).then(|| Box::new(layers(rest)));
        Layer {
            said: first,
            source,
        }
    }

    #[test]
    fn a_report_names_every_cause_once() {
        assert_eq!(report(&layers(&["store is away"])), "store is away");
        assert_eq!(
            report(&layers(&["store is away", "connect", "refused"])),
            "store is away: connect: refused"
        );
        assert_eq!(
            report(&layers(&["away", "away", "refused"])),
            "away: refused"
        );
        assert_eq!(
            report(&layers(&["connect: refused", "refused", "by the peer"])),
            "connect: refused: by the peer"
        );
    }

    #[test]
    fn every_kind_has_a_code_an_http_status_and_a_place_in_all() {
        let table: Vec<_> = ErrorKind::ALL
            .iter()
            .map(|kind| (kind.grpc_code(), kind.http_status()))
            .collect();
        assert_eq!(
            table,
            [
                (3, 400),
                (5, 404),
                (6, 409),
                (9, 400),
                (16, 401),
                (7, 403),
                (8, 413),
                (8, 429),
                (14, 503),
                (4, 504),
                (1, 499),
                (12, 501),
                (13, 500),
                (15, 500),
                (11, 410),
            ]
        );
        for (position, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, position, "{kind:?} is out of order");
        }
    }
}
