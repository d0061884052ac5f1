//! Output that is longer than the screen of its terminal goes through a pager.

use super::seeds::given_old;
use crate::support::{
    Database, TestServer,
    process::{Said, hindsight},
    terminal::on_terminal,
};

const NUMBERED: &str = "sed s/^/:/";

/// What `runs -A` says on a terminal with so many lines, given these variables and flags.
async fn runs(url: &str, lines: u16, variables: &[(&str, &str)], flags: &[&str]) -> Said {
    let mut command = hindsight();
    command
        .args(["runs", "-A", "--server", url])
        .args(flags)
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied());
    tokio::task::spawn_blocking(move || on_terminal(command, 100, lines))
        .await
        .unwrap()
}

#[tokio::test]
async fn only_what_is_longer_than_the_screen_is_paged() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_old(&server).await;
    let of_all = ("PAGER", "sed s/^/all:/");
    let ours = ("HINDSIGHT_PAGER", NUMBERED);
    for (lines, variables, flags, begins) in [
        (5, &[of_all][..], &[][..], "all:STATUS"),
        (5, &[of_all, ours], &[], ":STATUS"),
        (5, &[ours], &["--pager", "sed s/^/flag:/"], "flag:STATUS"),
        (5, &[of_all, ours], &["--no-pager"], "STATUS"),
        (50, &[ours], &[], "STATUS"),
        (5, &[("PAGER", "cat")], &[], "STATUS"),
        (5, &[("PAGER", "")], &[], "STATUS"),
        // The default, which prints and ends where all fits.
        (50, &[], &[], "STATUS"),
        (5, &[ours], &["-o", "jsonl"], ":{\"status\""),
    ] {
        let said = runs(&server.url, lines, variables, flags).await;
        assert!(
            said.out.starts_with(begins),
            "{variables:?} {flags:?}: {said:?}"
        );
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.lines().count() >= 7, "{said:?}");
    }
    server.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_pager_that_is_missing_or_ends_early_is_no_failure() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_old(&server).await;
    let missing = [("PAGER", "no-such-pager -x")];
    let said = runs(&server.url, 5, &missing, &[]).await;
    assert!(said.out.starts_with("STATUS"), "{said:?}");
    assert!(said.out.contains("release-40"), "{said:?}");
    assert!(said.err.contains("no-such-pager"), "{said:?}");
    let short = [("PAGER", "head -n 1")];
    let said = runs(&server.url, 5, &short, &[]).await;
    assert_eq!((said.out.lines().count(), said.err.as_str()), (1, ""));
    // Notes follow the pager.
    let slow = [("PAGER", "cat; echo end >&2")];
    let said = runs(&server.url, 5, &slow, &["--limit", "9"]).await;
    assert!(said.err.starts_with("end\n9 of 17 runs"), "{said:?}");
    server.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_pipe_is_never_paged() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_old(&server).await;
    let mut command = hindsight();
    command
        .args(["runs", "-A", "--server", &server.url])
        .env("PAGER", "sed s/^/:/");
    let said: Said = tokio::task::spawn_blocking(move || command.output().unwrap().into())
        .await
        .unwrap();
    assert!(said.out.starts_with("status\t"), "{said:?}");
    server.stop().await;
    database.remove().await;
}
