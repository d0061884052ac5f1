//! Opening a file, or saying what is wrong with it.

use std::{path::Path, time::Duration};

use sqlx::sqlite::SqlitePoolOptions;

use super::{Sqlite, file::File, migrate, writer::Writer};
use crate::{
    driver::{
        migrations::{Found, needed, require_current},
        options::{Opening, Options, Schema},
    },
    seam::Error,
    sql::dialect::Dialect,
};

/// How long a request waits for a reader.
const ACQUIRE: Duration = Duration::from_secs(30);

/// Opens the file at `path`.
pub(crate) async fn open(path: &Path, options: &Options) -> Result<(Sqlite, Opening), Error> {
    let file = File::named(path).synchronous(options.synchronous)?;
    let weak = file.weak();
    let found = if file.has_content()? {
        migrate::look(&file).await?
    } else {
        Found::Empty
    };
    let applied = match options.schema {
        Schema::Require => {
            if !file.path().is_file() {
                return Err(Error::Incompatible(format!(
                    "there is no file {file}; name the database with --db, or make one with `hindsight \
                     migrate`"
                )));
            }
            require_current(&found, Dialect::Sqlite, &file.to_string())?;
            Vec::new()
        }
        Schema::Migrate => {
            needed(&found, Dialect::Sqlite, &file.to_string())?;
            migrate::migrate(&file).await?
        }
    };
    let writer = Writer::start(&file).await?;
    let pool = || {
        SqlitePoolOptions::new()
            .max_connections(options.max_connections.get())
            .min_connections(0)
            .acquire_timeout(ACQUIRE)
            .test_before_acquire(false)
            .connect_lazy_with(file.options().pragma("query_only", "ON"))
    };
    let (readers, low_priority) = (pool(), pool());
    Ok((
        Sqlite {
            file,
            readers,
            low_priority,
            writer,
        },
        Opening { applied, weak },
    ))
}
