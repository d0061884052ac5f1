//! Opening a database, or saying what is wrong with it.

use std::time::Duration;

use sqlx::{
    ConnectOptions, Connection, Executor, Row,
    postgres::{PgConnectOptions, PgConnection, PgPoolOptions},
};

use super::{
    Postgres,
    analyze::AnalyzeTrigger,
    errors::{classify, refused},
    group::Groups,
    migrate,
    place::{self, Place},
    pool::Pool,
    reader::WATCHED,
};
use crate::{
    driver::{
        migrations::{Found, needed, require_current},
        options::{Opening, Options, Schema, Synchronous},
    },
    seam::Error,
    sql::dialect::Dialect,
};

/// The oldest PostgreSQL that is taken, as it says its number itself.
const OLDEST: i32 = 140_000;

/// How long opening waits for an answer.
pub(super) const ANSWER: Duration = Duration::from_secs(10);

/// How long an idle connection is taken to be alive.
const TRUSTED: Duration = Duration::from_millis(500);

/// Where the server's default lets writes return before they are on disk, it is not taken.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false) \
                       WHERE current_setting('synchronous_commit') = 'off'";

/// Compiling a statement takes longer than lists and sums do. A page that is read out of order is
/// mostly in memory or on a disk without a head: by the default of 4 all rows of a parent are
/// gathered and sorted for the first fifty, which an index has in order.
const PLANNING: &str = "SET jit = off; SET random_page_cost = 1.1";

/// What every connection says first.
fn greeting(wanted: Synchronous, place: &Place) -> Result<&'static str, Error> {
    Ok(match wanted {
        Synchronous::Durable => DURABLE,
        Synchronous::Named("on") => "SET synchronous_commit = on",
        Synchronous::Named("remote_apply") => "SET synchronous_commit = remote_apply",
        Synchronous::Named("remote_write") => "SET synchronous_commit = remote_write",
        Synchronous::Named("local") => "SET synchronous_commit = local",
        Synchronous::Named("off") => "SET synchronous_commit = off",
        Synchronous::Named(other) => {
            return Err(Error::Incompatible(format!(
                "{place} knows no synchronous_commit `{other}`; want on, remote_apply, \
                 remote_write, local or off"
            )));
        }
    })
}

/// How acknowledged writes may be lost.
async fn weak(connection: &mut PgConnection, greeting: &str) -> Result<Vec<String>, sqlx::Error> {
    const ASK: &str = "SELECT current_setting('fsync'), current_setting('full_page_writes')";
    let mut weak = Vec::new();
    if greeting.ends_with("= off") {
        let text = "synchronous_commit is `off`: writes that were acknowledged in the last half \
                    second are lost if the database crashes";
        weak.push(text.to_owned());
    }
    let row = sqlx::query(ASK).fetch_one(connection).await?;
    if row.try_get::<String, _>(0)? == "off" {
        let text = "the database has fsync `off`: if its machine crashes, writes that were \
                    acknowledged are lost, and it may be damaged";
        weak.push(text.to_owned());
    }
    if row.try_get::<String, _>(1)? == "off" {
        let text = "the database has full_page_writes `off`: if its machine crashes while a page \
                    is written, it may be damaged";
        weak.push(text.to_owned());
    }
    Ok(weak)
}

/// Opens the database at `url`.
pub(crate) async fn open(url: &str, options: &Options) -> Result<(Postgres, Opening), Error> {
    open_within(url, options, ANSWER).await
}

/// Opens the database at `url`, which has so long to answer, however long it is migrated then.
pub(super) async fn open_within(
    url: &str,
    options: &Options,
    answer: Duration,
) -> Result<(Postgres, Opening), Error> {
    let (connect, place) = place::options(url)?;
    let greeting = greeting(options.synchronous, &place)?;
    let (connection, found) = tokio::time::timeout(answer, look(&connect, &place))
        .await
        .map_err(|late| refused(&place, sqlx::Error::Io(std::io::Error::other(late))))??;
    let opening = prepare(connection, &found, &place, options, greeting).await?;
    let most = options.max_connections.get();
    let long = options.long_connections.get().min(most - 1).max(1);
    let pool = |most| pool(connect.clone(), most, options, greeting);
    let home = tokio::runtime::Handle::current();
    let short = pool(most.saturating_sub(long).max(1));
    Ok((
        Postgres {
            place,
            groups: Groups::new(short.clone(), home.clone()),
            pool: short,
            long: pool(long),
            home,
            growth: AnalyzeTrigger::new(),
        },
        opening,
    ))
}

