//! Archives of tar and gzip.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::{Choice, Error, LARGEST, PREFERRED, archive, content, entry_name};

/// Most bytes of an archive once they are decompressed, the entries that are passed over included.
const MOST_DECOMPRESSED: u64 = 2 * LARGEST as u64;

pub(super) fn text(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut archive_file = tar::Archive::new(Bounded {
        left: MOST_DECOMPRESSED,
        inner: MultiGzDecoder::new(bytes),
    });
    let mut choice = Choice::default();
    let mut first = None;
    for entry in archive_file.entries().map_err(archive)? {
        let entry = entry.map_err(archive)?;
        let path = entry.path_bytes().into_owned();
        let path = std::str::from_utf8(&path)
            .map_err(|_error| archive("the name of an entry is not UTF-8"))?;
        let name = entry_name(path)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        match (choice.is_candidate(name)?, name == PREFERRED) {
            (_, true) => return content(entry),
            (true, false) => first = Some(content(entry)?),
            (false, false) => {}
        }
    }
    first.ok_or_else(|| choice.nothing())
}

/// Fails after so many bytes.
struct Bounded<R> {
    left: u64,
    inner: R,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| {
            io::Error::other(format!(
                "more than {MOST_DECOMPRESSED} bytes once decompressed"
            ))
        })?;
        Ok(read)
    }
}
