//! Where a page of a list begins: after the last row of the one before.

use super::{Key, List, Part, keys};
use crate::sql::{columns::always, statement::Bind};
use hindsight_filter::order::KeyValue;

impl List<'_> {
    /// Appends where the page begins.
    pub(super) fn seek(&mut self) {
        let first = keys(self.resource, self.query).next();
        let deciding: Vec<_> = self.deciding().collect();
        match (self.part, first) {
            (Part::With, Some(first)) => match first.after {
                Some(Some(at)) => self.seek_with(first, at, &deciding),
                _ if always(&first.key.column) => {}
                _ => self.is_null(first, " IS NOT NULL"),
            },
            (Part::Without, Some(first)) => {
                self.is_null(first, " IS NULL");
                if first.after == Some(None) {
                    self.out.push(" AND ");
                    self.beyond(&deciding);
                }
            }
            (_, None) if self.query.after.is_some() => {
                self.out.push(" AND ");
                self.beyond(&deciding);
            }
            (_, None) => {}
        }
    }

    fn is_null(&mut self, key: Key<'_>, is: &'static str) {
        self.out.push(" AND ");
        self.key(&key.key.column, key.place);
        self.out.push(is);
    }

    /// Appends that a row comes after one that has the first key: a bound that an index
    /// answers, and for several keys who comes after among the equal.
    fn seek_with(&mut self, first: Key<'_>, at: &KeyValue, deciding: &[Key<'_>]) {
        let descending = first.key.descending;
        let id = self.query.after.as_ref().map_or(0, |row| row.id);
        self.out.push(" AND ");
        if deciding.len() == 1 && descending == self.query.order.ties_descend() {
            self.out.push("(");
            self.key(&first.key.column, first.place);
            let tie = self.tie();
            self.out
                .push(", ")
                .push(tie)
                .push(")")
                .push(if descending { " < " } else { " > " });
            self.out
                .push("(")
                .bind(bind(at))
                .push(", ")
                .bind(id)
                .push(")");
            return;
        }
        self.key(&first.key.column, first.place);
        self.out
            .push(if descending { " <= " } else { " >= " })
            .bind(bind(at))
            .push(" AND ");
        self.beyond(deciding);
    }

    /// Appends that a row comes after the last one given out, by these keys and then by id.
    fn beyond(&mut self, keys: &[Key<'_>]) {
        let beyond = |descending| if descending { " < " } else { " > " };
        let Some((key, rest)) = keys.split_first() else {
            let id = self.query.after.as_ref().map_or(0, |row| row.id);
            let tie = self.tie();
            self.out
                .push(tie)
                .push(beyond(self.query.order.ties_descend()))
                .bind(id);
            return;
        };
        let column = &key.key.column;
        self.out.push("(");
        match key.after.flatten() {
            Some(at) => {
                self.key(column, key.place);
                self.out.push(beyond(key.key.descending)).bind(bind(at));
                self.out.push(" OR ");
                if !always(column) {
                    self.key(column, key.place);
                    self.out.push(" IS NULL OR ");
                }
                self.key(column, key.place);
                self.out.push(" = ").bind(bind(at));
            }
            None => {
                self.key(column, key.place);
                self.out.push(" IS NULL");
            }
        }
        self.out.push(" AND ");
        self.beyond(rest);
        self.out.push(")");
    }
}

/// A key as it was read, which is how the tables hold it.
fn bind(value: &KeyValue) -> Bind {
    match value {
        KeyValue::Int(number) => Bind::Int(Some(*number)),
        KeyValue::Text(text) => Bind::Text(Some(text.clone())),
    }
}
