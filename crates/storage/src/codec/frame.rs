//! Frames of zstd: by themselves, or with a dictionary.

use std::cell::RefCell;

use bytes::Bytes;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{
        CCtx, CDict, DCtx, MAGICNUMBER, compress_bound, get_error_name, get_frame_content_size,
    },
};

use crate::seam::Error;

/// How hard zstd tries. Higher levels win a few per cent on runs and cost several times more.
const LEVEL: i32 = 3;

/// The same for dictionaries, of which there is one among 90 bodies: 5 % less than at 3, for 0.4 ms
/// more. Level 15 takes half a per cent less, and 1.2 ms.
const DENSE: i32 = 12;

/// Bodies above this many bytes have enough to repeat in themselves.
pub(crate) const MOST_REFERRING: usize = 1 << 20;

/// What every frame begins with (RFC 8878, 3.1.1).
const MAGIC: [u8; 4] = MAGICNUMBER.to_le_bytes();

thread_local! {
    /// Contexts have some 200 KiB of tables, which are not made again for each body.
    static COMPRESS: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    static DECOMPRESS: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// One frame that stands by itself.
pub(crate) fn alone(value: &[u8]) -> Option<Vec<u8>> {
    if value.len() > MOST_REFERRING {
        // The tables for big windows are not kept.
        return Compressor::new(LEVEL).ok()?.compress(value).ok();
    }
    let mut frame = Vec::with_capacity(compress_bound(value.len()));
    COMPRESS
        .with_borrow_mut(|context| context.compress(&mut frame, value, LEVEL))
        .ok()?;
    Some(shrunk(frame))
}

/// One frame that stands by itself, of what is written seldom and kept for long.
pub(crate) fn dense(value: &[u8]) -> Option<Vec<u8>> {
    // The tables for this level are not kept.
    Compressor::new(DENSE).ok()?.compress(value).ok()
}

/// One frame that repeats what the dictionary has, without its magic number.
pub(crate) fn against(value: &[u8], dictionary: &CDict<'static>) -> Option<Vec<u8>> {
    let mut frame = Vec::with_capacity(compress_bound(value.len()));
    COMPRESS
        .with_borrow_mut(|context| context.compress_using_cdict(&mut frame, value, dictionary))
        .ok()?;
    Some(frame.get(MAGIC.len()..)?.to_vec())
}

/// A frame that was kept without its magic number.
pub(crate) fn framed(bytes: &[u8]) -> Vec<u8> {
    [&MAGIC, bytes].concat()
}

/// Without the room that the worst case would have taken.
fn shrunk(mut frame: Vec<u8>) -> Vec<u8> {
    frame.shrink_to_fit();
    frame
}

/// How many bytes a frame says that it holds.
pub(crate) fn says(frame: &[u8]) -> Option<usize> {
    let size = get_frame_content_size(frame).ok().flatten()?;
    usize::try_from(size).ok()
}

/// What a frame of `wanted` bytes holds.
pub(crate) fn opened(frame: &[u8], wanted: usize, dictionary: &[u8]) -> Result<Bytes, Error> {
    let corrupt = |why: &str| Error::Corrupt(format!("a compressed body does not open: {why}"));
    // Looked at first, so that no damaged number decides how much memory is taken.
    if says(frame) != Some(wanted) {
        return Err(corrupt("its size differs"));
    }
    if wanted > MOST_REFERRING {
        return Decompressor::new()
            .and_then(|mut zstd| zstd.decompress(frame, wanted))
            .map(Bytes::from)
            .map_err(|e| corrupt(&e.to_string()));
    }
    let mut value = Vec::with_capacity(wanted);
    DECOMPRESS
        .with_borrow_mut(|context| context.decompress_using_dict(&mut value, frame, dictionary))
        .map_err(|code| corrupt(get_error_name(code)))?;
    Ok(value.into())
}
