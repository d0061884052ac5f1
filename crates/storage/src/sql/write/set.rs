//! A column and the value that a statement gives it.

use hindsight_filter::model::Resource;
use jiff::Timestamp;

use crate::{
    codec::{text::words, uid},
    sql::{
        dialect::Dialect,
        statement::{Bind, Statement},
    },
};

/// A column and the value it gets.
pub(in crate::sql) struct Set {
    pub(in crate::sql) column: &'static str,
    pub(in crate::sql) value: Bind,
    pub(in crate::sql) is_json: bool,
}

impl Set {
    pub(in crate::sql) fn new(column: &'static str, value: impl Into<Bind>) -> Self {
        Self {
            column,
            value: value.into(),
            is_json: false,
        }
    }

    pub(in crate::sql) fn id(column: &'static str, value: &str) -> Self {
        Self::new(column, Bind::id(value))
    }

    /// A uid, which mostly follows from what else is kept.
    pub(super) fn uid(of: Resource, uid: &str, id: &str, created: Timestamp) -> Self {
        let kept = uid::stored(of, uid, id, created);
        Self::new("uid", Bind::Id(Some(kept.into_owned())))
    }

    pub(super) fn word(column: &'static str, value: Option<&str>) -> Self {
        let kept = value.map(|word| words::stored(word).into_owned());
        Self::new(column, Bind::Text(kept))
    }

    pub(super) fn json(column: &'static str, value: Option<String>) -> Self {
        // Escapes inside are done already, key by key.
        Self {
            column,
            value: Bind::Text(value),
            is_json: true,
        }
    }

    pub(super) fn value(self, out: &mut Statement, dialect: Dialect) {
        if (self.column, dialect) == ("labels", Dialect::Sqlite) && self.value != Bind::Text(None) {
            out.push("(SELECT json_group_array(l.row_id) FROM json_each(")
                .bind(self.value)
                .push(") AS e CROSS JOIN labels AS l ON l.value = e.value AND l.key = e.key)");
            return;
        }
        out.bind(self.value);
        if self.is_json {
            out.push(dialect.json_cast());
        }
    }
}
