//! Rows as every driver gives them, read by position.

use crate::seam::Error;

/// A row of any driver.
pub(crate) trait SqlRow {
    fn text(&self, at: usize) -> Result<Option<String>, Error>;
    fn int(&self, at: usize) -> Result<Option<i64>, Error>;
    fn bytes(&self, at: usize) -> Result<Option<Vec<u8>>, Error>;
    /// Numbers that were gathered from many rows; none of no rows.
    fn ints(&self, at: usize) -> Result<Vec<i64>, Error>;
}

/// A row of whichever driver.
pub(crate) type Row = Box<dyn SqlRow + Send + Sync>;

impl<T: SqlRow + ?Sized> SqlRow for Box<T> {
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
