//! How a problem is told: the words of the filter, and where they stand.

use crate::{
    error::Problem,
    syntax::{Kind, Literal, Node, Operator},
    types::{Group, Type},
};

pub(super) fn mismatch(
    node: &Node,
    operator: Operator,
    pair: &[Node; 2],
    a: &Type,
    b: &Type,
) -> Problem {
    let sign = operator.text();
    let what = match (a, b) {
        (Type::Group(group), _) | (_, Type::Group(group)) => group_named(*group),
        (Type::Time, Type::Text) | (Type::Text, Type::Time) => {
            let (field, text) = if *a == Type::Time { (0, 1) } else { (1, 0) };
            format!(
                "{} is a timestamp; write the other side as `timestamp({})`",
                spell(&pair[field]),
                match &pair[text].kind {
                    Kind::Literal(Literal::Text(text)) => format!("\"{}\"", short(text)),
                    _ => "...".to_owned(),
                }
            )
        }
        (a, b) if a == b => format!("{} is {a}, so it has no `{sign}`", spell(&pair[0])),
        (a, Type::Null) => format!("{} is {a}, so it has no `{sign} null`", spell(&pair[0])),
        (Type::Text, b) if b.is_number() => {
            let number = path(&pair[1]).unwrap_or_else(|| "...".to_owned());
            format!(
                "{} is text; put the number in quotes, `\"{number}\"`",
                spell(&pair[0])
            )
        }
        (a, b) => {
            format!(
                "{} is {a} and cannot be compared with {b} by `{sign}`",
                spell(&pair[0])
            )
        }
    };
    Problem::new(node.at, what)
}

/// What is wrong where a group stands for a value.
pub(super) fn group_named(group: Group) -> String {
    let (name, example) = (group.name(), group.example());
    format!("`{name}` is a group of fields; name one, such as `{name}.{example}`")
}

/// The same type, without the spelling of fields.
pub(super) fn plain(ty: &Type) -> Type {
    if ty.is_dyn() { Type::Dyn } else { ty.clone() }
}

/// A part of the filter as it was written, for errors.
pub(super) fn spell(node: &Node) -> String {
    path(node).map_or_else(|| "this".to_owned(), |path| format!("`{}`", short(&path)))
}

pub(super) fn path(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Name(name) => Some(name.clone()),
        Kind::Select(of, field) => Some(format!("{}.{field}", path(of)?)),
        Kind::Index(of, index) => Some(format!("{}[{}]", path(of)?, path(index)?)),
        Kind::Literal(Literal::Text(text)) => Some(format!("\"{text}\"")),
        Kind::Literal(Literal::Int(number)) => Some(number.to_string()),
        Kind::Literal(Literal::Bool(truth)) => Some(truth.to_string()),
        Kind::Literal(Literal::Null) => Some("null".to_owned()),
        Kind::Call {
            of: Some(of), name, ..
        } => Some(format!("{}.{name}()", path(of)?)),
        Kind::Call { of: None, name, .. } => Some(format!("{name}()")),
        _ => None,
    }
}

/// Where the text of a part begins.
pub(super) fn start(node: &Node) -> usize {
    match &node.kind {
        Kind::Select(of, _) | Kind::Index(of, _) => start(of),
        Kind::Call { of: Some(of), .. } => start(of),
        Kind::Binary(_, pair) => start(&pair[0]),
        Kind::If(three) => start(&three[0]),
        _ => node.at,
    }
}

/// Enough of a text that came from outside to be recognized.
pub(super) fn short(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(60).collect();
    if chars.next().is_some() {
        head + "..."
    } else {
        head
    }
}

/// `a`, `b` and `c`.
pub(super) fn listed(names: Vec<&str>) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
