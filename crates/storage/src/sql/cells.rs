//! Rows as every driver gives them, read by position.

use crate::seam::Error;

/// A row of any driver.
pub(crate) trait Cells {
    /// Text.
    fn text(&self, at: usize) -> Result<Option<String>, Error>;
    /// A number.
    fn int(&self, at: usize) -> Result<Option<i64>, Error>;
    /// Bytes.
    fn bytes(&self, at: usize) -> Result<Option<Vec<u8>>, Error>;
    /// Numbers that were gathered from many rows; none of no rows.
    fn ints(&self, at: usize) -> Result<Vec<i64>, Error>;
}

/// A row of whichever driver.
pub(crate) type Row = Box<dyn Cells + Send + Sync>;

impl<T: Cells + ?Sized> Cells for Box<T> {
    fn text(&self, at: usize) -> Result<Option<String>, Error> {
        (**self).text(at)
    }

    fn int(&self, at: usize) -> Result<Option<i64>, Error> {
        (**self).int(at)
    }

    fn bytes(&self, at: usize) -> Result<Option<Vec<u8>>, Error> {
        (**self).bytes(at)
    }

    fn ints(&self, at: usize) -> Result<Vec<i64>, Error> {
        (**self).ints(at)
    }
}
