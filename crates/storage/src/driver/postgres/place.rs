//! Where a database is, and how to connect to it.

use std::fmt;

use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use crate::seam::Error;

/// Where the database is, without the password.
#[derive(Debug, Clone)]
pub(super) struct Place {
    host: String,
    port: u16,
    database: String,
    pub(super) user: String,
}

impl Place {
    fn of(options: &PgConnectOptions) -> Self {
        let user = options.get_username().to_owned();
        Self {
            host: options.get_socket().map_or_else(
                || options.get_host().to_owned(),
                |socket| socket.display().to_string(),
            ),
            port: options.get_port(),
            database: options.get_database().unwrap_or(&user).to_owned(),
            user,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the PostgreSQL database `{}` at {}:{}",
            self.database, self.host, self.port
        )
    }
}

/// How to connect to the database at `url`, and its place.
pub(super) fn options(url: &str) -> Result<(PgConnectOptions, Place), Error> {
    let connect: PgConnectOptions = url.parse().map_err(|e: sqlx::Error| {
        // The text holds a password, and the driver's word does not repeat it.
        Error::Incompatible(format!(
            "the address of the PostgreSQL database is not one: {e}; want \
             `postgres://USER:PASSWORD@HOST:PORT/DATABASE`"
        ))
    })?;
    let connect = connect
        .application_name("hindsight")
        .disable_statement_logging();
    let place = Place::of(&connect);
    Ok((connect, place))
}
