//! Uids that follow from what stands beside them, so that a store need not keep them.

use jiff::Timestamp;
use uuid::{Uuid, Variant};

use super::Resource;

/// The uid of a new result or record, if its id is a UUID of random bits, as that of an object of Kubernetes.
///
/// It is a UUID of version 7 (RFC 9562, 5.7): the time of creation in microseconds, and the last 62 bits of the id. What is
/// deleted and created again has another one. A bit is set for results, which often have the id of a record.
pub fn following_uid(of: Resource, id: &str, created: Timestamp) -> Option<String> {
    let uuid = Uuid::try_parse(id).ok()?;
    let is_canonical = uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == id;
    if !is_canonical || uuid.get_variant() != Variant::RFC4122 {
        return None;
    }
    let created = u64::try_from(created.as_microsecond()).ok()?;
    let (milliseconds, rest) = (created / 1000, created % 1000);
    // The bits of later times reach the sign of an integer of SQL.
    if milliseconds >> 47 != 0 {
        return None;
    }
    let mark = match of {
        Resource::Records => 0x7000,
        Resource::Results => 0x7800,
    };
    let (_, last) = uuid.as_u64_pair();
    let first = milliseconds << 16 | mark | rest;
    Some(Uuid::from_u64_pair(first, last).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11";

    #[test]
    fn a_uid_has_the_time_and_the_end_of_the_id() {
        let created = Timestamp::from_microsecond(1_771_425_180_000_004).unwrap();
        let uid = |of| following_uid(of, ID, created).unwrap();
        assert_eq!(
            uid(Resource::Records),
            "019c712b-2960-7004-9d3a-6f2c1f0d9e11"
        );
        assert_eq!(
            uid(Resource::Results),
            "019c712b-2960-7804-9d3a-6f2c1f0d9e11"
        );
    }

    #[test]
    fn an_id_that_is_no_uuid_gives_none() {
        let (upper, none) = (ID.to_uppercase(), ID.replace('-', ""));
        let other = ID.replace("-9d3a", "-1d3a");
        let of = |id, at| following_uid(Resource::Records, id, at);
        for id in ["build-1", "", &upper, &none, &other] {
            assert_eq!(of(id, Timestamp::UNIX_EPOCH), None, "{id}");
        }
        assert_eq!(of(ID, Timestamp::MIN), None);
        assert_eq!(of(ID, Timestamp::MAX), None, "the year 6429 is the last");
    }
}
