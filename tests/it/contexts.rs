//! `hindsight context` and `hindsight login`.

use std::{io::Write as _, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};

use hindsight_access::auth::token_hash;
use serde_json::Value;

use crate::support::{
    Database, TestServer,
    objects::{TASK_RUN, bytes, task_run},
    process::{Said, hindsight},
};

/// Runs the program for a person whose folder of configuration is `home`.
async fn by(home: &Path, arguments: &[&str]) -> Said {
    typed(home, arguments, "").await
}

/// The same, with this on standard input.
async fn typed(home: &Path, arguments: &[&str], input: &'static str) -> Said {
    let mut command = hindsight();
    command
        .args(arguments)
        .env("XDG_CONFIG_HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that reads nothing may be over.
        drop(stdin.write_all(input.as_bytes()));
        drop(stdin);
        child.wait_with_output().unwrap()
    });
    ended.await.unwrap().into()
}

fn file(home: &Path) -> std::path::PathBuf {
    home.join("hindsight").join("contexts.toml")
}

/// A server that knows the tokens `reader`, which may read in `ci`, and `idle`, which may do nothing.
async fn guarded(database: &Database, folder: &Path) -> TestServer {
    let open = TestServer::start(database).await;
    let object = bytes(&task_run("build", "Failed"));
    open.given_record("ci/results/r/records/a", TASK_RUN, &object)
        .await;
    open.stop().await;
    let users = folder.join("users.toml");
    let [reader, idle] = ["reader", "idle"].map(token_hash);
    let text = format!(
        "[[users]]\nname = 'reader'\nsha256 = ['{reader}']\n\
         grants = [{{parents = ['ci'], role = 'readonly'}}]\n\
         [[users]]\nname = 'idle'\nsha256 = ['{idle}']\ngrants = []\n"
    );
    std::fs::write(&users, text).unwrap();
    let users = users.display().to_string();
    let more = [("auth", "tokens"), ("auth_tokens_file", users.as_str())];
    TestServer::start_with(database, &more).await
}

#[tokio::test]
async fn commands_ask_the_server_of_the_current_context_in_its_namespace() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let object = bytes(&task_run("build", "Failed"));
    server
        .given_record("ci/results/r/records/a", TASK_RUN, &object)
        .await;
    let said = by(home, &["context", "list"]).await;
    said.fails(
        0,
        "there are no contexts; make one with `hindsight context set NAME --server URL`",
    );
    let set = [
        "context",
        "set",
        "here",
        "--server",
        &server.url,
        "--namespace",
        "ci",
    ];
    by(home, &set)
        .await
        .fails(0, "stored context `here`, the current one");
    let mode = std::fs::metadata(file(home)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let runs = ["runs", "--columns", "name", "--no-headers"];
    assert_eq!(by(home, &runs).await.out, "build\n");
    by(home, &["describe", "build"])
        .await
        .prints(0, "build  TaskRun");
    // What is given counts before the context.
    let elsewhere = [&runs[..], &["-n", "dev"]].concat();
    by(home, &elsewhere)
        .await
        .fails(0, "no runs found in namespace dev");
    by(home, &[&runs[..], &["-A"]].concat())
        .await
        .prints(0, "build");
    let given = [&runs[..], &["--server", &server.url]].concat();
    by(home, &given)
        .await
        .fails(0, "no runs found in namespace default");

    by(
        home,
        &["context", "set", "away", "--server", "http://127.0.0.1:9"],
    )
    .await;
    by(home, &["runs", "--context", "away"])
        .await
        .fails(5, "127.0.0.1:9");
    by(home, &["context", "use", "away"])
        .await
        .fails(0, "`away` is the current context");
    by(home, &["runs"])
        .await
        .fails(5, "start one with `hindsight serve`");
    let listed = by(home, &["context", "list", "-o", "json"]).await;
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed[0]["name"], "away");
    assert_eq!(listed[0]["current"], true);
    assert_eq!(listed[1]["server"], server.url.as_str());
    let unknown = by(home, &["runs", "--context", "hree"]).await;
    unknown.fails(3, "no context `hree`; there are away, here");
    by(home, &["context", "use", "gone"])
        .await
        .fails(3, "no context `gone`");
    let deleted = by(home, &["context", "delete", "away"]).await;
    deleted.fails(0, "deleted context `away`; no context is current now");
    by(home, &["context", "set", "here", "--namespace", ""]).await;
    let said = by(home, &["runs", "--context", "here"]).await;
    said.fails(0, "no runs found in namespace default");
    server.stop().await;
}

#[tokio::test]
async fn a_token_is_stored_once_the_server_accepts_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let database = Database::sqlite();
    let server = guarded(&database, home).await;
    let login = ["login", "--server", &server.url, "--namespace", "ci"];
    let wrong = typed(home, &login, "wrong\n").await;
    assert_eq!(wrong.code, 4, "{wrong:?}");
    assert!(!file(home).exists(), "nothing is stored");
    let none = typed(home, &login, "\n").await;
    none.fails(2, "no token is on standard input");
    let said = typed(home, &login, "reader\n").await;
    said.fails(0, "as context `default`");
    assert!(
        !said.err.contains("reader") && !said.err.contains("warning"),
        "{said:?}"
    );
    by(home, &["runs"]).await.prints(0, "build");
    let shown = by(home, &["context", "list"]).await;
    shown.prints(0, "token");
    assert!(!shown.out.contains("reader"), "{shown:?}");

    // Another server, even at the same address, is not shown the token.
    let other = by(home, &["runs", "-n", "ci", "--server", &server.url]).await;
    assert_eq!(other.code, 4, "{other:?}");
    let asked = ["runs", "--server", &server.url, "--context", "default"];
    by(home, &asked).await.prints(0, "build");
    let given = ["runs", "--token", "idle"];
    assert_eq!(
        by(home, &given).await.code,
        4,
        "a token that is given counts"
    );

    let path = home.join("token");
    std::fs::write(&path, "idle\n").unwrap();
    let path = path.display().to_string();
    let login = [
        "login",
        "--context",
        "second",
        "--server",
        &server.url,
        "--token-file",
        &path,
    ];
    let said = by(home, &login).await;
    said.fails(0, "warning: you may not list runs of all namespaces");
    assert_eq!(by(home, &["runs", "-n", "ci"]).await.code, 4);
    std::fs::write(&path, "reader\n").unwrap();
    by(home, &["runs", "-n", "ci"]).await.prints(0, "build");

    let kept = file(home);
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = by(home, &["runs"]).await;
    open.fails(2, "it holds a token and others may read it (mode 0644)");
    server.stop().await;
}
