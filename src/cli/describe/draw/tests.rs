//! Drawings of trees.

use hindsight_proto::v1::{RunNode, RunStep, RunTree, run_node::Outcome};

use unicode_width::UnicodeWidthStr as _;

use super::{Screen, draw};

fn at(second: i64) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp {
        seconds: 1_772_460_131 + second,
        nanos: 0,
    })
}

/// A node below the run that began and ended at these seconds, after three of preparation.
fn node(name: &str, object: &str, (from, to): (i64, i64), outcome: Outcome) -> RunNode {
    #[expect(clippy::cast_precision_loss, reason = "seconds of a test")]
    let run = (to - from - 3) as f64;
    RunNode {
        id: object.to_owned(),
        parent: "run".to_owned(),
        name: name.to_owned(),
        object: object.to_owned(),
        kind: "TaskRun".to_owned(),
        outcome: outcome.into(),
        start_time: at(from),
        end_time: at(to),
        wait_seconds: Some(2.0),
        init_seconds: Some(3.0),
        run_seconds: Some(run),
        attempt: 1,
        ..RunNode::default()
    }
}

fn step(name: &str, code: i32, reason: &str, message: &str) -> RunStep {
    let outcome = match code {
        0 => Outcome::Success,
        _ => Outcome::Failure,
    };
    RunStep {
        name: name.to_owned(),
        outcome: outcome.into(),
        exit_code: Some(code),
        reason: reason.to_owned(),
        message: message.to_owned(),
        start_time: at(203),
        end_time: at(361),
    }
}

fn release() -> RunTree {
    let mut run = node("release-42", "release-42", (0, 420), Outcome::Failure);
    run.id = "run".to_owned();
    run.parent = String::new();
    run.kind = "PipelineRun".to_owned();
    run.reason = "Failed".to_owned();
    run.message = "Tasks Completed: 4".to_owned();
    let mut test = node("test", "test", (200, 361), Outcome::Failure);
    test.reason = "Failed".to_owned();
    (test.attempt, test.retries) = (2, 1);
    test.steps = vec![
        step("prepare", 0, "Completed", ""),
        step("run", 137, "OOMKilled", "killed\u{1b}[2J"),
    ];
    let mut approve = node("approve", "approve", (0, 0), Outcome::Unknown);
    (approve.start_time, approve.end_time) = (None, None);
    (approve.wait_seconds, approve.run_seconds) = (None, None);
    approve.reason = "NotStored".to_owned();
    let mut shard = node("unit", "unit-1", (192, 250), Outcome::Failure);
    shard.reason = "TaskRunImagePullFailed".to_owned();
    let mut deploy = node("deploy", "", (0, 0), Outcome::Skipped);
    deploy.id = "deploy".to_owned();
    deploy.reason = "Parent Tasks were skipped".to_owned();
    (deploy.start_time, deploy.end_time) = (None, None);
    (deploy.wait_seconds, deploy.run_seconds, deploy.init_seconds) = (None, None, None);
    RunTree {
        nodes: vec![
            run,
            node("build", "build", (2, 192), Outcome::Success),
            node("unit", "unit-0", (192, 240), Outcome::Success),
            shard,
            node("unit", "unit-2", (192, 241), Outcome::Success),
            test,
            deploy,
            approve,
        ],
        critical_path: vec!["build".to_owned(), "test".to_owned()],
        critical_seconds: 351.0,
        idle_seconds: 59.0,
        ..RunTree::default()
    }
}

/// What a file gets.
const FILE: Screen = Screen {
    width: None,
    colour: false,
    unicode: false,
};

fn drawn(tree: &RunTree, depth: u32, all: bool) -> Vec<String> {
    draw(tree, depth, all, FILE)
}

#[test]
fn a_run_is_drawn_with_times_bars_and_what_failed() {
    let head = "x release-42  PipelineRun  failed in 7m00s  (waited 2.0s)  started \
                2026-03-02T14:02:11Z  Failed: Tasks Completed: 4";
    let wanted = [
        head,
        "STATUS       TASK       WAIT   TOOK  0                  7m00s",
        "v succeeded  build      2.0s  3m10s  ===========",
        "x failed     unit (x3)  2.0s    58s            .====           1 failed, 2 succeeded",
        "x failed       unit-1   2.0s    58s            .====           TaskRunImagePullFailed",
        "x failed     test       2.0s  2m41s             ==========     try 2 of 2, Failed",
        "v succeeded    prepare        2m38s",
        "x failed       run            2m38s                            OOMKilled, exit 137, killed\\u{1b}[2J",
        "> skipped    deploy                                            Parent Tasks were skipped",
        "? unknown    approve                                           NotStored",
        "critical path, 5m51s of 7m00s: build > test",
        "nothing ran for 59s",
    ];
    assert_eq!(drawn(&release(), 10, false), wanted);
}

#[test]
fn a_terminal_gets_colours_and_lines_that_fit() {
    let screen = Screen {
        width: Some(70),
        colour: true,
        unicode: true,
    };
    let mut tree = release();
    tree.nodes[5].object = "release-42-test-of-everything".to_owned();
    tree.nodes[5].name = "test-of-everything-there-is".to_owned();
    let lines = draw(&tree, 10, false, screen);
    let plain = |line: &String| {
        let codes = ["\u{1b}[0m", "\u{1b}[31m", "\u{1b}[32m"];
        codes
            .iter()
            .fold(line.clone(), |line, code| line.replace(code, ""))
    };
    let plain: Vec<_> = lines.iter().map(plain).collect();
    assert!(plain.iter().all(|line| line.width() <= 70), "{plain:#?}");
    let red = |text: &str| format!("\u{1b}[31m{text}\u{1b}[0m");
    assert!(lines[0].starts_with(&format!("{} release-42  ", red("✗"))));
    assert!(lines[0].ends_with('…'));
    let test = format!("{}     test-of-…there-is", red("✗ failed"));
    assert!(lines[5].starts_with(&test), "{plain:#?}");
    assert_eq!(
        plain[3],
        "✗ failed     unit (x3)          2.0s    58s       ███      1 failed, …"
    );
    let narrow = Screen {
        width: Some(52),
        ..screen
    };
    let lines = draw(&tree, 10, false, narrow);
    assert!(!lines.iter().any(|line| line.contains('█')), "{lines:?}");
}

#[test]
fn all_shows_each_task_and_depth_ends_the_drawing() {
    let all = drawn(&release(), 10, true);
    assert_eq!(all.iter().filter(|line| line.contains(" unit ")).count(), 3);
    assert_eq!(drawn(&release(), 0, false).len(), 3);
}

#[test]
fn a_task_alone_is_drawn_with_its_steps() {
    let mut tree = release();
    tree.nodes = vec![tree.nodes[5].clone()];
    tree.critical_path.clear();
    let lines = drawn(&tree, 10, false);
    assert!(lines[2].starts_with("v succeeded  prepare"), "{lines:?}");
    assert_eq!(drawn(&RunTree::default(), 10, false), Vec::<String>::new());
}
