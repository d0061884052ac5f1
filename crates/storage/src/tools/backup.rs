//! Copies of SQLite files: made while a server writes, looked at, and put into place whole.
//!
//! Nothing is ever overwritten. A file appears under its name only when it is complete, checked
//! and synced; what is left of a copy that failed is removed. PostgreSQL has tools of its own.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    fsck::{Depth, Event, Seen, fsck},
    snapshot::Snapshot,
};
use crate::{
    driver::{
        migrations::{Found, needed, require_current},
        sqlite,
    },
    seam::Error,
    sql::dialect::Dialect,
    store::resolve::{Address, address},
};

/// A copy that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// How many bytes it has.
    pub bytes: u64,
    /// The version of its schema.
    pub version: i64,
    /// What was seen in it; only rows of the present schema can be looked at.
    pub seen: Option<Seen>,
}

/// Copies the database at `url` into the new file `to`, while servers use it.
///
/// # Errors [`Error::Incompatible`] if it is no SQLite file of ours, or `to` exists;
/// [`Error::Unavailable`] if the copy cannot be written.
pub async fn backup(
    url: &str,
    to: &Path,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<Copied, Error> {
    let from = file(url, "backed up")?;
    is_free(to)?;
    let found = ours(&from).await?;
    let part = part(to);
    let done = copy_and_check(&from, &part, &found, tell).await;
    let (seen, bytes) = finish(done, &part, to)?;
    Ok(Copied {
        bytes,
        version: version(&found),
        seen,
    })
}

async fn copy_and_check(
    from: &Path,
    part: &Path,
    found: &Found,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<Option<Seen>, Error> {
    let mut before = None;
    let mut seen = |now: u64, total: u64| {
        if before.is_none() {
            tell(Event::Stage {
                what: "bytes",
                total,
            });
        }
        tell(Event::Seen(now.saturating_sub(before.unwrap_or(0))));
        before = Some(now);
    };
    sqlite::copy(from, part, &mut seen).await?;
    check(part, found, tell).await
}

/// Copies the backup `from` into the new file that `url` names.
///
/// # Errors
/// [`Error::Incompatible`] if the backup is none of ours, is damaged, or is in use, or the new file
/// exists; [`Error::Unavailable`] if it cannot be written.
pub async fn restore(
    from: &Path,
    url: &str,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<Copied, Error> {
    let to = file(url, "restored")?;
    is_free(&to)?;
    if sqlite::has_log(from) {
        return Err(Error::Incompatible(format!(
            "`{}` has a log beside it, so it is in use or was copied while it was; give a file \
             that `hindsight backup` made",
            from.display()
        )));
    }
    let found = ours(from).await?;
    let mut damaged = false;
    let mut watch = |event: Event| {
        damaged |= matches!(event, Event::Found(_));
        tell(event);
    };
    let seen = check(from, &found, &mut watch).await?;
    if damaged {
        return Err(Error::Incompatible(format!(
            "`{}` is damaged; nothing was restored. Take an older backup",
            from.display()
        )));
    }
    let part = part(&to);
    let (source, target) = (from.to_owned(), part.clone());
    let copy = move || io::copy(&mut fs::File::open(source)?, &mut sqlite::private(&target)?);
    let copied = tokio::task::spawn_blocking(copy).await;
    let copied = copied.map_err(io::Error::other).and_then(|copied| copied);
    let done = copied.map_err(|e| unwritable(&to, e));
    let (_, bytes) = finish(done, &part, &to)?;
    Ok(Copied {
        bytes,
        version: version(&found),
        seen,
    })
}

/// The file that `url` names.
fn file(url: &str, what: &str) -> Result<PathBuf, Error> {
    match address(url)? {
        Address::Sqlite(path) => Ok(path),
        Address::Postgres(_) => Err(Error::Incompatible(format!(
            "a PostgreSQL database is {what} with its own tools, `pg_dump` and `pg_restore` or \
             `pg_basebackup`; docs/operate.md shows how"
        ))),
    }
}

fn is_free(to: &Path) -> Result<(), Error> {
    let Some(there) = sqlite::exists(to) else {
        return Ok(());
    };
    Err(Error::Incompatible(format!(
        "`{}` exists, and nothing is overwritten; give another name, or stop what uses it and move \
         it away",
        there.display()
    )))
}

/// What is in a file, if it is ours.
async fn ours(path: &Path) -> Result<Found, Error> {
    let found = sqlite::look(path).await?;
    needed(&found, Dialect::Sqlite, &format!("`{}`", path.display()))?;
    match found {
        Found::Ours(_) => Ok(found),
        _ => Err(Error::Incompatible(format!(
            "`{}` is empty",
            path.display()
        ))),
    }
}

fn version(found: &Found) -> i64 {
    match found {
        Found::Ours(applied) => applied.last().map_or(0, |applied| applied.version),
        _ => 0,
    }
}

/// Looks at rows and references, if they are of the present schema, and says what it saw.
async fn check(
    path: &Path,
    found: &Found,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<Option<Seen>, Error> {
    if require_current(found, Dialect::Sqlite, "").is_err() {
        return Ok(None);
    }
    let url = format!("sqlite:{}", path.display());
    let mut snapshot = Snapshot::open(&url).await?;
    let seen = fsck(&mut snapshot, Depth::Quick, tell).await;
    snapshot.close().await;
    seen.map(Some)
}

/// A name beside `to` that nobody else has.
fn part(to: &Path) -> PathBuf {
    let mut part = to.to_owned().into_os_string();
    part.push(format!(".{}.part", uuid::Uuid::new_v4().simple()));
    part.into()
}

/// Puts a copy that is done under its name, or removes what is left of it; gives its bytes too.
fn finish<T>(done: Result<T, Error>, part: &Path, to: &Path) -> Result<(T, u64), Error> {
    let placed = done.and_then(|done| {
        let bytes = place(part, to).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::Incompatible(format!(
                "`{}` was created by another process, and nothing is overwritten",
                to.display()
            )),
            _ => unwritable(to, e),
        })?;
        Ok((done, bytes))
    });
    // After it was placed this takes away its other name.
    if let Err(error) = fs::remove_file(part)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "`{}` is left over and may be removed", part.display());
    }
    placed
}

/// Syncs a file, gives it a second name that is free, and syncs that.
fn place(part: &Path, to: &Path) -> io::Result<u64> {
    let file = fs::File::open(part)?;
    file.sync_all()?;
    let bytes = file.metadata()?.len();
    fs::hard_link(part, to)?;
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::File::open(folder)?.sync_all()?;
    Ok(bytes)
}

fn unwritable(to: &Path, source: io::Error) -> Error {
    tracing::debug!(error = %source, "`{}` cannot be written", to.display());
    Error::Unavailable {
        what: "writing the copy",
        source: source.into(),
    }
}
