//! Where the lines of a log are: in the store, or in memory since they were read from elsewhere.

use std::sync::Arc;

use hindsight_logs::{Chunk, Lines, Reader, Selection, Window};
use hindsight_storage::{self as storage, LogChunks, LogStore};

use super::elsewhere::Lent;

/// Where the sources of a log are read.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Stored(Arc<dyn LogStore>),
    Lent(Arc<Lent>),
}

fn gone() -> storage::Error {
    storage::Error::Missing("a source of the log".to_owned())
}

impl Place {
    /// Begins to read a source.
    pub(super) async fn open(
        &self,
        row: i64,
        selection: Selection,
    ) -> Result<Reader, storage::Error> {
        match self {
            Self::Stored(store) => Reader::open(&LogChunks::new(&**store, row), selection).await,
            Self::Lent(lent) => {
                let source = lent.source(row).ok_or_else(gone)?;
                Ok(Reader::open(source, selection).await?)
            }
        }
    }

    /// The next lines of a source.
    pub(super) async fn next(
        &self,
        row: i64,
        reader: &mut Reader,
    ) -> Result<Option<Lines>, storage::Error> {
        match self {
            Self::Stored(store) => reader.next(&LogChunks::new(&**store, row)).await,
            Self::Lent(lent) => {
                let source = lent.source(row).ok_or_else(gone)?;
                Ok(reader.next(source).await?)
            }
        }
    }

    /// The chunk of a source with a line, or the one after it.
    pub(super) async fn chunk(&self, row: i64, line: i64) -> Result<Option<Chunk>, storage::Error> {
        let window = Window::default();
        match self {
            Self::Stored(store) => store.next_chunk(row, line, window).await,
            Self::Lent(lent) => {
                let source = lent.source(row).ok_or_else(gone)?;
                Ok(source.chunk(line, window).cloned())
            }
        }
    }
}
