//! What is said of one thing that can be configured.

/// One thing that can be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Name in the file.
    pub name: &'static str,
    /// Name of the environment variable.
    pub env: &'static str,
    /// Name of the flag, without the dashes.
    pub flag: &'static str,
    /// What a value looks like, as in `ADDRESS`.
    pub value: &'static str,
    /// What it is for; one paragraph.
    pub help: &'static str,
    /// Text of the default; `None` when there is nothing unless it is set.
    pub default: Option<&'static str>,
    /// Whether the whole value must never be shown.
    pub secret: bool,
}

impl Key {
    /// Whether the flag alone, without a value, means yes.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.value == "BOOL"
    }
}
