//! The name of a database. Whether it is there, only the store finds out.

use std::{fmt, str::FromStr};

use hindsight_config::{BadValue, MASK, Secret, Value};

const WANT: &str = "`sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`";

/// Where results and records are kept. `Debug` and `Display` hide the password.
#[derive(Clone, PartialEq, Eq)]
pub enum DbUrl {
    /// A file of SQLite.
    Sqlite {
        /// Relative to the working directory, unless it begins with `/`.
        path: String,
    },
    /// A database of PostgreSQL.
    Postgres {
        /// As it was given, with its password.
        url: Secret,
    },
}

impl DbUrl {
    /// The URL with its password, for the store to open. Do not log it.
    #[must_use]
    pub fn expose(&self) -> String {
        match self {
            Self::Sqlite { path } => format!("sqlite:{path}"),
            Self::Postgres { url } => url.expose().to_owned(),
        }
    }
}

impl FromStr for DbUrl {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            return sqlite(text, path.strip_prefix("//").unwrap_or(path));
        }
        for scheme in ["postgres://", "postgresql://"] {
            if let Some(rest) = text.strip_prefix(scheme) {
                return postgres(text, rest);
            }
        }
        Err(BadValue::not_valid(&masked(text), "database", WANT))
    }
}

fn sqlite(text: &str, path: &str) -> Result<DbUrl, BadValue> {
    if path.is_empty() {
        return Err(BadValue::new(format!(
            "`{text}` names no file; want `sqlite:hindsight.db`"
        )));
    }
    if path == ":memory:" {
        return Err(BadValue::new(format!(
            "`{text}` would forget everything when the server stops; name a file, as in \
             `sqlite:hindsight.db`"
        )));
    }
    if path.contains(['?', '\0']) {
        return Err(BadValue::new(format!(
            "`{text}` has options after its path, and there are none; want `sqlite:PATH` alone"
        )));
    }
    Ok(DbUrl::Sqlite {
        path: path.to_owned(),
    })
}

fn postgres(text: &str, rest: &str) -> Result<DbUrl, BadValue> {
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let server = place.split('/').next().unwrap_or_default();
    let host = server.rsplit('@').next().unwrap_or_default();
    let names_host = !host.is_empty() && !host.starts_with(':')
        || options.split('&').any(|option| option.starts_with("host="));
    if !names_host {
        return Err(BadValue::new(format!(
            "`{}` names no host; want {WANT}",
            masked(text)
        )));
    }
    Ok(DbUrl::Postgres {
        url: Secret::new(text),
    })
}

/// `text` without what may be a password: between the first `:` of the user's part and the
/// last `@`, and after `password=`. Rather hides too much than too little.
fn masked(text: &str) -> String {
    let mut shown = text.to_owned();
    let user = shown.find("://").map_or(0, |at| at + 3);
    if let Some(end) = shown.rfind('@')
        && user < end
        && let Some(colon) = shown[user..end].find(':')
    {
        shown.replace_range(user + colon + 1..end, MASK);
    }
    let mut from = 0;
    while let Some(at) = shown[from..].to_ascii_lowercase().find("password=") {
        let start = from + at + "password=".len();
        let end = shown[start..]
            .find(|next: char| next == '&' || next.is_whitespace())
            .map_or(shown.len(), |length| start + length);
        shown.replace_range(start..end, MASK);
        from = start + MASK.len();
    }
    shown
}

impl Value for DbUrl {
    const WORD: &'static str = "URL";

    fn read(text: &str) -> Result<Self, BadValue> {
        text.parse()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for DbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "sqlite:{path}"),
            Self::Postgres { url } => f.write_str(&masked(url.expose())),
        }
    }
}

impl fmt::Debug for DbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
