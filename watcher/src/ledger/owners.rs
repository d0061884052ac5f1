//! Who owns a run. Nearly always that is nobody or one, so that no list is kept for it.

use std::ops::Deref;

use super::Uid;

/// UIDs of owners; nearly always none or one.
#[derive(Debug, Clone, Default)]
pub enum Owners {
    /// The run has no owner.
    #[default]
    None,
    /// The run has this one owner.
    One(Uid),
    /// The run has several owners, at least two.
    Many(Box<[Uid]>),
}

impl FromIterator<Uid> for Owners {
    fn from_iter<I: IntoIterator<Item = Uid>>(all: I) -> Self {
        let mut all: Vec<Uid> = all.into_iter().collect();
        match all.len() {
            0 | 1 => all.pop().map_or(Self::None, Self::One),
            _ => Self::Many(all.into()),
        }
    }
}

impl Deref for Owners {
    type Target = [Uid];

    fn deref(&self) -> &[Uid] {
        match self {
            Self::None => &[],
            Self::One(uid) => std::slice::from_ref(uid),
            Self::Many(all) => all,
        }
    }
}
