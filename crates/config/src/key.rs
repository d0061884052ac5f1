//! What is known of a key, and of the program that it belongs to.

/// A thing that can be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Name in the file, in `snake_case`; flags and variables are named after it.
    pub name: &'static str,
    /// Heading that it stands under, in help and reference.
    pub section: &'static str,
    /// What it is; one paragraph.
    pub help: &'static str,
    /// Text of the default; `None` if there is nothing unless it is set.
    pub default: Option<&'static str>,
    /// What stands for a value in help, such as `ADDRESS`.
    pub value: &'static str,
    /// How its text is given and shown.
    pub kind: Kind,
    /// Whether a change counts without a restart.
    pub live: bool,
}

/// How the text of a value is given and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text or a number.
    Text,
    /// A text that may begin with `-`.
    Signed,
    /// `true` or `false`; the flag alone means `true`.
    Switch,
    /// Texts with commas between them; in the file also an array.
    List,
    /// A text that is never shown, and may begin with `-`.
    Secret,
}

/// A program and the names of its keys.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The keys, as [`Settings::KEYS`](crate::Settings::KEYS).
    pub keys: &'static [Key],
    /// What its variables begin with, such as `HINDSIGHT_`.
    pub variables: &'static str,
    /// What its flags begin with, where they stand beside those of another program.
    pub flags: &'static str,
    /// The heading of its flags, if they have one in common.
    pub heading: Option<&'static str>,
    /// Keys that have no flag, because another program in the same process decides about them.
    pub without_flags: &'static [&'static str],
    /// Arrays of tables in its file, which the program reads by [`Reader::tables`](crate::Reader::tables).
    pub tables: &'static [&'static str],
    /// Variables that begin like its own and belong to others; one that ends with `_` stands for
    /// all that begin so.
    pub foreign: &'static [&'static str],
    /// Beginnings of variables that are passed on as they are.
    pub passed: &'static [&'static str],
}

impl Program {
    /// The key of this name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The variable of a key.
    #[must_use]
    pub fn variable(&self, key: &str) -> String {
        format!("{}{}", self.variables, key.to_uppercase())
    }

    /// The flag of a key, without its dashes.
    #[must_use]
    pub fn flag(&self, key: &str) -> String {
        format!("{}{}", self.flags, key.replace('_', "-"))
    }
}
