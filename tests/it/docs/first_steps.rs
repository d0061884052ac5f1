//! The first steps in README.md: from an empty machine to why a run failed, compared line by line.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{process::Said, program::Program};

const README: &str = include_str!("../../../README.md");

/// Each command of the transcript, with what it prints.
fn transcript() -> Vec<(String, String)> {
    let (_, after) = README
        .split_once("<!-- first steps -->\n```console\n")
        .unwrap();
    let (text, _) = after
        .split_once("```\n<!-- end of first steps -->")
        .unwrap();
    let mut steps: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command.to_owned(), String::new())),
            (None, Some((_, printed))) => *printed += &format!("{line}\n"),
            (None, None) => panic!("`{line}` follows no command"),
        }
    }
    steps
}

fn run(kind: &str, name: &str, times: (&str, &str), reason: &str, more: (Value, Value)) -> Value {
    let status = if reason == "Succeeded" {
        "True"
    } else {
        "False"
    };
    let mut object = json!({
        "apiVersion": "tekton.dev/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"),
            "creationTimestamp": times.0, "labels": {"tekton.dev/pipeline": "release"}},
        "spec": more.0,
        "status": {"startTime": times.0, "completionTime": times.1,
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason}]},
    });
    if let Value::Object(fields) = more.1 {
        let owner = name.trim_end_matches("-test");
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "tekton.dev/v1",
            "kind": "PipelineRun", "name": owner, "uid": format!("uid-{owner}")}]);
        object["metadata"]["labels"]["tekton.dev/pipelineRun"] = json!(owner);
        object["metadata"]["labels"]["tekton.dev/pipelineTask"] = json!("test");
        object["status"]["steps"] = json!([fields]);
    }
    object
}

/// What kubectl prints of a cluster with a good run and a bad one.
fn cluster() -> Value {
    let of = |revision: &str| {
        json!({"pipelineRef": {"name": "release"},
            "params": [{"name": "revision", "value": revision}]})
    };
    let step = |code: i32, reason: &str, (start, end): (&str, &str)| {
        json!({"name": "unit", "terminated": {"exitCode": code, "reason": reason,
            "startedAt": start, "finishedAt": end}})
    };
    let good = ("2026-03-01T10:00:00Z", "2026-03-01T10:05:00Z");
    let bad = ("2026-03-02T10:00:00Z", "2026-03-02T10:07:00Z");
    let good_test = ("2026-03-01T10:02:05Z", "2026-03-01T10:04:55Z");
    let bad_test = ("2026-03-02T10:02:05Z", "2026-03-02T10:06:50Z");
    let test = json!({"taskRef": {"name": "test"}});
    let passed = (test.clone(), step(0, "Completed", good_test));
    let killed = (test, step(137, "OOMKilled", bad_test));
    let [before, after] = ["a1b2c3", "d4e5f6"].map(|revision| (of(revision), Value::Null));
    json!({"apiVersion": "v1", "kind": "List", "items": [
        run("PipelineRun", "release-41", good, "Succeeded", before),
        run("TaskRun", "release-41-test", good_test, "Succeeded", passed),
        run("PipelineRun", "release-42", bad, "Failed", after),
        run("TaskRun", "release-42-test", bad_test, "Failed", killed),
    ]})
}

fn shell(folder: &Path, url: &str, command: &str) -> Said {
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut shell = Command::new("bash");
    shell
        .env_clear()
        .env("PATH", path)
        .env("HINDSIGHT_SERVER", url)
        .current_dir(folder)
        .args(["-o", "pipefail", "-c", command]);
    shell.output().unwrap().into()
}

/// A text without how long an import took.
fn timeless(text: &str) -> String {
    match (text.find(" in "), text.find(" s: ")) {
        (Some(from), Some(to)) if from < to => format!("{} in{}", &text[..from], &text[to..]),
        _ => text.to_owned(),
    }
}

#[tokio::test]
async fn five_commands_say_why_a_run_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("cluster.json"), cluster().to_string()).unwrap();
    let kubectl = path.join("kubectl");
    fs::write(&kubectl, "#!/bin/sh\ncat cluster.json\n").unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_hindsight"), path.join("hindsight")).unwrap();
    let steps = transcript();
    assert_eq!(steps.len(), 5);
    assert_eq!(steps[0].0, "hindsight serve &");
    let db = format!("sqlite:{}", path.join("hindsight.db").display());
    let server = Program::start("serve", &["--db", &db, "--metrics-listen", "off"]).await;
    let help = shell(path, &server.url, "hindsight --help").out;
    let mut wrong = Vec::new();
    for (command, wanted) in &steps[1..] {
        let said = shell(path, &server.url, command);
        if timeless(&said.out) != timeless(wanted) {
            wrong.push(format!("$ {command}\n{}{}", said.out, said.err));
        }
        let name = command.split("hindsight ").nth(1).unwrap();
        let name = name.split(' ').next().unwrap();
        assert!(
            help.contains(&format!("\n  {name} ")),
            "help does not tell of {name}"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (code, _) = server.terminate().await;
    assert_eq!(code, Some(0));
}
