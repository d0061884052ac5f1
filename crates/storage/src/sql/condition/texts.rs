//! Tests of texts, which indexes may hold in part.

use std::borrow::Cow;

use super::Writer;
use crate::{
    codec::text,
    sql::{columns::Place, statement::Bind},
};

impl Writer<'_> {
    /// Appends the value of a column that is compared with these texts.
    pub(super) fn compared(&mut self, place: Place<'_>, texts: &[&str]) {
        if let Place::Column(name) | Place::Word(name) = place
            && let Some(expression) = self.dialect.indexed(name, texts)
        {
            self.out.push(expression);
        } else {
            self.column(place, "");
        }
    }

    pub(super) fn equal_text(&mut self, place: Place<'_>, text: Cow<'_, str>, negated: bool) {
        let is_cut = !negated && self.cut(place, &[&text]);
        self.compared(place, &[&text]);
        self.out
            .push(if negated { " <> " } else { " = " })
            .bind(Bind::Text(Some(text.into_owned())));
        self.out.push(if is_cut { ")" } else { "" });
    }

    /// Appends, of texts that are longer than an index holds, what it holds, and that more is said of
    /// them; a bracket must follow.
    pub(super) fn cut(&mut self, place: Place<'_>, texts: &[&str]) -> bool {
        let (Place::Column(name) | Place::Word(name)) = place else {
            return false;
        };
        let Some((expression, mut kept)) = self.dialect.cut_of(name, texts) else {
            return false;
        };
        self.out.push("(").push(expression);
        match kept.len() {
            1 => {
                self.out.push(" = ").bind(Bind::Text(kept.pop()));
            }
            _ => self.dialect.one_of(self.out, false, Bind::Texts(kept)),
        }
        self.out.push(" AND ");
        true
    }

    /// Texts with a prefix are an interval in the order of bytes, which an index can answer.
    pub(super) fn starts_with(&mut self, place: Place<'_>, prefix: &str, negated: bool) {
        if prefix.is_empty() {
            return self.every_text(place, negated);
        }
        let (before, between, after) = if negated {
            (" < ", " OR ", " >= ")
        } else {
            (" >= ", " AND ", " < ")
        };
        let prefix = text::stored(prefix);
        let end = text::after_prefix(&prefix);
        self.out.push("(");
        self.compared(place, &[&prefix]);
        self.out
            .push(before)
            .bind(Bind::Text(Some(prefix.clone().into_owned())));
        if let Some(end) = end {
            self.out.push(between);
            self.compared(place, &[&prefix]);
            self.out.push(after).bind(Bind::Text(Some(end)));
        }
        self.out.push(")");
    }

    pub(super) fn ends_with(&mut self, place: Place<'_>, suffix: &str, negated: bool) {
        if suffix.is_empty() {
            return self.every_text(place, negated);
        }
        let (open, middle) = self.dialect.last();
        self.out.push(open);
        self.column(place, "");
        self.out.push(middle).bind(suffix).push("))");
        self.out
            .push(if negated { " <> " } else { " = " })
            .bind(suffix);
    }

    pub(super) fn contains(&mut self, place: Place<'_>, part: &str, negated: bool) {
        if part.is_empty() {
            return self.every_text(place, negated);
        }
        self.out.push(self.dialect.position());
        self.column(place, "");
        self.out
            .push(", ")
            .bind(part)
            .push(if negated { ") = 0" } else { ") > 0" });
    }

    /// Every text starts with, ends with and contains the empty one.
    fn every_text(&mut self, place: Place<'_>, negated: bool) {
        if negated {
            self.constant(false)
        } else {
            self.present(place, false)
        }
    }
}
