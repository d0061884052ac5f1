//! What a request for a log asks for: `PodLogOptions` as query parameters.

use jiff::{SignedDuration, Timestamp};

use crate::{
    refusal::{About, Refusal},
    route::Query,
};

/// What of a log is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) container: String,
    pub(super) follow: bool,
    pub(super) previous: bool,
    pub(super) timestamps: bool,
    /// Only lines of this second or later.
    pub(super) since: Option<Timestamp>,
    pub(super) tail: Option<usize>,
    pub(super) limit: Option<usize>,
}

impl Options {
    /// Reads the parameters of a request about the pod `name`.
    ///
    /// It fails with 400 for what cannot be read, and 422 for what does not go together.
    pub(super) fn read(query: &Query, name: &str, now: Timestamp) -> Result<Self, Refusal> {
        let about = About {
            group: "",
            plural: "pods",
            kind: "PodLogOptions",
            name,
        };
        let invalid = |field: &str, why: &str| Refusal::invalid(about, field, why);
        let number = |field: &str| match query.text(field) {
            "" => Ok(None),
            text => text.parse::<i64>().map(Some).map_err(|_not_a_number| {
                Refusal::bad_request(format!(
                    "strconv.ParseInt: parsing \"{text}\": invalid syntax"
                ))
            }),
        };
        let (seconds, tail, limit) = (
            number("sinceSeconds")?,
            number("tailLines")?,
            number("limitBytes")?,
        );
        let time = match query.text("sinceTime") {
            "" => None,
            text => Some(text.parse::<Timestamp>().map_err(|_not_a_time| {
                Refusal::bad_request(format!("parsing time \"{text}\": cannot parse"))
            })?),
        };
        if let Some(tail) = tail.filter(|tail| *tail < 0) {
            let why = format!("Invalid value: {tail}: must be greater than or equal to 0");
            return Err(invalid("tailLines", &why));
        }
        if let Some(limit) = limit.filter(|limit| *limit < 1) {
            let why = format!("Invalid value: {limit}: must be greater than 0");
            return Err(invalid("limitBytes", &why));
        }
        if time.is_some() && seconds.is_some() {
            let why = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
            return Err(invalid("", why));
        }
        if let Some(seconds) = seconds.filter(|seconds| *seconds < 1) {
            let why = format!("Invalid value: {seconds}: must be greater than 0");
            return Err(invalid("sinceSeconds", &why));
        }
        let ago = |seconds| {
            now.saturating_sub(SignedDuration::from_secs(seconds))
                .unwrap_or(Timestamp::MIN)
        };
        let whole = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
        let count = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            container: query.text("container").to_owned(),
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since: time.map(whole).or(seconds.map(ago)),
            tail: tail.map(count),
            limit: limit.map(count),
        })
    }
}
