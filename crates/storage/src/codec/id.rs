//! Identifiers as the tables hold them.
//!
//! Most names and uids are UUIDs, which take 36 characters as text and 16 bytes as numbers.
//! A UUID in its canonical form (RFC 9562, lower case) is kept as those bytes, any other text as
//! text: SQLite tells the two apart by their type. PostgreSQL has one type for both, so text of
//! 16 bytes gets a byte of zero before it, which no stored text begins with.

/// Bytes of a UUID.
const LENGTH: usize = 16;

/// The bytes of a text that is a UUID in its canonical form.
pub(crate) fn uuid(text: &str) -> Option<[u8; LENGTH]> {
    if text.len() != 36 {
        return None;
    }
    let uuid = uuid::Uuid::try_parse(text).ok()?;
    let mut buffer = uuid::Uuid::encode_buffer();
    (uuid.hyphenated().encode_lower(&mut buffer) == text).then(|| uuid.into_bytes())
}

/// The text of which these are the bytes.
pub(crate) fn of_uuid(bytes: [u8; LENGTH]) -> String {
    uuid::Uuid::from_bytes(bytes).to_string()
}

/// What one column of bytes holds of a text that has no U+0000.
pub(crate) fn packed(text: &str) -> Vec<u8> {
    match uuid(text) {
        Some(bytes) => bytes.to_vec(),
        None if text.len() == LENGTH => [&[0], text.as_bytes()].concat(),
        None => text.as_bytes().to_vec(),
    }
}

/// The text of which a column holds these bytes; none if no text is held so.
pub(crate) fn unpacked(bytes: &[u8]) -> Option<String> {
    if let Ok(bytes) = <[u8; LENGTH]>::try_from(bytes) {
        return Some(of_uuid(bytes));
    }
    let text = match bytes.strip_prefix(&[0]) {
        Some(text) if text.len() == LENGTH => text,
        _ => bytes,
    };
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<[u8; LENGTH]>().prop_map(of_uuid),
            any::<[u8; LENGTH]>().prop_map(|bytes| of_uuid(bytes).to_uppercase()),
            any::<[u8; LENGTH]>().prop_map(|bytes| of_uuid(bytes).replace('-', "")),
            "[^\u{0}]{14,18}",
            "[^\u{0}]{0,40}",
        ]
    }

    proptest! {
        #[test]
        fn a_packed_text_comes_back_and_is_no_other(a in texts(), b in texts()) {
            prop_assert_eq!(unpacked(&packed(&a)), Some(a.clone()));
            prop_assert_eq!(packed(&a) == packed(&b), a == b);
        }
    }

    #[test]
    fn a_uuid_takes_sixteen_bytes() {
        let text = "0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11";
        assert_eq!(packed(text).len(), LENGTH);
        assert_eq!(packed(&text.to_uppercase()).len(), 36);
    }
}
