//! Names of entries in a list of a file.

use crate::BadValue;

/// Longest name of an entry, in bytes.
const LONGEST: usize = 63;

/// Checks the name of an entry, such as a receiver of events or a policy of retention: 1 to 63 lower-case letters,
/// digits and `-`, which stand in metrics and in logs without quotes.
pub fn entry_name(name: &str) -> Result<(), BadValue> {
    let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=LONGEST).contains(&name.len()) && name.bytes().all(of_name) {
        return Ok(());
    }
    let want = format!("1 to {LONGEST} lower-case letters, digits and `-`");
    Err(BadValue::not_valid(name, "name", want))
}
