//! Keys as text for people: the configuration in effect, and the reference.

use std::fmt::Write as _;

use crate::{Given, Key, Kind, Program};

/// A file that could be given back, each value with the place it came from. Secrets are `***`.
pub(crate) fn tree(keys: &[Key], shown: Vec<Option<String>>, given: &Given) -> String {
    let line = |(key, shown): (&Key, Option<String>)| match shown {
        Some(text) => format!("{} = {}", key.name, toml_value(&text)),
        None => format!("# {} is not set", key.name),
    };
    let lines: Vec<_> = keys.iter().zip(shown).map(line).collect();
    let width = lines.iter().map(|line| line.chars().count()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for (line, key) in lines.iter().zip(keys) {
        let origin = given.origin(key.name);
        writeln!(text, "{line:width$}  # {origin}").expect("a String takes all text");
    }
    text
}

/// Numbers and truth values bare, everything else in quotes.
fn toml_value(text: &str) -> String {
    if text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok() {
        return text.to_owned();
    }
    toml::Value::String(text.to_owned()).to_string()
}

impl Program {
    /// The keys as tables in Markdown, one for each section.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut page = String::new();
        let mut section = "";
        for key in self.keys {
            if key.section != section {
                section = key.section;
                page.push_str(&format!(
                    "\n### {section}\n\n\
                     | Key | Variable | Flag | Default | Meaning |\n|---|---|---|---|---|\n"
                ));
            }
            let default = key.default.map(|text| format!("`{text}`"));
            let value = match key.kind {
                Kind::Switch => String::new(),
                _ => format!(" {}", key.value),
            };
            page.push_str(&format!(
                "| `{}` | `{}` | `--{}{value}` | {} | {}{}{} |\n",
                key.name,
                self.variable(key.name),
                self.flag(key.name),
                default.as_deref().unwrap_or("none"),
                key.help.replace('|', "\\|"),
                if key.kind == Kind::Secret {
                    " Never shown."
                } else {
                    ""
                },
                if key.live {
                    " A change counts without a restart."
                } else {
                    ""
                },
            ));
        }
        page
    }
}
