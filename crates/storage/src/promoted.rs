//! Promoted fields: which there are, and bringing their indexes up to date.
//!
//! Invariant: for every field and record, either exactly the keys that the record's payload gives
//! are in `promoted_values`, or `promoted_unknown` has the record, or the field is not ready and not
//! asked. A key that is missing would hide the record from a filter on the value, a key too many
//! from a filter on its absence.
//!
//! Who writes a record says of which set of fields he knows. If that is not the present one, or
//! he says nothing because he is of a release that knows of none, a trigger of the database notes
//! the record down in the same transaction, and some server settles it later.

mod fill;
mod known;
#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use jiff::Timestamp;

pub(super) use self::{
    fill::fill,
    known::{Known, Promotions, is_asked},
};
use super::{
    Error,
    objects::Objects,
    pieces::{Pieces, Shelf},
    snapshot::Row,
    sql::{dialect::Dialect, promote, promoted, read::Cells as _, statement::Statement},
};
use hindsight_filter::promoted::{Kind, Path};

/// Most fields that may be promoted.
pub const MOST_PROMOTED: u32 = 16;

/// A promoted field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// Its number, which no other field gets.
    pub id: i64,
    /// Which part of payloads.
    pub path: Path,
    /// Which values of it.
    pub kind: Kind,
    /// When it was added.
    pub added: Timestamp,
    /// Whether its index is whole; until then nobody asks it.
    pub ready: bool,
    /// The last row that was looked at, of those that were there before the field.
    pub done_row: i64,
    /// The last row that was there before the field.
    pub until_row: i64,
}

/// How far a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Records that were looked at.
    pub records: u64,
    /// How much closer to the last row it is.
    pub rows: u64,
    /// Whether the index is whole.
    pub ready: bool,
}

/// A database, to those who look after promoted fields.
#[async_trait]
pub(super) trait Desk: Shelf + Sized {
    /// How to say things to it.
    fn dialect(&self) -> Dialect;

    /// The pieces that are in memory.
    fn packed(&self) -> &Pieces;

    /// What is known of promoted fields.
    fn noticed(&self) -> &Promotions;

    /// Where big bodies lie, if an object store is configured.
    fn objects(&self) -> Option<&Objects>;

    /// The rows of a statement.
    async fn ask(&self, statement: &Statement) -> Result<Vec<Row>, Error>;

    /// Does all of the statements, or none, and says how many rows they changed.
    async fn tell(&self, statements: Vec<Statement>) -> Result<u64, Error>;
}

/// The fields that are known, looked up if that was long ago.
pub(super) async fn known(desk: &impl Desk) -> Result<Arc<Known>, Error> {
    if let Some(known) = desk.noticed().recent() {
        return Ok(known);
    }
    look(desk).await
}

/// The fields that there are now.
pub(super) async fn look(desk: &impl Desk) -> Result<Arc<Known>, Error> {
    let rows = desk.ask(&promoted::known()).await?;
    let known = Arc::new(Known::read(&rows)?);
    desk.noticed().keep(&known);
    Ok(known)
}

/// Adds a field; its index is empty.
///
/// # Errors
/// [`Error::Exists`] if it is there, [`Error::Unfit`] if there are too many.
pub(super) async fn promote(
    desk: &impl Desk,
    path: &Path,
    kind: Kind,
    added: Timestamp,
) -> Result<Promotion, Error> {
    let text = path.to_string();
    let add = promote::add(
        desk.dialect(),
        &text,
        kind.name(),
        added.as_microsecond(),
        i64::from(MOST_PROMOTED),
    );
    let before = look(desk).await?;
    if before.at(path).is_some() {
        return Err(Error::Exists(text));
    }
    desk.tell(add).await?;
    let now = look(desk).await?;
    match now.at(path) {
        Some(promotion) if before.at(path).is_none() && promotion.kind == kind => {
            Ok(promotion.clone())
        }
        Some(_) => Err(Error::Exists(text)),
        None => Err(Error::Unfit(format!(
            "{MOST_PROMOTED} fields are promoted, which is the most; remove one that nobody \
             asks for with `hindsight index remove`"
        ))),
    }
}

/// Removes a field. What is stored of it is cleared by [`settle`].
///
/// # Errors
/// [`Error::Missing`] if it is not there.
pub(super) async fn demote(desk: &impl Desk, path: &Path) -> Result<(), Error> {
    let text = path.to_string();
    if look(desk).await?.at(path).is_none() {
        return Err(Error::Missing(text));
    }
    desk.tell(promote::remove(desk.dialect(), &text)).await?;
    look(desk).await.map(drop)
}

/// Settles what was written by those who did not know every field, and clears what is left of
/// fields that were removed, at most `most` rows at once; says how many there were.
pub(super) async fn settle(desk: &impl Desk, most: NonZeroU32) -> Result<u64, Error> {
    let (mut done, mut after) = (0, i64::MIN);
    while let Some((last, count)) = fill::settle(desk, after, most).await? {
        done += count;
        after = last;
    }
    for row in desk.ask(&promote::gone()).await? {
        let Some(field) = row.int(0)? else { continue };
        loop {
            let clear = promote::clear(desk.dialect(), field, most.get().into());
            match desk.tell(clear).await? {
                0 => break,
                gone => done += gone,
            }
        }
        desk.tell(vec![promote::cleared(field)]).await?;
    }
    Ok(done)
}
