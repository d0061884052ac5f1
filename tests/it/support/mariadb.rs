//! A MariaDB of one test.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use sqlx::{ConnectOptions as _, MySqlConnection, mysql::MySqlConnectOptions};

use super::{
    cluster::{command_of, free_port},
    database::variable,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A throwaway server with one database; ended and removed with this value.
#[derive(Debug)]
pub struct MariaDb {
    folder: tempfile::TempDir,
    server: Child,
    port: u16,
}

impl MariaDb {
    /// Makes and starts a server with the database `runs`, in which the user `reader` with the password `p@ss/w:d` may
    /// read and do nothing else. None if MariaDB is not installed.
    pub async fn start() -> Option<Self> {
        let Some((program, user)) = mariadbd().zip(variable("HINDSIGHT_TEST_PG_USER")) else {
            assert!(
                variable("HINDSIGHT_FORBID_SKIP").is_none(),
                "run `make mariadb`, and this under tests/with-postgres"
            );
            eprintln!("skipped: mariadbd is not there, or no user to run it");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let owned = Command::new("chown").arg(&user).arg(folder.path()).status();
        assert!(
            owned.unwrap().success(),
            "the folder of the server has its owner"
        );
        let data = format!("--datadir={}", folder.path().join("data").display());
        let made = command_of(&user, Path::new("mariadb-install-db"))
            .args([
                "--no-defaults",
                &data,
                "--skip-test-db",
                "--skip-name-resolve",
            ])
            .arg("--auth-root-authentication-method=normal")
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let port = free_port();
        let server = command_of(&user, &program)
            .args(["--no-defaults", &data, "--skip-name-resolve"])
            .args(["--bind-address=127.0.0.1", &format!("--port={port}")])
            .arg(format!(
                "--socket={}",
                folder.path().join("socket").display()
            ))
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = Self {
            folder,
            server,
            port,
        };
        let mut connection = server.connect("mysql").await;
        let given = "CREATE DATABASE runs; CREATE USER reader@127.0.0.1 IDENTIFIED BY 'p@ss/w:d'; \
                     GRANT SELECT ON runs.* TO reader@127.0.0.1";
        sqlx::raw_sql(given).execute(&mut connection).await.unwrap();
        Some(server)
    }

    /// A connection of the superuser, once the server answers.
    pub async fn connect(&self, database: &str) -> MySqlConnection {
        let options = MySqlConnectOptions::new()
            .socket(self.folder.path().join("socket"))
            .username("root")
            .database(database);
        let until = Instant::now() + PATIENCE;
        loop {
            match options.connect().await {
                Ok(connection) => return connection,
                Err(error) => assert!(
                    Instant::now() < until,
                    "{error}: {:?}",
                    fs::read_to_string(self.folder.path().join("log"))
                ),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The address of the database for the user who may read it.
    pub fn url(&self) -> String {
        format!("mysql://reader:p%40ss%2Fw%3Ad@127.0.0.1:{}/runs", self.port)
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

fn mariadbd() -> Option<PathBuf> {
    let path = variable("PATH")?;
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let mut programs = folders.map(|folder| folder.join("mariadbd"));
    programs.find(|program| program.exists())
}
