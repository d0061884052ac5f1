//! Etags as they are stored.
//!
//! The server makes an etag of the uid and the time of the update, which stand beside it. It
//! would be the longest text of a row but labels, so one that follows from them is stored as
//! empty text; any other, as another server may have made it, as it is.

use jiff::Timestamp;

use super::{dialect::Dialect, statement::Statement};
use hindsight_filter::model::{Etag, Resource};

/// What is stored of an etag.
pub(super) fn stored<'e>(etag: &'e Etag, uid: &str, updated: Timestamp) -> &'e str {
    match etag.as_str() == following(uid, updated.as_microsecond()) {
        true => "",
        false => etag.as_str(),
    }
}

/// The etag of which this is stored.
pub(crate) fn shown(stored: String, uid: &str, update_us: i64) -> Etag {
    Etag::from_text(match stored.is_empty() {
        true => following(uid, update_us),
        false => stored,
    })
}

/// The etag that follows. Text throughout, here and in SQL: the time in nanoseconds is more
/// than a number of 64 bits holds.
fn following(uid: &str, update_us: i64) -> String {
    format!("{uid}-{update_us}000")
}

/// Appends the etag of a row.
pub(super) fn of(out: &mut Statement, dialect: Dialect, of: Resource) {
    let (etag, update_us) = match of {
        Resource::Results => ("results.etag", "results.update_us"),
        Resource::Records => ("records.etag", "records.update_us"),
    };
    out.push("CASE ").push(etag).push(" WHEN '' THEN ");
    dialect.identifier(out, dialect.uid(of));
    out.push(" || '-' || ").push(update_us);
    out.push(" || '000' ELSE ").push(etag).push(" END");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_stored_of_an_etag_shows_it(uid in ".{0,40}", nanos: i64, other in ".{1,60}") {
            let updated = Timestamp::from_nanosecond(nanos.into()).unwrap();
            for etag in [Etag::new(&uid, updated), Etag::from_text(other)] {
                let text = stored(&etag, &uid, updated).to_owned();
                prop_assert_eq!(shown(text, &uid, updated.as_microsecond()), etag);
            }
        }
    }

    #[test]
    fn one_that_the_server_made_takes_no_room() {
        for micros in [-1, 1, 1_767_226_000_001_000, 253_402_207_200_000_000] {
            let updated = Timestamp::from_microsecond(micros).unwrap();
            assert_eq!(stored(&Etag::new("u", updated), "u", updated), "");
        }
        let finer = Timestamp::from_nanosecond(1_000_001).unwrap();
        let etag = Etag::new("u", finer);
        assert_eq!(stored(&etag, "u", finer), "u-1000001");
    }
}
