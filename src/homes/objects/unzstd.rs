//! Frames of zstd as text, with bounded memory.

use std::io;

use zstd::{
    stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer},
    zstd_safe::DParameter,
};

/// Bytes of text that are given at once: those of a block, the unit in which zstd unpacks.
const TEXT: usize = 128 << 10;
/// Logarithm of the bytes that a frame may look back, which are held: 8 MiB, which RFC 8878 recommends every
/// decoder to support.
const WINDOW: u32 = 23;

/// Unpacks the frames of one object.
pub(super) struct Unzstd {
    decoder: Decoder<'static>,
    text: Vec<u8>,
    is_whole: bool,
}

impl Unzstd {
    pub(super) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW))?;
        Ok(Self {
            decoder,
            text: vec![0; TEXT],
            is_whole: true,
        })
    }

    /// Unpacks the next of `packed`, and takes away what it has read. It is empty once all was given.
    pub(super) fn next(&mut self, packed: &mut &[u8]) -> io::Result<&[u8]> {
        let mut input = InBuffer::around(packed);
        let mut output = OutBuffer::around(&mut self.text[..]);
        let wanted = self.decoder.run(&mut input, &mut output)?;
        let (read, written) = (input.pos(), output.pos());
        if read + written > 0 {
            self.is_whole = wanted == 0;
        }
        *packed = &packed[read..];
        Ok(&self.text[..written])
    }

    /// Whether the last frame has come to its end.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }
}
