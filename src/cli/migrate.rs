//! `hindsight migrate`.

use std::{io::Write as _, process::ExitCode};

use clap::ArgMatches;

use super::{failure::Failure, serve};
use crate::app::Error;
use hindsight_storage::resolve::{Options, Schema, Unreachable, open};

pub(super) const ABOUT: &str = "Bring the database's schema up to date, and say what was done.

`hindsight serve` does this at its start as well; run it by itself to migrate before a rollout, or \
under a database user with more rights than the server has. Several may run at once: the work is \
done once. Migrations only add, so the previous version of the server keeps working beside it.";

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = serve::load(matches)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(error.to_string()))?;
    let applied = runtime.block_on(async {
        let options = Options {
            schema: Schema::Migrate,
            objects: Unreachable::Ignore,
            ..Options::default()
        };
        let opened = open(&config.db.expose(), &options).await?;
        opened.maintenance.close().await;
        Ok(opened.applied)
    });
    let applied = applied.map_err(|source| {
        serve::failure(&Error::Store {
            db: config.db.to_string(),
            source,
        })
    })?;
    let mut out = std::io::stdout().lock();
    match applied.as_slice() {
        [] => writeln!(out, "{}: the schema is up to date", config.db)?,
        versions => {
            let versions: Vec<_> = versions.iter().map(ToString::to_string).collect();
            writeln!(
                out,
                "{}: applied migration {}",
                config.db,
                versions.join(", ")
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
