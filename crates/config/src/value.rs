//! How each type of value is read from text and shown again.

use std::{net::SocketAddr, path::PathBuf, str::FromStr};

use hindsight_runtime::{
    error::report,
    telemetry::{LogFilter, LogFormat},
};

use crate::{BadValue, Kind, MASK, Secret};

/// A type that a key can have.
///
/// Invariant: `read` takes what `show` gives, and yields the same value; secrets excepted.
pub trait Value: Sized {
    /// What stands for a value in help.
    const WORD: &'static str;
    /// How its text is given and shown.
    const KIND: Kind = Kind::Text;

    /// Reads a text without spaces around it.
    ///
    /// # Errors
    /// What is wrong with it, and what to give instead.
    fn read(text: &str) -> Result<Self, BadValue>;

    /// The text of the value.
    fn show(&self) -> String;
}

/// The type of a key: a [`Value`], or one that may be absent.
pub trait Slot: Sized {
    /// What stands for a value in help.
    const WORD: &'static str;
    /// How its text is given and shown.
    const KIND: Kind;

    /// Reads the text of a key that has this default.
    ///
    /// # Errors
    /// What is wrong with it, and what to give instead.
    fn parse(text: &str, default: Option<&str>) -> Result<Self, BadValue>;

    /// The value of a key that no source names.
    fn absent(default: Option<&str>) -> Self;

    /// The text of the value, if it has one.
    fn shown(&self, default: Option<&str>) -> Option<String>;
}

impl<T: Value> Slot for T {
    const WORD: &'static str = T::WORD;
    const KIND: Kind = T::KIND;

    fn parse(text: &str, _default: Option<&str>) -> Result<Self, BadValue> {
        if text.is_empty() && T::KIND != Kind::List {
            let word = T::WORD;
            return Err(BadValue::new(format!(
                "is empty; give a {word}, or leave it out"
            )));
        }
        T::read(text)
    }

    fn absent(default: Option<&str>) -> Self {
        let default = default.expect("only optional keys have no default");
        T::read(default).expect("defaults are well-formed")
    }

    fn shown(&self, _default: Option<&str>) -> Option<String> {
        Some(self.show())
    }
}

/// The word for no value, where that is not the default.
const OFF: &str = "off";

impl<T: Value> Slot for Option<T> {
    const WORD: &'static str = T::WORD;
    const KIND: Kind = T::KIND;

    fn parse(text: &str, default: Option<&str>) -> Result<Self, BadValue> {
        if default.is_none() {
            return <T as Slot>::parse(text, default).map(Some);
        }
        if text == OFF {
            return Ok(None);
        }
        let value = <T as Slot>::parse(text, default);
        value
            .map(Some)
            .map_err(|bad| BadValue::new(format!("{bad}, or `{OFF}`")))
    }

    fn absent(default: Option<&str>) -> Self {
        let default = default.filter(|default| *default != OFF);
        default.is_some().then(|| T::absent(default))
    }

    fn shown(&self, default: Option<&str>) -> Option<String> {
        let off = default.map(|_| OFF.to_owned());
        self.as_ref().map(T::show).or(off)
    }
}

/// Names that others judge.
impl Value for String {
    const WORD: &'static str = "TEXT";

    fn read(text: &str) -> Result<Self, BadValue> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

/// Texts without commas and spaces around them.
impl Value for Vec<String> {
    const WORD: &'static str = "LIST";
    const KIND: Kind = Kind::List;

    fn read(text: &str) -> Result<Self, BadValue> {
        let items = text.split(',').map(str::trim);
        let items = items.filter(|item| !item.is_empty());
        Ok(items.map(str::to_owned).collect())
    }

    fn show(&self) -> String {
        self.join(",")
    }
}

impl Value for PathBuf {
    const WORD: &'static str = "PATH";

    fn read(text: &str) -> Result<Self, BadValue> {
        Ok(Self::from(text))
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Value for bool {
    const WORD: &'static str = "BOOL";
    const KIND: Kind = Kind::Switch;

    fn read(text: &str) -> Result<Self, BadValue> {
        match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(BadValue::new(format!(
                "`{text}` is neither `true` nor `false`"
            ))),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for SocketAddr {
    const WORD: &'static str = "ADDRESS";

    fn read(text: &str) -> Result<Self, BadValue> {
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        let want = "an IP address and a port, as in `127.0.0.1:8080` or `[::]:8080`";
        let address = numeric.parse().ok();
        address.ok_or_else(|| BadValue::not_valid(text, "address", want))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for Secret {
    const WORD: &'static str = "SECRET";
    const KIND: Kind = Kind::Secret;

    fn read(text: &str) -> Result<Self, BadValue> {
        Ok(Self::new(text))
    }

    fn show(&self) -> String {
        MASK.to_owned()
    }
}

impl Value for LogFilter {
    const WORD: &'static str = "FILTER";

    fn read(text: &str) -> Result<Self, BadValue> {
        parsed(text)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for LogFormat {
    const WORD: &'static str = "FORMAT";

    fn read(text: &str) -> Result<Self, BadValue> {
        parsed(text)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

fn parsed<T: FromStr<Err: std::error::Error + 'static>>(text: &str) -> Result<T, BadValue> {
    text.parse()
        .map_err(|error: T::Err| BadValue::new(report(&error)))
}
