//! Numbers that take as many bytes as they need.

/// Appends a number, small ones of either sign in few bytes.
pub(crate) fn put(out: &mut Vec<u8>, number: i64) {
    // What is below 0 has the last bit: -1 is 1, -2 is 3.
    let mut left = (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned();
    while left >= 0x80 {
        out.push(u8::try_from(left & 0x7f).unwrap_or_default() | 0x80);
        left >>= 7;
    }
    out.push(u8::try_from(left).unwrap_or_default());
}

/// Takes a number off the front; none if there is no whole one.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let half = i64::try_from(value >> 1).ok()?;
            return Some(if value & 1 == 1 { -half - 1 } else { half });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in proptest::collection::vec(any::<i64>(), 0..20)) {
            let mut out = Vec::new();
            for number in &numbers {
                put(&mut out, *number);
            }
            let mut rest = &*out;
            for number in &numbers {
                prop_assert_eq!(take(&mut rest), Some(*number));
            }
            prop_assert_eq!(take(&mut rest), None);
        }
    }

    #[test]
    fn small_numbers_take_one_byte_and_the_ends_come_back() {
        for number in [0, 63, -64, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            put(&mut out, number);
            assert!(out.len() == 1 || number.unsigned_abs() > 64, "{number}");
            assert_eq!(take(&mut &*out), Some(number));
        }
        assert_eq!(take(&mut &[0xff_u8; 12][..]), None);
    }
}
