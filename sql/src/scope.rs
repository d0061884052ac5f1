//! Of which parents rows are asked.

use hindsight_filter::model::Parent;

/// Of which parents rows are asked where a statement names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Rows of all parents, for which the caller needs a right on all.
    All,
    /// Of these, and of no others whatever a statement names.
    Parents(Vec<Parent>),
}
