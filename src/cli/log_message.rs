//! Lines of a log as a server sends them.

use hindsight_logs::Lines;
use hindsight_proto::v1::LogLines;

use super::failure::Failure;

/// The lines of a message. It fails if they are none.
pub(super) fn lines(given: LogLines) -> Result<Lines, Failure> {
    let (first, text) = (given.first_line, given.text.into());
    let lines = Lines::of_differences(first, text, given.times, given.holes);
    lines.map_err(|wrong| Failure::other(format!("the server sent no lines: {wrong}")))
}
