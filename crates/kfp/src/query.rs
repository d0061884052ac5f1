//! Which items a list gives, and in which order. Pure: [`Query::page`] evaluates a query over items in memory, and a
//! store that evaluates it elsewhere gives the same.

mod field;
mod filter;
mod sort;
mod token;

use std::{borrow::Cow, cmp::Ordering};

use serde::{Deserialize, Serialize};

pub use self::{
    field::{Field, Listable},
    filter::{Comparison, MAX_FILTER, Operand, Predicate, Test},
    sort::{MAX_SORTED_CHARS, Sort, SortKey},
};
use crate::{
    error::Error,
    model::{Pipeline, PipelineVersion},
};

/// Items of a page where the request does not say.
const DEFAULT_PAGE: u32 = 20;
/// Most items of a page.
const MAX_PAGE: u32 = 200;

/// Of what a list is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// The pipelines of a namespace.
    Pipelines {
        /// Empty where pipelines belong to none.
        namespace: String,
    },
    /// The versions of a pipeline, by its id.
    Versions {
        /// Whether or not there is one.
        pipeline_id: String,
    },
}

impl Scope {
    /// What is listed.
    #[must_use]
    pub fn listable(&self) -> Listable {
        match self {
            Self::Pipelines { .. } => Listable::Pipelines,
            Self::Versions { .. } => Listable::Versions,
        }
    }
}

/// What a request says about a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListAsk {
    /// What the page before gave as [`Page::next`]; empty for the first one.
    pub page_token: String,
    /// Most items; 0 stands for the default.
    pub page_size: i32,
    /// A field, and `asc` or `desc` after it; empty for the default.
    pub sort_by: String,
    /// JSON; empty if all items pass.
    pub filter: String,
}

/// Which page of which list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Of what the list is.
    pub scope: Scope,
    /// Tests, all of which an item passes.
    pub predicates: Vec<Predicate>,
    /// By which field items are ordered.
    pub sort: Sort,
    /// The last item of the page before.
    pub after: Option<Position>,
    /// Most items of the page.
    pub size: u32,
    /// Most bytes of the page by [`Item::size`]; one item is always given.
    pub room: usize,
}

/// A place in a list, which stays when its item is deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// What the order compares.
    pub key: SortKey,
    /// A UUID.
    pub id: String,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The items of the page, in the order that was asked for.
    pub items: Vec<T>,
    /// How many items pass the predicates, on all pages.
    pub total: u64,
    /// The token of the next page; empty on the last one.
    pub next: String,
}

/// What lists are of.
pub trait Item {
    /// A UUID.
    fn id(&self) -> &str;

    /// The text of a field; `None` of a tag that it does not have, and of times.
    fn text(&self, field: &Field) -> Option<Cow<'_, str>>;

    /// In seconds since 1970.
    fn created_at(&self) -> i64;

    /// About how many bytes it takes in an answer.
    fn size(&self) -> usize;
}

impl<T> Page<T> {
    /// The only page of a list without items.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            items: Vec::new(),
            total: 0,
            next: String::new(),
        }
    }
}

impl Query {
    /// Makes sense of a request. With a page token, an empty order and an empty filter are those of the page before.
    ///
    /// # Errors
    /// If one of them makes no sense, or the token is of another list.
    pub fn new(scope: Scope, ask: &ListAsk, room: usize) -> Result<Self, Error> {
        let size = match u32::try_from(ask.page_size) {
            Err(_negative) => {
                let size = ask.page_size;
                return Err(Error::invalid(format!(
                    "The page size should be greater than 0. Got {size}"
                )));
            }
            Ok(0) => DEFAULT_PAGE,
            Ok(size) => size.min(MAX_PAGE),
        };
        let listable = scope.listable();
        let predicates = filter::parse(&ask.filter, listable)?;
        let sort = Sort::parse(&ask.sort_by, listable)?;
        let query = Self {
            scope,
            predicates,
            sort,
            after: None,
            size,
            room,
        };
        match ask.page_token.as_str() {
            "" => Ok(query),
            text => query.at(text, ask),
        }
    }

    /// The same at the place of a token.
    fn at(self, text: &str, ask: &ListAsk) -> Result<Self, Error> {
        let token = token::read(text, self.scope.listable())?;
        let other = token.scope != self.scope
            || (!ask.sort_by.trim().is_empty() && token.sort != self.sort)
            || (!ask.filter.trim().is_empty() && token.predicates != self.predicates);
        if other {
            return Err(Error::invalid(
                "page token does not match the supplied sort by and/or filtering criteria. Either specify the same \
                 criteria or leave the latter empty if page token is specified",
            ));
        }
        Ok(Self {
            predicates: token.predicates,
            sort: token.sort,
            after: Some(token.after),
            ..self
        })
    }

