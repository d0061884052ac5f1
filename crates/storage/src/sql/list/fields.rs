//! What lists read of each row.

use super::{ALIASES, List};
use crate::sql::{
    columns::{Holds, Place, holds, place},
    read, thin,
};

impl List<'_> {
    /// Appends what is read of each row.
    pub(super) fn fields(&mut self) {
        match self.columns {
            true => read::record_fields(&mut self.out),
            false => read::fields(&mut self.out, self.dialect, self.resource),
        }
        for (number, key) in self.query.order.keys().iter().enumerate() {
            self.out.push(", ");
            match place(self.resource, &key.column) {
                Place::Nowhere => {
                    self.out.push(match holds(&key.column) {
                        Holds::Text => "CAST(NULL AS TEXT)",
                        Holds::Int | Holds::Time => "CAST(NULL AS BIGINT)",
                    });
                }
                place => self.key(&key.column, place),
            }
            self.out.push(" AS ").push(ALIASES[number]);
        }
        if self.columns {
            thin::fields(&mut self.out, self.dialect, self.query.projection);
        }
    }
}