/// At most so many connections, opened as they are needed.
fn pool(connect: PgConnectOptions, most: u32, options: &Options, greeting: &'static str) -> Pool {
    // The server ends what takes longer, also for callers who have no deadline.
    let timeout = format!("{}ms", options.statement_timeout.as_millis());
    let pool = PgPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(options.wait)
        .test_before_acquire(false)
        .before_acquire(|connection, idle| {
            // Asking each time would double the round trips; the server goes away rarely.
            Box::pin(async move {
                if idle.idle_for > TRUSTED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .after_connect(move |connection, _| {
            let timeout = timeout.clone();
            Box::pin(async move {
                // Not among the options of a connection, which poolers do not pass on.
                sqlx::query("SELECT set_config('statement_timeout', $1, false)")
                    .bind(timeout)
                    .execute(&mut *connection)
                    .await?;
                connection.execute(WATCHED).await?;
                connection.execute(greeting).await?;
                connection.execute(PLANNING).await.map(drop)
            })
        })
        .connect_lazy_with(connect);
    Pool::new(pool)
}

/// Connects, and looks at what is there.
async fn look(connect: &PgConnectOptions, place: &Place) -> Result<(PgConnection, Found), Error> {
    let unfit = |error| refused(place, error);
    let mut connection = connect.connect().await.map_err(unfit)?;
    fits(&mut connection, place).await?;
    let found = migrate::look(&mut connection).await.map_err(unfit)?;
    Ok((connection, found))
}

/// Migrates the database, if that is wanted. An index of many rows takes its time, as does
/// waiting for another process that makes it.
async fn prepare(
    mut connection: PgConnection,
    found: &Found,
    place: &Place,
    options: &Options,
    greeting: &str,
) -> Result<Opening, Error> {
    let unfit = |error| refused(place, error);
    let applied = match options.schema {
        Schema::Require => {
            require_current(found, Dialect::Postgres, &place.to_string())?;
            Vec::new()
        }
        Schema::Migrate => {
            needed(found, Dialect::Postgres, &place.to_string())?;
            migrate::migrate(&mut connection, place).await?
        }
    };
    let weak = weak(&mut connection, greeting).await.map_err(unfit)?;
    connection
        .close()
        .await
        .map_err(|e| classify("closing a connection", e))?;
    Ok(Opening { applied, weak })
}

/// Refuses what cannot hold the tables.
async fn fits(connection: &mut PgConnection, place: &Place) -> Result<(), Error> {
    const LOOK: &str = "SELECT current_setting('server_encoding'), \
                        current_setting('server_version_num')::int, \
                        current_setting('server_version')";
    let row = sqlx::query(LOOK).fetch_one(connection).await;
    let (encoding, number, version): (String, i32, String) = row
        .and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))
        .map_err(|error| refused(place, error))?;
    match misfit(&encoding, number, &version) {
        None => Ok(()),
        Some(why) => Err(Error::Incompatible(format!("{place} {why}"))),
    }
}

/// What is wrong with a database, if anything is.
pub(super) fn misfit(encoding: &str, number: i32, version: &str) -> Option<String> {
    if number < OLDEST {
        return Some(format!(
            "is PostgreSQL {version}, which knows no statistics of expressions; want 14 or later"
        ));
    }
    (encoding != "UTF8").then(|| {
        format!(
            "has the encoding {encoding}, which cannot hold every text; make one with \
             `createdb --encoding=UTF8 --template=template0`"
        )
    })
}
