//! Databases to test on: a file in a temporary directory, a database on a PostgreSQL server.

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, postgres::PgConnectOptions,
    sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;

/// The server to test on, if the environment names one.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests are configured by the environment, and say what they skip"
)]
pub fn postgres_server() -> Option<PgConnectOptions> {
    if let Ok(url) = std::env::var("HINDSIGHT_TEST_POSTGRES") {
        return Some(
            url.parse()
                .expect("HINDSIGHT_TEST_POSTGRES is the URL of a superuser"),
        );
    }
    assert!(
        std::env::var_os("HINDSIGHT_FORBID_SKIP").is_none(),
        "HINDSIGHT_TEST_POSTGRES is not set, and HINDSIGHT_FORBID_SKIP is"
    );
    eprintln!("skipped: HINDSIGHT_TEST_POSTGRES names no PostgreSQL server");
    None
}

/// A database that exists for one case.
#[async_trait]
pub trait Database: Send + Sync {
    /// How to open it.
    fn url(&self) -> String;
    /// Does away with it.
    async fn remove(self);
}

/// A file that does not exist yet.
#[derive(Debug)]
pub struct SqliteFile(TempDir);

impl SqliteFile {
    /// In a directory of its own.
    pub async fn fresh() -> Self {
        Self(TempDir::new().expect("there is room for a temporary directory"))
    }

    /// Puts other bytes in the place of every payload that is kept as it is; says of how many.
    pub async fn spoil(&self, bytes: &str) -> u64 {
        let options: SqliteConnectOptions = self.url().parse().expect("it is the URL of a file");
        let mut connection = options.connect().await.expect("the file opens");
        let spoil = sqlx::query("UPDATE bodies SET bytes = ? WHERE codec = 0");
        let done = spoil.bind(bytes.as_bytes()).execute(&mut connection).await;
        done.expect("payloads can be changed").rows_affected()
    }
}

#[async_trait]
impl Database for SqliteFile {
    fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("store.db").display())
    }

    async fn remove(self) {
        self.0.close().expect("the directory is removed");
    }
}

/// A database of its own on a server.
#[derive(Debug)]
pub struct PostgresDatabase {
    server: PgConnectOptions,
    name: String,
}

impl PostgresDatabase {
    /// Made with the defaults of the server.
    pub async fn fresh(server: &PgConnectOptions) -> Self {
        Self::fresh_with(server, "").await
    }

    /// Made with these options of `CREATE DATABASE`.
    pub async fn fresh_with(server: &PgConnectOptions, with: &str) -> Self {
        let name = format!("hs_{}", uuid::Uuid::new_v4().simple());
        let database = Self {
            server: server.clone(),
            name,
        };
        database
            .on_server(format!("CREATE DATABASE {} {with}", database.name))
            .await;
        database
    }

    /// The name of the database on its server.
    pub fn name(&self) -> &str {
        &self.name
    }

    async fn on_server(&self, sql: String) {
        let mut connection = self.server.connect().await.expect("the server answers");
        connection
            .execute(AssertSqlSafe(sql))
            .await
            .expect("the server does as told");
        connection.close().await.expect("the connection closes");
    }
}

#[async_trait]
impl Database for PostgresDatabase {
    fn url(&self) -> String {
        self.server
            .clone()
            .database(&self.name)
            .to_url_lossy()
            .to_string()
    }

    async fn remove(self) {
        self.on_server(format!("DROP DATABASE {} WITH (FORCE)", self.name))
            .await;
    }
}
