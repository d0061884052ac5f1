//! The functions there are: by name, with what each takes.

use crate::{
    expr::{Function, TimePart},
    types::Type,
};

/// Functions that are written before their argument.
pub(super) static GLOBAL: [(&str, Function); 11] = [
    ("size", Function::Size),
    ("int", Function::Int),
    ("uint", Function::Uint),
    ("double", Function::Double),
    ("string", Function::Text),
    ("bool", Function::Bool),
    ("bytes", Function::Bytes),
    ("dyn", Function::Dyn),
    ("type", Function::Type),
    ("timestamp", Function::Timestamp),
    ("duration", Function::Duration),
];

pub(super) const PARTS: [(&str, TimePart); 10] = [
    ("getFullYear", TimePart::FullYear),
    ("getMonth", TimePart::Month),
    ("getDate", TimePart::Date),
    ("getDayOfMonth", TimePart::DayOfMonth),
    ("getDayOfWeek", TimePart::DayOfWeek),
    ("getDayOfYear", TimePart::DayOfYear),
    ("getHours", TimePart::Hours),
    ("getMinutes", TimePart::Minutes),
    ("getSeconds", TimePart::Seconds),
    ("getMilliseconds", TimePart::Milliseconds),
];

/// Functions of a text: their arguments, of which the last so many may be left out.
pub(super) static TEXT: [(&str, Function, &[Type], usize); 13] = [
    ("contains", Function::Contains, &[Type::Text], 0),
    ("startsWith", Function::StartsWith, &[Type::Text], 0),
    ("endsWith", Function::EndsWith, &[Type::Text], 0),
    ("matches", Function::Matches, &[Type::Text], 0),
    ("lowerAscii", Function::LowerAscii, &[], 0),
    ("upperAscii", Function::UpperAscii, &[], 0),
    ("trim", Function::Trim, &[], 0),
    ("split", Function::Split, &[Type::Text, Type::Int], 1),
    (
        "replace",
        Function::Replace,
        &[Type::Text, Type::Text, Type::Int],
        1,
    ),
    ("substring", Function::Substring, &[Type::Int, Type::Int], 1),
    ("indexOf", Function::IndexOf, &[Type::Text, Type::Int], 1),
    ("lastIndexOf", Function::LastIndexOf, &[Type::Text], 0),
    ("charAt", Function::CharAt, &[Type::Int], 0),
];

pub(super) const MACROS: [&str; 7] = [
    "has",
    "exists",
    "all",
    "exists_one",
    "existsOne",
    "map",
    "filter",
];
