//! Label and field selectors: their grammar and what they match.

use crate::{kinds::Kind, objects::Stored, refusal::Refusal, route::Query};

#[cfg(test)]
mod tests;

/// What a list or a watch asks for; every requirement must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    is: Is,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Is {
    Present,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// A text in the object, this way down.
    At(String),
}

/// The fields of an event beside those of what it is about.
const OF_EVENTS: &[&str] = &[
    "reason",
    "source",
    "type",
    "reportingComponent",
    "reportingController",
];

/// The fields of what an event is about.
const OF_REFERENCES: &[&str] = &[
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
];

impl Field {
    /// # Errors
    /// 400 for a field that objects of the kind are not found by.
    fn of(kind: &Kind, name: &str) -> Result<Self, Refusal> {
        let about = match kind.group.as_str() {
            "" => "involvedObject.",
            _ => "regarding.",
        };
        let known = match kind.plural.as_str() {
            "events" if !kind.custom => {
                let inner = name.strip_prefix(about);
                OF_EVENTS.contains(&name)
                    || inner.is_some_and(|inner| OF_REFERENCES.contains(&inner))
            }
            "pods" => matches!(name, "spec.nodeName" | "status.phase"),
            "namespaces" => name == "status.phase",
            _ => false,
        };
        match name {
            "metadata.name" => Ok(Self::Name),
            "metadata.namespace" => Ok(Self::Namespace),
            _ if known => Ok(Self::At(name.into())),
            _ if kind.custom
                || matches!(kind.plural.as_str(), "events" | "pods" | "namespaces") =>
            {
                let why = format!("field label not supported: {name}");
                Err(Refusal::bad_request(why))
            }
            _ => Err(Refusal::bad_request(format!(
                "\"{name}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ))),
        }
    }
}

impl Selector {
    /// Reads the two parameters of a query about objects of `kind`.
    ///
    /// # Errors
    /// A bad request when one of them does not parse, or names a field that is not supported.
    pub(crate) fn of(query: &Query, kind: &Kind) -> Result<Self, Refusal> {
        let (labels, fields) = (query.text("labelSelector"), query.text("fieldSelector"));
        Self::parse(labels, fields, kind)
    }

    fn parse(labels: &str, fields: &str, kind: &Kind) -> Result<Self, Refusal> {
        Ok(Self {
            labels: Parser::new(labels)?.requirements()?,
            fields: field_requirements(fields, kind)?,
        })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.labels
            .iter()
            .all(|requirement| requirement.holds(object))
            && self
                .fields
                .iter()
                .all(|requirement| requirement.holds(object))
    }
}

impl Requirement {
    fn holds(&self, object: &Stored) -> bool {
        let value = object.label(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.is {
            Is::Present => value.is_some(),
            Is::Absent => value.is_none(),
            Is::In(wanted) => value.is_some_and(|value| wanted.iter().any(|one| one == value)),
            Is::NotIn(refused) => value.is_none_or(|value| refused.iter().all(|one| one != value)),
            Is::Above(bound) => number().is_some_and(|number| number > *bound),
            Is::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FieldRequirement {
    fn holds(&self, object: &Stored) -> bool {
        let found;
        let actual = match &self.field {
            Field::Name => &object.key.name,
            Field::Namespace => &object.key.namespace,
            Field::At(path) => {
                found = object.text(path);
                &found
            }
        };
        (*actual == self.value) == self.equal
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
}

/// A recursive-descent reader of the label selector grammar.
#[derive(Debug)]
struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, Refusal> {
        const SIGNS: &[&str] = &["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let length = if let Some(sign) = sign {
                tokens.push(Token::Sign(sign));
                sign.len()
            } else {
                let end = rest
                    .find(|c: char| c.is_whitespace() || "=!(),<>".contains(c))
                    .unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                end
            };
            rest = rest[length..].trim_start();
        }
        Ok(Self {
            text,
            tokens,
            next: 0,
        })
    }

    fn requirements(mut self) -> Result<Vec<Requirement>, Refusal> {
        let mut all = Vec::new();
        if self.tokens.is_empty() {
            return Ok(all);
        }
        loop {
            all.push(self.requirement()?);
            match self.take() {
                None => return Ok(all),
                Some(Token::Sign(",")) => {}
                Some(other) => return Err(self.unexpected(Some(&other), "`,` or the end")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Refusal> {
        if self.eat("!") {
            return Ok(Requirement {
                key: self.key()?,
                is: Is::Absent,
            });
        }
        let key = self.key()?;
        let is = match self.peek() {
            None | Some(Token::Sign(",")) => Is::Present,
            Some(Token::Sign("=" | "==")) => {
                self.next += 1;
                Is::In(vec![self.value()?])
            }
            Some(Token::Sign("!=")) => {
                self.next += 1;
                Is::NotIn(vec![self.value()?])
            }
            Some(Token::Sign(sign @ (">" | "<"))) => {
                let above = *sign == ">";
                self.next += 1;
                let text = self.value()?;
                let bound = text
                    .parse()
                    .map_err(|_not_a_number| self.bad(&format!("`{text}` is not an integer")))?;
                if above {
                    Is::Above(bound)
                } else {
                    Is::Below(bound)
                }
            }
            Some(Token::Word(word)) if word == "in" || word == "notin" => {
                let inside = word == "in";
                self.next += 1;
                let values = self.values()?;
                if inside {
                    Is::In(values)
                } else {
                    Is::NotIn(values)
                }
            }
            other => return Err(self.unexpected(other, "an operator")),
        };
        Ok(Requirement { key, is })
    }

    fn key(&mut self) -> Result<String, Refusal> {
        match self.take() {
            Some(Token::Word(key)) if is_qualified_name(&key) => Ok(key),
            Some(Token::Word(key)) => Err(self.bad(&format!("`{key}` is not a label key"))),
            other => Err(self.unexpected(other.as_ref(), "a label key")),
        }
    }

    /// A value may be empty: `a=`, `a=,b`.
    fn value(&mut self) -> Result<String, Refusal> {
        match self.peek() {
            Some(Token::Word(value)) => {
                let value = value.clone();
                self.next += 1;
                if is_label_value(&value) {
                    Ok(value)
                } else {
                    Err(self.bad(&format!("`{value}` is not a label value")))
                }
            }
            None | Some(Token::Sign("," | ")")) => Ok(String::new()),
            other => Err(self.unexpected(other, "a value")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, Refusal> {
        if !self.eat("(") {
            return Err(self.unexpected(self.peek(), "`(`"));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            match self.take() {
                Some(Token::Sign(",")) => {}
                Some(Token::Sign(")")) => return Ok(values),
                other => return Err(self.unexpected(other.as_ref(), "`,` or `)`")),
            }
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(here)) if *here == sign);
        self.next += usize::from(found);
        found
    }

    fn unexpected(&self, found: Option<&Token>, wanted: &str) -> Refusal {
        let found = match found {
            None => "the end",
            Some(Token::Word(word)) => word.as_str(),
            Some(Token::Sign(sign)) => sign,
        };
        self.bad(&format!("found '{found}', expected: {wanted}"))
    }

    fn bad(&self, why: &str) -> Refusal {
        Refusal::bad_request(format!(
            "unable to parse requirement in `{}`: {why}",
            self.text
        ))
    }
}

pub(crate) fn is_qualified_name(key: &str) -> bool {
    let name = match key.split_once('/') {
        Some((prefix, name)) if !prefix.is_empty() && prefix.len() <= 253 => name,
        Some(_) => return false,
        None => key,
    };
    !name.is_empty() && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    value.len() <= 63
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && edge(value.chars().next())
        && edge(value.chars().last())
}

fn field_requirements(text: &str, kind: &Kind) -> Result<Vec<FieldRequirement>, Refusal> {
    let mut all = Vec::new();
    for term in text
        .split(',')
        .map(str::trim)
        .filter(|term| !term.is_empty())
    {
        let (field, value, equal) = if let Some((field, value)) = term.split_once("!=") {
            (field, value, false)
        } else if let Some((field, value)) = term.split_once("==") {
            (field, value, true)
        } else if let Some((field, value)) = term.split_once('=') {
            (field, value, true)
        } else {
            let why = format!("invalid field selector: '{term}'; can't understand '{term}'");
            return Err(Refusal::bad_request(why));
        };
        let field = Field::of(kind, field)?;
        all.push(FieldRequirement {
            field,
            value: value.into(),
            equal,
        });
    }
    Ok(all)
}
