//! Which fields of a message are wanted, as a tree of names.

use std::collections::BTreeMap;

/// Most paths in one mask.
const MAX_PATHS: usize = 256;
/// Most names in one path.
const MAX_DEPTH: usize = 32;

/// What is wanted of a value: all of it, or only what is named below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mask {
    /// Empty: the whole value.
    below: BTreeMap<String, Mask>,
}

impl Mask {
    /// Reads comma-separated paths of dotted names; no path at all is no mask. A path that
    /// another path begins with wins: it asks for more.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        let mut root = Self::default();
        let paths = text
            .split(',')
            .map(str::trim)
            .filter(|path| !path.is_empty());
        for (position, path) in paths.enumerate() {
            if position == MAX_PATHS {
                return Err(format!("fields: more than {MAX_PATHS} paths"));
            }
            if path.split('.').count() > MAX_DEPTH {
                return Err(format!("fields: a path has more than {MAX_DEPTH} names"));
            }
            root.add(path);
        }
        Ok(Some(root).filter(|root| !root.is_whole()))
    }

    fn add(&mut self, path: &str) {
        let (name, rest) = match path.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (path, None),
        };
        let known = self.below.contains_key(name);
        let next = self.below.entry(name.to_owned()).or_default();
        match rest {
            None => next.below.clear(),
            Some(_) if known && next.is_whole() => {}
            Some(rest) => next.add(rest),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.below.is_empty()
    }

    pub(super) fn below(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.below.iter().map(|(name, mask)| (name.as_str(), mask))
    }

    /// What is wanted of the part of this name; nothing if it is not.
    pub(super) fn of(&self, name: &str) -> Option<&Self> {
        self.below.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_path_asks_for_all_below_it() {
        let mask = |text| Mask::parse(text).unwrap();
        assert_eq!(mask("a.b,a"), mask("a"));
        assert_eq!(mask("a,a.b"), mask("a"));
        assert_eq!(mask(" a.b , ,a.c,"), mask("a.c,a.b"));
        assert_ne!(mask("a.b"), mask("a"));
        assert_eq!(mask(" , "), None);
    }

    #[test]
    fn a_mask_has_bounds() {
        let many = (0..=MAX_PATHS).map(|n| format!("f{n}")).collect::<Vec<_>>();
        assert!(Mask::parse(&many.join(",")).is_err());
        assert!(Mask::parse(&"a.".repeat(MAX_DEPTH)).is_err());
        assert!(Mask::parse(&"a.".repeat(MAX_DEPTH - 1)).is_ok());
    }
}
