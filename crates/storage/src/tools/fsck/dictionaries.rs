//! The dictionaries that the payloads of a page refer to.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    codec::dictionary::{Dictionary, Loaded, StoredDictionary},
    seam::Error,
    sql::{read, row::SqlRow as _},
    tools::snapshot::Snapshot,
};

/// Bytes of dictionaries that are kept for the next page.
const MOST: usize = 64 << 20;

/// Dictionaries that were read.
#[derive(Debug, Default)]
pub(crate) struct DictionaryReader {
    /// None for one that is damaged.
    known: HashMap<i64, Option<Arc<Dictionary>>>,
    bytes: usize,
}

impl DictionaryReader {
    /// Those of these dictionaries that are there and whole.
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
            let statement = read::dictionaries(snapshot.dialect, &unknown);
            for row in snapshot.rows(&statement).await? {
                let Some(id) = row.int(0)? else { continue };
                let dictionary = read::dictionary(&row, 0)
                    .and_then(StoredDictionary::open)
                    .ok();
                self.bytes += dictionary
                    .as_ref()
                    .map_or(0, |dictionary| dictionary.content().len());
                self.known.insert(id, dictionary.map(Arc::new));
            }
        }
        let found = |id: &i64| Some((*id, Arc::clone(self.known.get(id)?.as_ref()?)));
        Ok(ids.iter().filter_map(found).collect())
    }
}
