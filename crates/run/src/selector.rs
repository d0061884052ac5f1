//! Label selectors of Kubernetes: `app=shop,tier!=test,env in (a,b),!keep,weight>3`.

use std::{fmt, str::FromStr};

/// The objects that are meant, by their labels. An empty selector means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(pub Vec<Requirement>);

/// What one label must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Byte at which it begins in the text of the selector.
    pub at: usize,
    /// Key of the label.
    pub key: String,
    /// Test of the value.
    pub test: Test,
}

/// A test of the value of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// The label is there: `a`.
    Exists,
    /// The label is not there: `!a`.
    Absent,
    /// It is one of these: `a=b`, `a==b` or `a in (b,c)`.
    In(Vec<String>),
    /// It is none of these, or not there: `a!=b` or `a notin (b,c)`.
    NotIn(Vec<String>),
    /// It is a whole number above this one: `a>1`.
    Above(i64),
    /// It is a whole number below this one: `a<1`.
    Below(i64),
}

/// Why a text is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ParseSelectorError {
    /// Byte of the text that is not understood.
    pub at: usize,
    /// What is there, and what would be right.
    pub what: String,
}

impl Selector {
    /// Whether an object is meant whose labels `label` looks up.
    pub fn matches<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.0.iter().all(|Requirement { key, test, .. }| {
            let value = label(key);
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            let among = |values: &[String]| values.iter().any(|one| Some(one.as_str()) == value);
            match test {
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::In(values) => among(values),
                Test::NotIn(values) => !among(values),
                Test::Above(bound) => number().is_some_and(|number| number > *bound),
                Test::Below(bound) => number().is_some_and(|number| number < *bound),
            }
        })
    }
}

impl FromStr for Selector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parser = Parser { text, at: 0 };
        let mut all = Vec::new();
        if parser.peek().1.is_empty() {
            return Ok(Self(all));
        }
        loop {
            all.push(parser.requirement()?);
            match parser.take() {
                (_, ",") => {}
                (_, "") => return Ok(Self(all)),
                found => return Err(unexpected(found, "`,` or the end")),
            }
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Requirement { key, test, .. }) in self.0.iter().enumerate() {
            f.write_str(if n > 0 { "," } else { "" })?;
            match test {
                Test::Exists => write!(f, "{key}")?,
                Test::Absent => write!(f, "!{key}")?,
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Test::Above(bound) => write!(f, "{key}>{bound}")?,
                Test::Below(bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

/// A sign or a word, and the byte at which it begins. At the end it is empty.
type Token<'t> = (usize, &'t str);

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", "<", ">"];

impl<'t> Parser<'t> {
    fn peek(&self) -> Token<'t> {
        let rest = self.text[self.at..].trim_start();
        let at = self.text.len() - rest.len();
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            return (at, sign);
        }
        let ends = |c: char| c.is_whitespace() || "=!,()<>".contains(c);
        (at, &rest[..rest.find(ends).unwrap_or(rest.len())])
    }

    fn take(&mut self) -> Token<'t> {
        let (at, token) = self.peek();
        self.at = at + token.len();
        (at, token)
    }

    fn requirement(&mut self) -> Result<Requirement, ParseSelectorError> {
        let (at, absent) = self.peek();
        let absent = absent == "!";
        if absent {
            self.take();
        }
        let key = self.key()?;
        let operator = self.peek();
        let test = if absent {
            Test::Absent
        } else if matches!(operator.1, "," | "") {
            Test::Exists
        } else {
            self.take();
            match operator.1 {
                "=" | "==" => Test::In(vec![self.value()?]),
                "!=" => Test::NotIn(vec![self.value()?]),
                "in" => Test::In(self.values()?),
                "notin" => Test::NotIn(self.values()?),
                ">" => Test::Above(self.number()?),
                "<" => Test::Below(self.number()?),
                _ => {
                    let wanted = "one of `=`, `==`, `!=`, `in`, `notin`, `<` and `>`";
                    return Err(unexpected(operator, wanted));
                }
            }
        };
        Ok(Requirement { at, key, test })
    }

    fn key(&mut self) -> Result<String, ParseSelectorError> {
        let (at, key) = self.take();
        if key.is_empty() || SIGNS.contains(&key) {
            return Err(unexpected((at, key), "a label"));
        }
        if !is_qualified_name(key) {
            let want = "`name` or `example.com/name`";
            let what = format!("`{key}` is not a valid label; want {want}");
            return Err(ParseSelectorError { at, what });
        }
        Ok(key.to_owned())
    }

    /// A value, which may be empty: `a=`, `a=,b`, `a in (,b)`.
    fn value(&mut self) -> Result<String, ParseSelectorError> {
        let (at, value) = self.peek();
        match value {
            "," | ")" => return Ok(String::new()),
            sign if SIGNS.contains(&sign) => return Err(unexpected((at, sign), "a value")),
            _ => self.take(),
        };
        if !is_label_value(value) {
            let what = format!(
                "`{value}` is not a valid value of a label; want up to 63 letters, digits, `-`, \
                 `_` and `.`, with a letter or digit at both ends"
            );
            return Err(ParseSelectorError { at, what });
        }
        Ok(value.to_owned())
    }

    fn values(&mut self) -> Result<Vec<String>, ParseSelectorError> {
        let mut values = Vec::new();
        match self.take() {
            (_, "(") => {}
            found => return Err(unexpected(found, "`(`")),
        }
        loop {
            values.push(self.value()?);
            match self.take() {
                (_, ",") => {}
                (_, ")") => return Ok(values),
                found => return Err(unexpected(found, "`,` or `)`")),
            }
        }
    }

    fn number(&mut self) -> Result<i64, ParseSelectorError> {
        let found = self.take();
        let number = found.1.parse();
        number.map_err(|_no_number| unexpected(found, "a whole number"))
    }
}

fn unexpected((at, found): Token<'_>, wanted: &str) -> ParseSelectorError {
    let found = match found {
        "" => "the end".to_owned(),
        found => format!("`{found}`"),
    };
    let what = format!("{found} is not expected here; want {wanted}");
    ParseSelectorError { at, what }
}

/// Whether `key` can be the key of a label: a name, perhaps after a DNS subdomain and a `/`.
pub fn is_qualified_name(key: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_part = |part: &str| {
        let ends = part.starts_with('-') || part.ends_with('-');
        !part.is_empty() && !ends && part.chars().all(inner)
    };
    let (is_prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (prefix.len() <= 253 && prefix.split('.').all(is_part), name),
        None => (true, key),
    };
    is_prefix && !name.is_empty() && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    let outer = |c: char| c.is_ascii_alphanumeric();
    value.len() <= 63
        && value.chars().all(|c| outer(c) || "-_.".contains(c))
        && value.chars().next().is_none_or(outer)
        && value.chars().next_back().is_none_or(outer)
}

#[cfg(test)]
mod tests;
