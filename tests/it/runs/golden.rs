//! What commands print, compared with the files of tests/fixtures/golden: on terminals of 80 and of 200
//! columns, and in a pipe. `HINDSIGHT_TEST_BLESS=1` writes the files anew.

use std::{path::PathBuf, process::Command, sync::LazyLock};

use regex_automata::meta::Regex;

use super::seeds::{COMMANDS, given_log, given_old, given_recent};
use crate::support::{
    Database, TestServer,
    process::{Said, hindsight},
    terminal::on_terminal,
};

/// Commands about runs of the last days.
const RECENT: [(&str, &str); 2] = [("slow", "slow -A"), ("flaky", "flaky -A")];

/// Commands about runs of long ago, one of which has a log.
const LOGGED: [(&str, &str); 2] = [
    ("why-log", "why release-44 -n shop"),
    ("why-log-short", "why release-44 -n shop --log-lines 1"),
];

/// The program, in an environment that says what terminals can.
fn program(server: &TestServer, line: &str) -> Command {
    let mut command = hindsight();
    command
        .args(line.split(' '))
        .env("HINDSIGHT_SERVER", &server.url)
        .env("TERM", "xterm-256color")
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC");
    command
}

/// A text without what differs from run to run: addresses, UIDs and the times of now.
fn normal(text: &str, server: &TestServer) -> String {
    static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"\d+y ago", "36y ago"),
            (r"\b\d[dh] ago|\b\d\d[dh] ago", "5d ago"),
            (r"--page-token \S+", "--page-token TOKEN"),
            (r"20\d\d-\d\d-\d\dT[0-9:.]+Z", "NOW"),
            (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-\d+)?", "UID"),
            (r"[0-9a-f]{2,}(…|\.\.\.)\d{2,}", "UID"),
        ]
        .map(|(pattern, text)| (Regex::new(pattern).unwrap(), text))
        .into()
    });
    let mut text = text.replace(&server.url, "http://SERVER");
    for (pattern, instead) in CHANGING.iter() {
        let mut done = String::new();
        let mut from = 0;
        for found in pattern.find_iter(&text) {
            done += &text[from..found.start()];
            done += instead;
            from = found.end();
        }
        text = done + &text[from..];
    }
    text.replace('\u{1b}', "\\e")
}

/// What a command prints in every form, as one text.
fn shown(server: &TestServer, line: &str, colours: bool) -> String {
    let mut text = String::new();
    let mut add = |title: &str, said: Said| {
        assert_eq!(said.code, 0, "{line}: {said:?}");
        text += &format!(
            "# {title}\n$ hindsight {line}\n{}",
            normal(&said.out, server)
        );
        if !said.err.is_empty() {
            text += &format!("# notes\n{}", normal(&said.err, server));
        }
        text.push('\n');
    };
    for columns in [80, 200] {
        let mut command = program(server, line);
        command.env("NO_COLOR", "1");
        let title = format!("terminal of {columns} columns");
        add(&title, on_terminal(command, columns, 50));
    }
    if colours {
        let said = on_terminal(program(server, line), 80, 50);
        add("terminal of 80 columns, in colour", said);
    }
    add("pipe", program(server, line).output().unwrap().into());
    text
}

/// The names of the files that differ from what commands print.
async fn differing(server: TestServer, commands: &'static [(&str, &str)]) -> Vec<String> {
    let server = std::sync::Arc::new(server);
    let of_thread = std::sync::Arc::clone(&server);
    let wrong = tokio::task::spawn_blocking(move || {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden");
        #[expect(clippy::disallowed_methods, reason = "a switch of this test alone")]
        let bless = std::env::var_os("HINDSIGHT_TEST_BLESS").is_some();
        let mut wrong = Vec::new();
        for (name, line) in commands {
            let colours = ["runs", "describe", "list-runs"].contains(name);
            let text = shown(&of_thread, line, colours);
            let file = folder.join(format!("{name}.txt"));
            if bless {
                std::fs::write(&file, &text).unwrap();
            }
            let wanted = std::fs::read_to_string(&file).unwrap_or_default();
            if text != wanted {
                wrong.push(format!("{name}.txt, now:\n{text}"));
            }
        }
        wrong
    });
    let wrong = wrong.await.unwrap();
    std::sync::Arc::into_inner(server).unwrap().stop().await;
    wrong
}

#[tokio::test]
async fn commands_print_what_the_files_say() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_old(&server).await;
    let wrong = differing(server, &COMMANDS).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    database.remove().await;
}

#[tokio::test]
async fn commands_about_a_run_with_a_log_print_what_the_files_say() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_old(&server).await;
    given_log(&server).await;
    let wrong = differing(server, &LOGGED).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    database.remove().await;
}

#[tokio::test]
async fn commands_about_the_last_days_print_what_the_files_say() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_recent(&server).await;
    let wrong = differing(server, &RECENT).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    database.remove().await;
}
