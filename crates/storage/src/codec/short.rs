//! Payloads without the ids of their names.
//!
//! A payload has the UID of its object several times, and that of what owns it, and both are mostly
//! the ids of its record and result. Noise as they are, they are a tenth of what a body differs from
//! its dictionary in, and stand where the dictionary has its own. So bodies that refer to a
//! dictionary, and dictionaries, have a mark in their place.

use memchr::{memchr, memmem::Finder};

/// What begins a mark. JSON has it nowhere.
const MARK: u8 = 1;

/// A shorter id is not worth a mark.
const SHORTEST: usize = 8;

/// The ids of a record's name that its payload may have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ids {
    record: String,
    result: String,
}

impl Ids {
    /// The ids of a record and of its result.
    pub(crate) fn new(record: &str, result: &str) -> Self {
        let long = |id: &str| if id.len() < SHORTEST { "" } else { id }.to_owned();
        Self {
            record: long(record),
            result: long(result),
        }
    }

    /// What the character after a mark stands for.
    fn marked(&self) -> [&[u8]; 3] {
        [&[MARK], self.record.as_bytes(), self.result.as_bytes()]
    }

    /// The payload with marks, which is at most twice as long.
    pub(crate) fn shortened(&self, value: &[u8]) -> Vec<u8> {
        let marked = self.marked();
        let finders = marked.map(Finder::new);
        let find = |which: usize, from: usize| match marked[which] {
            [] => None,
            _ => finders[which].find(&value[from..]).map(|at| from + at),
        };
        let mut next = [0, 1, 2].map(|which| find(which, 0));
        let mut short = Vec::with_capacity(value.len());
        let mut from = 0;
        while let Some((at, which)) = (0..3).filter_map(|which| Some((next[which]?, which))).min() {
            short.extend_from_slice(&value[from..at]);
            short.extend_from_slice(&[MARK, u8::try_from(which).unwrap_or(0)]);
            from = at + marked[which].len();
            for (which, next) in next.iter_mut().enumerate() {
                if next.is_some_and(|at| at < from) {
                    *next = find(which, from);
                }
            }
        }
        short.extend_from_slice(&value[from..]);
        short
    }

    /// The payload of which this is the short form; none if it has a mark that stands for nothing,
    /// or the payload would have more than `most` bytes.
    pub(crate) fn whole(&self, short: &[u8], most: usize) -> Option<Vec<u8>> {
        let marked = self.marked();
        let mut value = Vec::with_capacity(most);
        let mut rest = short;
        loop {
            let at = memchr(MARK, rest).unwrap_or(rest.len());
            value.extend_from_slice(&rest[..at]);
            if let Some(mark) = rest.get(at + 1) {
                value.extend_from_slice(marked.get(usize::from(*mark))?);
            } else if at < rest.len() {
                return None;
            }
            if value.len() > most {
                return None;
            }
            match rest.get(at + 2..) {
                Some(more) => rest = more,
                None => return Some(value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id() -> impl Strategy<Value = String> {
        prop_oneof!["[ab]{8,10}", "[ab\u{1}]{8}", "[a-z]{0,9}", "[0-9a-f]{32}"]
    }

    proptest! {
        #[test]
        fn a_payload_comes_back(
            record in id(),
            result in id(),
            parts in prop::collection::vec((0..5_usize, prop::collection::vec(any::<u8>(), 0..6)), 0..12),
        ) {
            let ids = Ids::new(&record, &result);
            let mut value = Vec::new();
            for (which, noise) in parts {
                value.extend_from_slice(&noise);
                value.extend_from_slice([record.as_bytes(), result.as_bytes(), &[1], b"ab", &[]][which]);
            }
            let short = ids.shortened(&value);
            prop_assert!(short.len() <= 2 * value.len());
            prop_assert_eq!(ids.whole(&short, value.len()), Some(value.clone()));
            if let Some(less) = value.len().checked_sub(1) {
                prop_assert_eq!(ids.whole(&short, less), None);
            }
        }

        #[test]
        fn what_is_damaged_takes_no_more_than_it_may(short in prop::collection::vec(0..4_u8, 0..60)) {
            let ids = Ids::new("0123456789", "abcdefghij");
            if let Some(value) = ids.whole(&short, 50) {
                prop_assert!(value.len() <= 50);
            }
        }
    }

    #[test]
    fn ids_are_two_bytes() {
        let ids = Ids::new("5c1d8f7e-0000-4000-8000-000000000001", "short");
        let value = br#"{"uid":"5c1d8f7e-0000-4000-8000-000000000001","of":"short"}"#;
        assert_eq!(
            ids.shortened(value),
            b"{\"uid\":\"\x01\x01\",\"of\":\"short\"}"
        );
        assert_eq!(ids.whole(b"\x01", 9), None);
        assert_eq!(ids.whole(b"\x01\x03", 9), None);
    }
}