    /// The place of an item.
    pub fn position(&self, item: &impl Item) -> Position {
        Position {
            key: self.sort.key(item),
            id: item.id().to_owned(),
        }
    }

    /// The token of the page after the one that ends with `last`.
    #[must_use]
    pub fn token(&self, last: Position) -> String {
        token::write(&token::Token {
            scope: self.scope.clone(),
            predicates: self.predicates.clone(),
            sort: self.sort.clone(),
            after: last,
        })
    }

    /// Whether an item of the scope passes the predicates.
    pub fn matches(&self, item: &impl Item) -> bool {
        let mut predicates = self.predicates.iter();
        predicates.all(|predicate| predicate.accepts(item))
    }

    /// Whether a predicate or the order looks at a field.
    #[must_use]
    pub fn looks_at(&self, field: &Field) -> bool {
        self.sort.field == *field || self.predicates.iter().any(|test| test.is_about(field))
    }

    /// Which of two places comes first.
    #[must_use]
    pub fn order(&self, left: &Position, right: &Position) -> Ordering {
        match self.sort.descending {
            false => left.cmp(right),
            true => right.cmp(left),
        }
    }

    /// The page, of all items of the scope in any order.
    pub fn page<T: Item>(&self, items: impl IntoIterator<Item = T>) -> Page<T> {
        let items = items.into_iter().filter(|item| self.matches(item));
        let mut found: Vec<(Position, T)> =
            items.map(|item| (self.position(&item), item)).collect();
        let total = found.len() as u64;
        found.retain(|(place, _)| {
            let after = self.after.as_ref();
            after.is_none_or(|after| self.order(place, after) == Ordering::Greater)
        });
        found.sort_by(|(left, _), (right, _)| self.order(left, right));
        let given = self.given(found.iter().map(|(_, item)| item.size()));
        let more = given < found.len();
        let items = found.into_iter().take(given).map(|(_, item)| item);
        self.made(items.collect(), total, more)
    }

    /// The page of items that a store found in order, and whether more follow.
    pub fn made<T: Item>(&self, items: Vec<T>, total: u64, more: bool) -> Page<T> {
        let last = items.last().filter(|_| more);
        let next = last.map(|item| self.token(self.position(item)));
        Page {
            items,
            total,
            next: next.unwrap_or_default(),
        }
    }

    /// How many of the next items a page has, by the sizes of all of them.
    pub fn given(&self, sizes: impl IntoIterator<Item = usize>) -> usize {
        let (mut given, mut taken) = (0, 0_usize);
        for size in sizes.into_iter().take(self.size as usize) {
            taken = taken.saturating_add(size);
            if given > 0 && taken > self.room {
                break;
            }
            given += 1;
        }
        given
    }
}

impl Item for Pipeline {
    fn id(&self) -> &str {
        &self.id
    }

    fn text(&self, field: &Field) -> Option<Cow<'_, str>> {
        let text = match field {
            Field::Id => &self.id,
            Field::Name => &self.name,
            Field::DisplayName => &self.display_name,
            Field::Description => &self.description,
            Field::Namespace => &self.namespace,
            Field::Tag(key) => self.tags.get(key)?,
            Field::CreatedAt | Field::Status | Field::PipelineSpec => return None,
        };
        Some(text.into())
    }

    fn created_at(&self) -> i64 {
        self.created_at.as_second()
    }

    fn size(&self) -> usize {
        let tags = self.tags.iter().map(|(key, value)| key.len() + value.len());
        self.name.len() + self.display_name.len() + self.description.len() + tags.sum::<usize>()
    }
}

impl Item for PipelineVersion {
    fn id(&self) -> &str {
        &self.id
    }

    fn text(&self, field: &Field) -> Option<Cow<'_, str>> {
        let text = match field {
            Field::Id => &self.id,
            Field::Name => &self.name,
            Field::DisplayName => &self.display_name,
            Field::Description => &self.description,
            Field::Status => self.status.name(),
            Field::Tag(key) => self.tags.get(key)?,
            Field::PipelineSpec => {
                let spec = self.spec.as_ref();
                return Some(
                    spec.map_or_else(|_broken| String::new(), |spec| spec.text())
                        .into(),
                );
            }
            Field::CreatedAt | Field::Namespace => return None,
        };
        Some(text.into())
    }

    fn created_at(&self) -> i64 {
        self.created_at.as_second()
    }

    fn size(&self) -> usize {
        let tags = self.tags.iter().map(|(key, value)| key.len() + value.len());
        let spec = self.spec.as_ref().map_or(0, |spec| spec.text().len());
        let texts = [
            &self.name,
            &self.display_name,
            &self.description,
            &self.package_url,
            &self.code_source_url,
        ];
        texts.map(String::len).iter().sum::<usize>() + tags.sum::<usize>() + spec
    }
}

#[cfg(test)]
mod tests;
