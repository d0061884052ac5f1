//! Conversions: what may become what, and constants that never do.

use crate::{
    expr::{Expr, ExprKind, Function},
    lower::short,
    types::Type,
    value::Value,
};

/// The type that a global function makes of a value, if it takes it.
pub(super) fn converted(function: &Function, from: &Type) -> Option<Type> {
    use Type::{Bool, Bytes, Double, Duration, Dyn, Int, List, Map, Text, Time, Uint};
    let number = from.is_number();
    let (to, takes) = match function {
        Function::Size => (Int, matches!(from, Text | Bytes | List(_) | Map(_))),
        Function::Int => (Int, number || matches!(from, Text | Time)),
        Function::Uint => (Uint, number || *from == Text),
        Function::Double => (Double, number || *from == Text),
        Function::Text => (
            Text,
            number || matches!(from, Text | Bool | Bytes | Time | Duration),
        ),
        Function::Bool => (Bool, matches!(from, Bool | Text)),
        Function::Bytes => (Bytes, matches!(from, Bytes | Text)),
        Function::Timestamp => (Time, matches!(from, Time | Text | Int | Uint)),
        Function::Duration => (Duration, matches!(from, Duration | Text)),
        Function::Dyn => (Dyn, true),
        Function::Type => (Type::Name, true),
        _ => return None,
    };
    (takes || from.is_dyn()).then_some(to)
}

/// What is wrong with a conversion of a constant that has no value.
pub(in crate::lower) fn conversion_problem(expr: &Expr) -> Option<String> {
    let ExprKind::Call(function, args) = &expr.kind else {
        return None;
    };
    let Some(Value::Text(text)) = args.first()?.constant() else {
        return None;
    };
    let text = short(text);
    Some(match function {
        Function::Timestamp => {
            format!("`{text}` is not a time; write it as `2026-01-02T03:04:05Z`")
        }
        Function::Duration => format!("`{text}` is not a duration; write it as `1h30m` or `90s`"),
        Function::Int | Function::Uint | Function::Double => {
            format!("`{text}` is not a number of this type")
        }
        Function::Bool => format!("`{text}` is neither `true` nor `false`"),
        _ => return None,
    })
}
