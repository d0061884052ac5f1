//! Files that are not as they were written.

use bytes::Bytes;
use hindsight_archive::Reader;

use crate::support::{runs, written};

#[test]
fn a_byte_that_was_changed_is_noticed_or_is_no_part_of_a_row() {
    let (file, tally) = written(&runs(4), 6);
    let read = |bytes: Vec<u8>| Reader::open(Bytes::from(bytes)).and_then(|reader| reader.verify());
    let mut noticed = 0;
    let places: Vec<usize> = (0..file.len()).step_by(97).collect();
    for place in &places {
        let mut bytes = file.to_vec();
        bytes[*place] ^= 0x10;
        match read(bytes) {
            Ok(found) => assert_eq!(found, tally, "at {place}"),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed * 2 > places.len(), "{noticed} of {}", places.len());
    for length in [0, 3, 8, 100, file.len() / 2, file.len() - 1] {
        assert!(read(file[..length].to_vec()).is_err(), "{length} bytes");
    }
}
