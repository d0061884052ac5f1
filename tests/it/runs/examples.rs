//! Every example in the help of commands is run against a server with the runs it is about.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::objects::{history, release};
use crate::support::{
    Database, TestServer,
    objects::{PIPELINE_RUN, TASK_RUN, bytes, task_run},
    process::{Said, hindsight},
};

/// Commands that ask a server, or that need none; those that delete come last.
const COMMANDS: [&str; 22] = [
    "runs",
    "list",
    "get",
    "describe",
    "why",
    "diff",
    "slow",
    "flaky",
    "stats",
    "explain",
    "top",
    "logs",
    "open",
    "rerun",
    "export",
    "import",
    "completion",
    "man",
    "context",
    "login",
    "hold",
    "delete",
];
/// Commands whose examples may find nothing in so few runs, or only do something.
const QUIET: [&str; 5] = ["slow", "flaky", "context", "login", "import"];

/// Runs that examples name.
async fn given(server: &TestServer) {
    history(server).await;
    let mut failed = release("5d5f", 14, "b7", "Failed");
    failed["metadata"]["name"] = "release-47".into();
    for record in ["5d5f", "77aa"] {
        let name = format!("shop/results/5d5f/records/{record}");
        server
            .given_record(&name, PIPELINE_RUN, &bytes(&failed))
            .await;
    }
    for name in ["build-1", "build-2"] {
        let mut object = task_run(name, "Failed");
        object["metadata"]["labels"]["app"] = "shop".into();
        let object = bytes(&object);
        let name = format!("ci/results/{name}/records/{name}");
        server.given_record(&name, TASK_RUN, &object).await;
    }
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A folder with the files that examples read, and the other programs that they call.
fn surroundings(folder: &Path) {
    let run = task_run("imported", "Succeeded").to_string();
    fs::create_dir(folder.join("backup")).unwrap();
    fs::write(folder.join("backup/run.json"), &run).unwrap();
    fs::write(folder.join("run.json"), &run).unwrap();
    fs::write(folder.join("token"), "token").unwrap();
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    let kubectl = "#!/bin/sh\ncase $1 in\n  get) cat run.json ;;\n  create) [ \"$2\" = token ] && echo token \
                   || cat ;;\n  *) echo \"$@\" ;;\nesac\n";
    executable(&bin.join("kubectl"), kubectl);
    executable(&bin.join("man"), "#!/bin/sh\ncat\n");
    let program = env!("CARGO_BIN_EXE_hindsight");
    std::os::unix::fs::symlink(program, bin.join("hindsight")).unwrap();
}

/// What a shell makes of an example.
async fn shell(folder: &Path, example: &str, server: &str) -> Said {
    let servers = [
        "https://hindsight.example",
        "https://tekton-results.example:8080",
        "http://127.0.0.1:8080",
        "http://127.0.0.1:8081",
    ];
    let here = |text: String, other: &&str| text.replace(other, server);
    let example = servers.iter().fold(example.to_owned(), here);
    let path = format!("{}:/usr/bin:/bin", folder.join("bin").display());
    let mut command = std::process::Command::new("bash");
    command
        .env_clear()
        .env("PATH", path)
        .env("XDG_CONFIG_HOME", folder)
        .args(["-o", "pipefail", "-c", &example])
        .current_dir(folder)
        .stdin(std::process::Stdio::null());
    // A context is what its examples are about; others ask the server of the test.
    if !["context", "login"]
        .iter()
        .any(|name| example.contains(name))
    {
        command.env("HINDSIGHT_SERVER", server);
    }
    tokio::task::spawn_blocking(move || command.output().unwrap().into())
        .await
        .unwrap()
}

/// The examples in the help of a command.
fn examples(command: &str) -> Vec<String> {
    let mut program = hindsight();
    let help = Said::from(program.args([command, "--help"]).output().unwrap()).out;
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    let examples = examples.replace("\\\n", " ");
    let lines = examples.lines().take_while(|line| !line.is_empty());
    lines.map(|line| line.trim().to_owned()).collect()
}

#[tokio::test]
async fn every_example_of_the_help_does_something() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given(&server).await;
    let folder = tempfile::tempdir().unwrap();
    surroundings(folder.path());
    let mut wrong = Vec::new();
    for command in COMMANDS {
        let examples = examples(command);
        assert!(examples.len() >= 3, "{command}: {examples:?}");
        for example in examples {
            let said = shell(folder.path(), &example, &server.url).await;
            let writes = ["--file", "--dir"]
                .iter()
                .any(|flag| example.contains(flag));
            let is_quiet = QUIET.contains(&command) || writes;
            let told = if is_quiet { &said.err } else { &said.out };
            if said.code != 0 || (told.is_empty() && said.out.is_empty()) {
                wrong.push(format!("{example}\n    {said:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.stop().await;
}

#[test]
fn every_command_about_a_server_is_among_them() {
    let tree = hindsight::cli::command();
    let others = [
        "serve",
        "all-in-one",
        "config",
        "token",
        "version",
        "ledger",
        "migrate",
        "index",
        "fsck",
        "backup",
        "restore",
        "copy",
        "purge",
        "pipelines",
        "retention",
        "archive",
    ];
    for command in tree.get_subcommands().filter(|it| !it.is_hide_set()) {
        let name = command.get_name();
        assert!(COMMANDS.contains(&name) != others.contains(&name), "{name}");
    }
}
