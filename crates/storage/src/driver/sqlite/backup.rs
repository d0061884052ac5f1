//! A copy of a file that is in use: whole, of one moment, and compact.

use std::{fs, io, os::unix::fs::OpenOptionsExt as _, path::Path, time::Duration};

use sqlx::{Connection, Row};

use super::{errors::classify, file::File, migrate, snapshot};
use crate::{driver::migrations::Found, seam::Error};

/// How often it is looked how far the copy is.
const LOOK: Duration = Duration::from_millis(100);

/// What is in the file, which is not changed.
pub(crate) async fn look(path: &Path) -> Result<Found, Error> {
    let file = File::named(path);
    let mut connection = snapshot::connect(&file).await?;
    let found = migrate::found(&mut connection).await;
    drop(connection.close().await);
    found.map_err(|e| snapshot::unfit(&file, e))
}

/// Whether there is a file, or one that SQLite would take for a part of it.
pub(crate) fn exists(path: &Path) -> Option<std::path::PathBuf> {
    let file = File::named(path);
    let beside = ["", "-wal", "-shm", "-journal"].map(|ending| file.beside(ending));
    beside
        .into_iter()
        .find(|path| path.symlink_metadata().is_ok())
}

/// Whether a log lies beside the file that is not yet part of it.
pub(crate) fn has_log(path: &Path) -> bool {
    let log = File::named(path).beside("-wal").metadata();
    log.is_ok_and(|log| log.len() > 0)
}

/// Makes an empty file that only its owner can read.
pub(crate) fn private(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Copies the file at `from` into a new one at `to`, while others write to it. `seen` is told how
/// many bytes there are, of about how many.
pub(crate) async fn copy(
    from: &Path,
    to: &Path,
    seen: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<(), Error> {
    let failed = |error| classify("copying the file", error);
    let file = File::named(from);
    let mut connection = migrate::connect(file.options()).await.map_err(failed)?;
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let size = sqlx::query(size).fetch_one(&mut connection).await;
    let size: i64 = size.and_then(|row| row.try_get(0)).map_err(failed)?;
    let total = u64::try_from(size).unwrap_or(0);
    let Some(target) = to.to_str() else {
        return Err(Error::Incompatible(format!(
            "`{}` is not UTF-8",
            to.display()
        )));
    };
    // SQLite writes into an empty file, and what it makes itself may be read by everybody.
    private(to).map_err(|error| failed(sqlx::Error::Io(error)))?;
    {
        let copying = sqlx::query("VACUUM INTO $1")
            .bind(target)
            .execute(&mut connection);
        let mut copying = std::pin::pin!(copying);
        loop {
            match tokio::time::timeout(LOOK, &mut copying).await {
                Ok(done) => {
                    done.map_err(failed)?;
                    break;
                }
                Err(_not_yet) => {
                    let now = to.metadata().map_or(0, |file| file.len());
                    seen(now.min(total), total);
                }
            }
        }
    }
    seen(total, total);
    connection.close().await.map_err(failed)
}
