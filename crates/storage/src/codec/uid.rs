//! Uids as the tables hold them: one that follows from id and time of creation is not kept. SQL follows it as well, see
//! `Dialect::uid`.

use std::borrow::Cow;

use hindsight_filter::model::{Resource, following_uid};
use jiff::Timestamp;

use super::text::{self, SAME};
use crate::seam::Error;

/// What is kept of a uid, as text.
pub(crate) fn stored<'u>(of: Resource, uid: &'u str, id: &str, created: Timestamp) -> Cow<'u, str> {
    match following_uid(of, id, created).is_some_and(|made| made == uid) {
        true => SAME.into(),
        false => text::stored(uid),
    }
}

/// The uid of which this is kept.
pub(crate) fn shown(of: Resource, kept: String, id: &str, create_us: i64) -> Result<String, Error> {
    if kept != SAME {
        return text::shown(kept);
    }
    let created = Timestamp::from_microsecond(create_us).ok();
    let uid = created.and_then(|created| following_uid(of, id, created));
    uid.ok_or_else(|| Error::Corrupt(format!("the uid of `{id}` does not follow")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11";

    proptest! {
        #[test]
        fn what_is_stored_shows_the_uid(micros in 0..1_i64 << 50, other in ".{0,40}") {
            let created = Timestamp::from_microsecond(micros).unwrap();
            for of in [Resource::Results, Resource::Records] {
                let made = following_uid(of, ID, created).unwrap();
                for (uid, is_short) in [(&made, true), (&other, false)] {
                    let kept = stored(of, uid, ID, created).into_owned();
                    prop_assert_eq!(kept == SAME, is_short);
                    prop_assert_eq!(&shown(of, kept, ID, micros).unwrap(), uid);
                }
            }
        }
    }

    #[test]
    fn a_uid_that_cannot_follow_is_damage() {
        assert!(shown(Resource::Records, SAME.to_owned(), "x", 0).is_err());
    }
}
