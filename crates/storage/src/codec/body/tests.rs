//! Whether bodies come back, and damage is seen.

use sha2::{Digest as _, Sha256};

use super::*;

fn ids() -> Ids {
    Ids::new("5c1d8f7e-0000-4000-8000-000000000001", "result")
}

fn stored(packed: &Packed) -> Stored {
    Stored {
        codec: packed.code(),
        bytes: packed.bytes.to_vec(),
        size: packed.size,
        sha256: packed.sha256.to_vec(),
        dictionary: packed.dictionary,
        ids: ids(),
    }
}

/// Bytes without a pattern, the same each time.
fn noise(count: usize) -> Vec<u8> {
    let blocks = (0..count.div_ceil(32) as u64).map(|at| Sha256::digest(at.to_le_bytes()));
    let mut bytes: Vec<u8> = blocks.flatten().collect();
    bytes.truncate(count);
    bytes
}

fn samples() -> Vec<Vec<u8>> {
    vec![
        Vec::new(),
        b"{}".to_vec(),
        vec![b'a'; 100_000],
        noise(5000),
        noise(3 << 20),
        vec![b'b'; 3 << 20],
    ]
}

#[test]
fn bodies_come_back_byte_for_byte() {
    for value in samples() {
        let mut packed = Packed::loose(value.clone().into());
        packed.compress(&ids(), None);
        assert!(packed.bytes.len() <= value.len());
        assert_eq!(unpack(&stored(&packed), None).unwrap(), value);
    }
}

#[test]
fn bodies_come_back_from_what_differs() {
    let mut other = noise(60_000);
    other.rotate_left(7);
    let contents = [noise(60_000), other, b"{\"a\":1}".to_vec()];
    for content in contents {
        let dictionary = Dictionary::new(7, content.clone().into());
        for value in samples().into_iter().chain([content.clone()]) {
            let mut packed = Packed::loose(value.clone().into());
            packed.compress(&ids(), Some(&dictionary));
            assert_eq!(unpack(&stored(&packed), Some(&content)).unwrap(), value);
        }
    }
}

#[test]
fn a_body_like_its_dictionary_is_little_and_another_is_said_to_gain_little() {
    let content = noise(60_000);
    let dictionary = Dictionary::new(7, ids().shortened(&content).into());
    let mut value = content.clone();
    value.splice(30_000..30_010, *b"0123456789");
    let short = ids().shortened(&value).len();
    let mut packed = Packed::loose(value.into());
    assert_eq!(packed.compress(&ids(), Some(&dictionary)), Help::Well);
    assert_eq!(
        (packed.codec, packed.dictionary),
        (Codec::Referring, Some(7))
    );
    assert!(packed.bytes.len() < 100, "{}", packed.bytes.len());
    // The four bytes that all frames begin with are not kept.
    assert_eq!(says(&packed.bytes), None);
    assert_eq!(says(&framed(&packed.bytes)), Some(short));

    let text: String = (0..2000_u32)
        .map(|at| format!("{:x} ", at.wrapping_mul(2_654_435_761)))
        .collect();
    let mut packed = Packed::loose(text.into());
    assert_eq!(packed.compress(&ids(), Some(&dictionary)), Help::Little);
}

#[test]
fn a_body_whose_short_form_is_longer_than_a_dictionary_serves_comes_back() {
    let content = noise(60_000);
    let dictionary = Dictionary::new(7, content.clone().into());
    for marks in [0, 1, 500_000] {
        let mut value = content.repeat(MOST_REFERRING / content.len() + 1);
        value.truncate(MOST_REFERRING);
        value.retain(|byte| *byte != 1);
        value.resize(MOST_REFERRING - marks, b'x');
        value.resize(MOST_REFERRING, 1);
        let mut packed = Packed::loose(value.clone().into());
        packed.compress(&ids(), Some(&dictionary));
        let back = unpack(&stored(&packed), Some(&content)).unwrap();
        assert!(back == value, "{marks} marks");
    }
}

#[test]
fn a_damaged_body_is_an_error() {
    let content = noise(4000);
    let dictionary = Dictionary::new(7, content.clone().into());
    let mut alone = Packed::loose(vec![b'a'; 1000].into());
    alone.compress(&ids(), None);
    assert_eq!(alone.codec, Codec::Zstd);
    let mut referring = Packed::loose(content[100..3900].to_vec().into());
    referring.compress(&ids(), Some(&dictionary));
    assert_eq!(referring.codec, Codec::Referring);
    for packed in [alone, referring] {
        let whole = stored(&packed);
        for at in 0..packed.bytes.len() {
            let mut broken = whole.clone();
            broken.bytes[at] ^= 0x11;
            // Some bits of a frame mean nothing; then the bytes that come out are the same.
            if let Ok(value) = unpack(&broken, Some(&content)) {
                assert_eq!(value, unpack(&whole, Some(&content)).unwrap());
            }
        }
        let broken = |change: fn(&mut Stored)| {
            let mut broken = whole.clone();
            change(&mut broken);
            unpack(&broken, Some(&content)).unwrap_err().to_string()
        };
        assert!(broken(|s| s.codec = 9).contains("unknown codec 9"));
        assert!(broken(|s| s.codec = 0).contains("bytes where"));
        let longer = broken(|s| s.size += 1);
        assert!(longer.contains("its size differs") || longer.contains("bytes where"));
        assert!(broken(|s| s.size = -1).contains("a body of -1 bytes"));
        assert!(broken(|s| s.sha256[3] ^= 1).contains("SHA-256 differs"));
    }
}

#[test]
fn the_wrong_dictionary_is_seen() {
    let content = noise(4000);
    let dictionary = Dictionary::new(7, content.clone().into());
    let mut packed = Packed::loose(content.clone().into());
    packed.compress(&ids(), Some(&dictionary));
    let mut wrong = content;
    wrong[2000] ^= 1;
    assert!(unpack(&stored(&packed), Some(&wrong)).is_err());
    assert!(unpack(&stored(&packed), None).is_err());
}
