//! Databases: a fresh SQLite file, and a fresh database in the PostgreSQL that
//! `HINDSIGHT_TEST_POSTGRES` names (`tests/with-postgres` starts one).

use sqlx::{Connection as _, Executor as _, PgConnection};

/// A database of one test.
#[derive(Debug)]
pub enum Database {
    /// A file in a folder that goes away with it.
    Sqlite { folder: tempfile::TempDir },
    /// A database on a shared server, dropped by [`Database::remove`].
    Postgres {
        /// URL of the server's own database.
        server: String,
        name: String,
    },
}

#[expect(
    clippy::disallowed_methods,
    reason = "the harness is told by the environment which server to use"
)]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Database {
    pub fn sqlite() -> Self {
        Self::Sqlite {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A new database on the test server, if there is one.
    pub async fn postgres() -> Option<Self> {
        let server = variable("HINDSIGHT_TEST_POSTGRES")?;
        let name = format!("hs_{}", uuid::Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.unwrap();
        connection
            .execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .await
            .unwrap();
        Some(Self::Postgres { server, name })
    }

    pub fn url(&self) -> String {
        match self {
            Self::Sqlite { folder } => format!("sqlite:{}", folder.path().join("t.db").display()),
            Self::Postgres { server, name } => {
                let (server, _) = server.rsplit_once('/').unwrap();
                format!("{server}/{name}")
            }
        }
    }

    pub async fn remove(self) {
        if let Self::Postgres { server, name } = self {
            let mut connection = PgConnection::connect(&server).await.unwrap();
            connection
                .execute(sqlx::AssertSqlSafe(format!(
                    "DROP DATABASE {name} WITH (FORCE)"
                )))
                .await
                .unwrap();
        }
    }
}

/// A database on PostgreSQL. Without a server the test is skipped, or fails where that is forbidden.
pub async fn postgres_or_skip() -> Option<Database> {
    let database = Database::postgres().await;
    if database.is_none() {
        assert!(
            variable("HINDSIGHT_FORBID_SKIP").is_none(),
            "HINDSIGHT_TEST_POSTGRES is not set; run this under tests/with-postgres"
        );
        eprintln!("skipped on PostgreSQL: HINDSIGHT_TEST_POSTGRES is not set");
    }
    database
}

/// Every database there is to test on. Without PostgreSQL it says so, or fails where skipping
/// is forbidden.
pub async fn each_database() -> Vec<Database> {
    let mut all = vec![Database::sqlite()];
    all.extend(postgres_or_skip().await);
    all
}
