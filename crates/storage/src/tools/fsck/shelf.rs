//! The pieces that the payloads of a page refer to.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    codec::dictionary::{Loaded, Piece, StoredPiece},
    seam::Error,
    sql::{cells::Cells as _, read},
    tools::snapshot::Snapshot,
};

/// Bytes of pieces that are kept for the next page.
const MOST: usize = 64 << 20;

/// Pieces that were read.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    /// None for one that is damaged.
    known: HashMap<i64, Option<Arc<Piece>>>,
    bytes: usize,
}

impl Shelf {
    /// Those of these pieces that are there and whole.
    pub(crate) async fn load(
        &mut self,
        snapshot: &mut Snapshot,
        ids: &BTreeSet<i64>,
    ) -> Result<Loaded, Error> {
        if self.bytes > MOST {
            *self = Self::default();
        }
        let known = |id: &&i64| !self.known.contains_key(id);
        let unknown: Vec<i64> = ids.iter().filter(known).copied().collect();
        if !unknown.is_empty() {
            let statement = read::pieces(snapshot.dialect, &unknown);
            for row in snapshot.rows(&statement).await? {
                let Some(id) = row.int(0)? else { continue };
                let piece = read::piece(&row, 0).and_then(StoredPiece::open).ok();
                self.bytes += piece.as_ref().map_or(0, |piece| piece.content().len());
                self.known.insert(id, piece.map(Arc::new));
            }
        }
        let found = |id: &i64| Some((*id, Arc::clone(self.known.get(id)?.as_ref()?)));
        Ok(ids.iter().filter_map(found).collect())
    }
}
