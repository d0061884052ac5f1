//! What the program says of itself, and before it asks a server.

use super::given;
use crate::support::{Database, process::run};

#[tokio::test]
async fn what_goes_wrong_before_a_call_is_named() {
    let (_database, server) = given().await;
    let tls = server.url.replace("http://", "https://");
    let said = run(&["list", "runs", "--server", &tls]).await;
    said.fails(5, "does not speak TLS; use http://");
    let said = run(&["list", "runs", "--token-file", "nope"]).await;
    said.fails(2, "`nope` cannot be read");
    let said = run(&["list", "runs", "--client-cert", "x", "--client-key", "y"]).await;
    assert_eq!(said.code, 2, "{said:?}");
    let folder = tempfile::tempdir().unwrap();
    let missing = format!("sqlite:{}/none.db", folder.path().display());
    let said = run(&["index", "list", "--db", &missing]).await;
    assert!(said.err.contains("there is no file"), "{said:?}");
    let said = run(&[
        "all-in-one",
        "--db",
        &missing,
        "--watcher-kubeconfig",
        "nope",
    ])
    .await;
    assert_eq!(said.code, 2, "{said:?}");
    let why = "kubeconfig `nope` cannot be read: No such file or directory (os error 2)";
    assert!(said.err.trim_end().ends_with(why), "{}", said.err);
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing was made"
    );
    server.stop().await;
}

#[tokio::test]
async fn help_names_every_command_once_and_migrate_only_its_own_flags() {
    let said = run(&["--help"]).await;
    let tree = hindsight::cli::command();
    let mut named: Vec<&str> = said
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
        .collect();
    named.sort_unstable();
    let mut commands: Vec<_> = tree
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(clap::Command::get_name)
        .collect();
    commands.push("help");
    commands.sort_unstable();
    assert_eq!(named, commands, "{}", said.out);
    let said = run(&["migrate", "--help"]).await;
    assert!(said.out.lines().count() < 30, "{}", said.out);
}

#[tokio::test]
async fn the_program_explains_itself() {
    for arguments in [
        &["--help"][..],
        &["list", "--help"],
        &["serve", "--help"],
        &["import", "--help"],
    ] {
        let said = run(arguments).await;
        said.prints(0, "hindsight");
    }
    let said = run(&["completion", "bash"]).await;
    assert!(said.out.contains("_hindsight"), "{}", said.out);
    let said = run(&["config", "print", "--db", "postgres://u:hunter2@h/d"]).await;
    assert!(
        said.out.contains("--db") && !said.out.contains("hunter2"),
        "{}",
        said.out
    );
    let said = run(&["frobnicate"]).await;
    assert_eq!(said.code, 2);
}

#[tokio::test]
async fn migrate_says_what_it_did() {
    let database = Database::sqlite();
    let said = run(&["migrate", "--db", &database.url()]).await;
    said.prints(0, "applied migration 1");
    let said = run(&["migrate", "--db", &database.url()]).await;
    assert!(
        said.out.contains("the schema is up to date"),
        "{}",
        said.out
    );
}
