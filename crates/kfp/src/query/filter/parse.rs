//! From the JSON of a filter message, as clients send it, to tests. Names of fields are in either spelling.

use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{Comparison, Field, Listable, MAX_FILTER, MAX_PREDICATES, Operand, Predicate, Test};
use crate::error::Error;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    predicates: Option<Vec<Written>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    operation: Option<Operation>,
    key: Option<String>,
    #[serde(alias = "intValue")]
    int_value: Option<Int>,
    #[serde(alias = "longValue")]
    long_value: Option<Long>,
    #[serde(alias = "stringValue")]
    string_value: Option<String>,
    #[serde(alias = "timestampValue")]
    timestamp_value: Option<Timestamp>,
    #[serde(alias = "intValues")]
    int_values: Option<List<Int>>,
    #[serde(alias = "longValues")]
    long_values: Option<List<Long>>,
    #[serde(alias = "stringValues")]
    string_values: Option<List<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List<T> {
    #[serde(default = "Vec::new")]
    values: Vec<T>,
}

/// What is compared, and the name of its type in errors.
enum Given {
    One(&'static str, Operand),
    Many(&'static str, Vec<Operand>),
}

/// A number of 32 bits, which may be written as a text.
struct Int(i64);
/// A number of 64 bits, likewise.
struct Long(i64);

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Number(i64),
    Text(String),
}

impl<'de> Deserialize<'de> for Long {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        match Number::deserialize(json).map_err(|_other| D::Error::custom("not a whole number"))? {
            Number::Number(number) => Ok(Self(number)),
            Number::Text(text) => {
                let number = text.parse();
                let wrong = |_error| D::Error::custom(format!("`{text}` is not a whole number"));
                number.map(Self).map_err(wrong)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let Long(number) = Long::deserialize(json)?;
        match i32::try_from(number) {
            Ok(_) => Ok(Self(number)),
            Err(_large) => Err(D::Error::custom(format!(
                "{number} is not a number of 32 bits"
            ))),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Compare(Comparison),
    In,
    IsSubstring,
}

const OPERATIONS: [(i64, &str, Operation); 8] = [
    (1, "EQUALS", Operation::Compare(Comparison::Equals)),
    (2, "NOT_EQUALS", Operation::Compare(Comparison::NotEquals)),
    (3, "GREATER_THAN", Operation::Compare(Comparison::Greater)),
    (
        5,
        "GREATER_THAN_EQUALS",
        Operation::Compare(Comparison::GreaterOrEquals),
    ),
    (6, "LESS_THAN", Operation::Compare(Comparison::Less)),
    (
        7,
        "LESS_THAN_EQUALS",
        Operation::Compare(Comparison::LessOrEquals),
    ),
    (8, "IN", Operation::In),
    (9, "IS_SUBSTRING", Operation::IsSubstring),
];

impl Operation {
    fn name(self) -> &'static str {
        let row = OPERATIONS
            .iter()
            .find(|(_, _, operation)| *operation == self);
        row.map_or("", |(_, name, _)| name)
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let given = Number::deserialize(json)
            .map_err(|_other| D::Error::custom("an operation is a name or a number"))?;
        let mut all = OPERATIONS.iter();
        let found = match &given {
            Number::Number(number) => all.find(|(known, _, _)| known == number),
            Number::Text(name) => all.find(|(_, known, _)| known == name),
        };
        let what = match given {
            Number::Number(number) => number.to_string(),
            Number::Text(name) => name,
        };
        found
            .map(|(_, _, operation)| *operation)
            .ok_or_else(|| D::Error::custom(format!("`{what}` is not an operation of predicates")))
    }
}

/// Makes sense of a filter, which may be percent-encoded once more; an empty one has no tests.
pub(in crate::query) fn parse(text: &str, of: Listable) -> Result<Vec<Predicate>, Error> {
    let wrong = |why: String| Error::invalid(format!("failed to parse filter spec: {why}"));
    if text.len() > MAX_FILTER {
        return Err(wrong(format!("it is longer than {MAX_FILTER} bytes")));
    }
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let decoded;
    let text = match text.starts_with('{') {
        true => text,
        false => {
            let spaced = text.replace('+', " ");
            let bytes = percent_decode_str(&spaced).decode_utf8();
            decoded = bytes
                .map_err(|_not_text| wrong("it is not UTF-8".to_owned()))?
                .into_owned();
            &decoded
        }
    };
    let filter: Filter = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let predicates = filter.predicates.unwrap_or_default();
    if predicates.len() > MAX_PREDICATES {
        return Err(wrong(format!(
            "it has more than {MAX_PREDICATES} predicates"
        )));
    }
    let predicates = predicates.into_iter().map(|written| predicate(written, of));
    predicates.collect()
}

fn predicate(written: Written, of: Listable) -> Result<Predicate, Error> {
    let wrong = |why: &str| Error::invalid(format!("failed to parse filter spec: {why}"));
    let key = written.key.clone().filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| wrong("a predicate has no key"))?;
    let operation = written.operation;
    let operation =
        operation.ok_or_else(|| wrong(&format!("the predicate of \"{key}\" has no operation")))?;
    let given = written.given(&key)?;
    let field = Field::named(&key, of).ok_or_else(|| {
        Error::invalid(format!(
            "no support for filtering on unrecognized field \"{key}\""
        ))
    })?;
    let name = operation.name();
    if matches!(field, Field::Tag(_)) && name != "EQUALS" {
        return Err(Error::invalid(format!(
            "only EQUALS operation is supported for tag filtering, got {name} for key \"{key}\""
        )));
    }
    let test = match (operation, given) {
        (Operation::In, Given::One(kind, _)) => {
            return Err(Error::invalid(format!(
                "cannot use IN operator with scalar type {kind}"
            )));
        }
        (Operation::In, Given::Many(_, operands)) => Test::In(operands),
        (_, Given::Many(kind, _)) => {
            return Err(Error::invalid(format!(
                "cannot use scalar operator {name} on array type []{kind}"
            )));
        }
        (Operation::Compare(how), Given::One(_, operand)) => Test::Compare(how, operand),
        (Operation::IsSubstring, Given::One(_, Operand::Text(part))) => Test::Substring(part),
        (Operation::IsSubstring, Given::One(kind, Operand::Seconds(_))) => {
            return Err(Error::invalid(format!(
                "cannot use non string value type \"{kind}\" with operator IS_SUBSTRING"
            )));
        }
    };
    let is = match field {
        Field::CreatedAt => "a time; compare it with timestamp_value",
        _ => "a text; compare it with string_value",
    };
    Predicate::new(field, test).ok_or_else(|| Error::invalid(format!("field \"{key}\" is {is}")))
}

impl Written {
    /// The only value.
    fn given(self, key: &str) -> Result<Given, Error> {
        let text = Operand::Text;
        let seconds = Operand::Seconds;
        let all = [
            self.int_value
                .map(|Int(number)| Given::One("int", seconds(number))),
            self.long_value
                .map(|Long(number)| Given::One("long", seconds(number))),
            self.string_value
                .map(|value| Given::One("string", text(value))),
            self.timestamp_value.map(|time| {
                let whole = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
                Given::One("timestamp", seconds(whole))
            }),
            self.int_values.map(|list| {
                Given::Many(
                    "int",
                    list.values.into_iter().map(|Int(n)| seconds(n)).collect(),
                )
            }),
            self.long_values.map(|list| {
                Given::Many(
                    "long",
                    list.values.into_iter().map(|Long(n)| seconds(n)).collect(),
                )
            }),
            self.string_values
                .map(|list| Given::Many("string", list.values.into_iter().map(text).collect())),
        ];
        let mut given = all.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(Error::invalid(format!(
                "failed to parse filter spec: the predicate of \"{key}\" has no value"
            ))),
            (Some(_), Some(_)) => Err(Error::invalid(format!(
                "failed to parse filter spec: the predicate of \"{key}\" has more than one value"
            ))),
        }
    }
}
