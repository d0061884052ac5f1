//! Archives of zip.

use std::io::Cursor;

use zip::ZipArchive;

use super::{Choice, Error, MAX_ENTRIES, PREFERRED, archive, content, entry_name};

/// How the record at the end of an archive begins, and how many bytes its fixed part has.
const END: &[u8] = b"PK\x05\x06";
const END_SIZE: usize = 22;

/// How the same record of archives beyond 4 GiB begins, and the one that says where it is.
const ZIP64: [&[u8]; 2] = [b"PK\x06\x06", b"PK\x06\x07"];

/// Bytes from the end in which those records can be: the fixed part, a comment, and the locator of zip64.
const TAIL: usize = END_SIZE + 65_535 + 20;

pub(super) fn text(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    check_count(bytes)?;
    let mut file = ZipArchive::new(Cursor::new(bytes)).map_err(archive)?;
    let mut choice = Choice::default();
    let mut candidate = None;
    for index in 0..file.len() {
        let entry = file.by_index_raw(index).map_err(archive)?;
        let name = std::str::from_utf8(entry.name_raw())
            .map_err(|_error| archive("the name of an entry is not UTF-8"))?;
        let name = entry_name(name)?;
        if !entry.is_file() {
            continue;
        }
        if choice.is_candidate(name)? && (candidate.is_none() || name == PREFERRED) {
            candidate = Some(index);
        }
    }
    let candidate = candidate.ok_or_else(|| choice.nothing())?;
    content(file.by_index(candidate).map_err(archive)?)
}

/// Refuses an archive whose list of entries is long before it is read: each would take several hundred bytes.
fn check_count(bytes: &[u8]) -> Result<(), Error> {
    let tail = bytes
        .get(bytes.len().saturating_sub(TAIL)..)
        .unwrap_or_default();
    for (at, window) in tail.windows(4).enumerate() {
        if ZIP64.contains(&window) {
            return Err(archive("archives of zip64 are not read"));
        }
        if window != END {
            continue;
        }
        // Entries of this disk, and of all disks.
        for field in [at + 8, at + 10] {
            let count = tail.get(field..field + 2).map(|count| match count {
                [low, high] => usize::from(u16::from_le_bytes([*low, *high])),
                _ => usize::MAX,
            });
            if count.is_some_and(|count| count > MAX_ENTRIES) {
                return Err(archive(format_args!("more than {MAX_ENTRIES} entries")));
            }
        }
    }
    Ok(())
}
