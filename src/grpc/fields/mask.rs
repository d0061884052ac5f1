//! Which fields of a message are wanted, as a tree of names.

use std::collections::BTreeMap;

use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage as _, Value};

use super::payload;

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

    /// Takes away from `message` what is not wanted.
    pub(super) fn apply(&self, message: &mut DynamicMessage) {
        if self.is_whole() {
            return;
        }
        // The fields of a Struct are keys of one map, and are named as such.
        if message.descriptor().full_name() == "google.protobuf.Struct" {
            for (_, value) in message.fields_mut() {
                self.narrow(value);
            }
            return;
        }
        let unwanted: Vec<_> = message
            .fields()
            .map(|(field, _)| field)
            .filter(|field| !self.below.contains_key(field.name()))
            .collect();
        for field in unwanted {
            message.clear_field(&field);
        }
        for (field, value) in message.fields_mut() {
            let Some(mask) = self.below.get(field.name()).filter(|mask| !mask.is_whole()) else {
                continue;
            };
            match (value, field.kind()) {
                (Value::Bytes(bytes), Kind::Bytes) => {
                    if let Some(part) = payload::part(bytes, mask) {
                        *bytes = part.into();
                    }
                }
                (value, _) => mask.narrow(value),
            }
        }
    }

    fn narrow(&self, value: &mut Value) {
        match value {
            Value::Message(message) => self.apply(message),
            Value::List(items) => items.iter_mut().for_each(|item| self.narrow(item)),
            Value::Map(entries) => {
                entries.retain(|key, value| {
                    let MapKey::String(key) = key else {
                        return true;
                    };
                    let wanted = self.below.get(key);
                    if let Some(mask) = wanted.filter(|mask| !mask.is_whole()) {
                        mask.narrow(value);
                    }
                    wanted.is_some()
                });
            }
            // A path below a plain value asks for the value.
            _ => {}
        }
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
