//! Tests of a field, and of its opposite, as CEL.

use super::{
    error::Fault,
    lex::{Piece, Word},
    quoted,
};
use crate::fields;

/// A test, and the test that a run is not selected by it.
pub(super) struct Test {
    pub(super) holds: String,
    pub(super) fails: String,
}

impl Test {
    /// Of a field that every run has.
    pub(super) fn always(test: String) -> Self {
        Self {
            fails: format!("!({test})"),
            holds: test,
        }
    }

    /// Of a field that may be missing. A run without it is not selected.
    pub(super) fn present(field: &str, test: String) -> Self {
        Self {
            fails: format!("(!has({field}) || !({test}))"),
            holds: test,
        }
    }
}

pub(super) fn optional(field: &str, values: &[Piece]) -> Test {
    Test::present(field, one_of(field, values))
}

/// That a field has one of the values.
pub(super) fn one_of(field: &str, values: &[Piece]) -> String {
    let (exact, open): (Vec<_>, Vec<_>) = values.iter().partition(|value| value.is_exact());
    let exact: Vec<_> = exact.iter().map(|value| quoted(&value.text)).collect();
    let mut tests = match exact.as_slice() {
        [] => Vec::new(),
        [one] => vec![format!("{field} == {one}")],
        several => vec![format!("{field} in [{}]", several.join(", "))],
    };
    tests.extend(open.into_iter().map(|value| pattern(field, value)));
    any(tests)
}

pub(super) fn any(mut tests: Vec<String>) -> String {
    match tests.len() {
        1 => tests.remove(0),
        _ => format!("({})", tests.join(" || ")),
    }
}

/// That a field is as a value says that begins or ends with a `*`.
pub(super) fn pattern(field: &str, value: &Piece) -> String {
    let function = match (value.open_start, value.open_end) {
        // Every text begins with none.
        _ if value.text.is_empty() => "startsWith",
        (true, true) => "contains",
        (true, false) => "endsWith",
        (false, _) => "startsWith",
    };
    format!("{field}.{function}({})", quoted(&value.text))
}

/// The value of a key that has one.
pub(super) fn single<'w>(word: &'w Word<'_>) -> Result<&'w str, Fault> {
    match word.values.as_slice() {
        [one] if one.is_exact() => {
            filled(one, "this")?;
            Ok(&one.text)
        }
        _ => {
            let what = "this takes one value, without `,` and `*`";
            Err(Fault::new(word.part.clone(), what))
        }
    }
}

pub(super) fn filled(value: &Piece, before: &str) -> Result<(), Fault> {
    let is_label = value.label.is_some();
    if value.text.is_empty() && value.is_exact() && !value.quoted && !is_label {
        let what = format!("{before} wants a value; an empty one is written `\"\"`");
        return Err(Fault::new(value.part.clone(), what));
    }
    Ok(())
}

/// What was probably meant, or what there is.
pub(super) fn nearest<'n>(
    text: &str,
    known: impl IntoIterator<Item = &'n str>,
    listed: &[&str],
) -> String {
    match fields::nearest(text, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("want one of `{}`", listed.join("`, `")),
    }
}
