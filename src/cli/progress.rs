//! How far a long command is: a bar on standard error, on terminals alone.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar for so many `what`, with its rate and the time that is left.
pub(super) fn bar(what: &'static str, total: u64) -> ProgressBar {
    let template = "{msg:12} {bar:30} {pos}/{len}, {per_sec}, {eta} left";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_e| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style).with_message(what)
}
