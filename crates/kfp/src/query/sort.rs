//! The order of a list: by one field, and by the id among those that have the same value.

use serde::{Deserialize, Serialize};

use super::{
    Item,
    field::{Field, Listable},
};
use crate::error::Error;

/// Characters of a text that orders compare, so that a page token stays short.
pub const MAX_SORTED_CHARS: usize = 256;

/// The field that a list is ordered by. Items that are equal in it are in the order of their ids, in the same direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sort {
    /// Not a tag.
    pub field: Field,
    /// Ids are in the same direction.
    pub descending: bool,
}

/// What an order compares of an item. Texts are compared by their code points.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SortKey {
    /// Since 1970.
    Seconds(i64),
    /// The first [`MAX_SORTED_CHARS`] characters.
    Text(String),
}

impl Sort {
    /// Makes sense of `field`, `field asc` or `field desc`; of an empty text, `created_at asc`.
    pub(super) fn parse(text: &str, of: Listable) -> Result<Self, Error> {
        let lower = text.to_lowercase();
        let words: Vec<_> = lower.split_whitespace().collect();
        let (name, descending) = match words[..] {
            [] => ("created_at", false),
            [name] | [name, "asc"] => (name, false),
            [name, "desc"] => (name, true),
            _ => {
                return Err(Error::invalid(format!(
                    "Received invalid sort by format \"{text}\". Supported format: \"field_name\", \"field_name \
                     desc\", or \"field_name asc\""
                )));
            }
        };
        match Field::named(name, of) {
            Some(Field::Tag(_)) | None => Err(Error::invalid(format!(
                "Invalid sorting field: \"{name}\" on listable type {}",
                of.name()
            ))),
            Some(field) => Ok(Self { field, descending }),
        }
    }

    /// What is compared of an item.
    pub fn key(&self, item: &impl Item) -> SortKey {
        match self.field {
            Field::CreatedAt => SortKey::Seconds(item.created_at()),
            _ => {
                let text = item.text(&self.field).unwrap_or_default();
                SortKey::Text(text.chars().take(MAX_SORTED_CHARS).collect())
            }
        }
    }

    /// Whether such a key is one of this order.
    pub(super) fn has(&self, key: &SortKey) -> bool {
        matches!(key, SortKey::Seconds(_)) == (self.field == Field::CreatedAt)
    }
}
