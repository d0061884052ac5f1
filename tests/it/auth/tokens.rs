//! A file of users at the start, and while the server runs.

use std::{path::Path, sync::Arc, time::Duration};

use hindsight::app::App;
use hindsight_access::auth::token_hash;
use hindsight_runtime::clock::SystemClock;
use hindsight_runtime::error::report;

use super::bearer;
use crate::support::{
    Database, TestServer,
    http::{Http, target},
    process::run,
    server::config,
};

fn write(path: &Path, token: &str) {
    let hash = token_hash(token);
    let text = format!(
        "[[users]]\nname = 'a'\nsha256 = ['{hash}']\n\
         grants = [{{parents = ['*'], role = 'readonly'}}]\n"
    );
    std::fs::write(path, text).unwrap();
}

async fn status(server: &TestServer, token: &str) -> u16 {
    let mut http = Http::one(&server.url).await;
    let token = bearer(token);
    let path = target("-/results", &[]);
    let headers = [("authorization", token.as_str())];
    http.send("GET", &path, &headers, "").await.status
}

#[tokio::test]
async fn a_new_token_works_once_its_digest_is_in_the_file_and_an_old_one_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    write(&path, "old");
    let shown = path.display().to_string();
    let more = [("auth", "tokens"), ("auth_tokens_file", shown.as_str())];
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &more).await;
    assert_eq!(status(&server, "old").await, 200);

    let printed = run(&["token"]).await.out;
    let part = |name: &str| {
        let line = printed.lines().find(|line| line.starts_with(name));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    let token = part("token");
    assert_eq!(part("sha256"), token_hash(&token));
    assert_eq!(status(&server, &token).await, 401);
    write(&path, &token);
    let patience = Duration::from_secs(30);
    let taken = async {
        while status(&server, &token).await != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(patience, taken).await.unwrap();
    assert_eq!(status(&server, "old").await, 401);
    server.stop().await;
}

#[tokio::test]
async fn without_users_that_make_sense_no_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let shown = path.display().to_string();
    let database = Database::sqlite();
    let more = [("auth", "tokens"), ("auth_tokens_file", shown.as_str())];
    let start = || async {
        let config = config(&database, &more);
        let started = App::bind(&config, Arc::new(SystemClock)).await;
        report(&started.unwrap_err())
    };
    let said = start().await;
    assert!(
        said.contains("cannot be read") && said.contains(&shown),
        "{said}"
    );
    std::fs::write(&path, "[[users]]\nname = 'a'\nsha256 = ['x']\n").unwrap();
    let said = start().await;
    assert!(said.contains("user `a`: a sha256 is not"), "{said}");
    let file = database.url().strip_prefix("sqlite:").unwrap().to_owned();
    assert!(
        !Path::new(&file).exists(),
        "no schema is made before the users are read"
    );
}
