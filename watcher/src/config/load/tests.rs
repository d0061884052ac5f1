//! What is read from where, and every way to get it wrong.

use std::collections::BTreeMap;

use hindsight_config::{File, Kind, Settings as _, Sources};
use jiff::SignedDuration;

use crate::config::{Launch, PROGRAM};

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn flags(flags: &[(&str, &str)]) -> Sources {
    Sources {
        flags: owned(flags),
        ..Sources::default()
    }
}

fn file(text: &str) -> Sources {
    Sources {
        file: Some(File {
            path: "/etc/w.toml".to_owned(),
            text: Ok(text.to_owned()),
        }),
        ..Sources::default()
    }
}

#[track_caller]
fn loads(sources: &Sources) -> Launch {
    Launch::load(&PROGRAM, sources).unwrap_or_else(|problems| panic!("{problems}"))
}

#[track_caller]
fn refuses(sources: &Sources, expected: &[&str]) {
    let problems = Launch::load(&PROGRAM, sources).expect_err("it is refused");
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, part) in said.iter().zip(expected) {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn nothing_said_is_a_watcher_that_deletes_nothing() {
    let launch = loads(&Sources::default());
    assert_eq!(launch.settings.server.as_str(), "http://127.0.0.1:8080");
    assert_eq!(launch.config.policy.collect, None);
    assert_eq!(launch.config.metrics_listen, None);
    assert!(launch.config.policy.annotate);
    let all = hindsight_run::KINDS.len() + hindsight_run::DEFINITIONS.len();
    assert_eq!(launch.config.kinds.len(), all);
    assert_eq!(loads(&flags(&[("kinds", "")])).config.kinds.len(), all);
    assert_eq!(launch.config.policy.summary.labels, ["tekton.dev/pipeline"]);
}

#[test]
fn every_key_is_read_and_shown_again() {
    for key in PROGRAM.keys {
        let text = match key.name {
            "kinds" => "taskruns.tekton.dev",
            "label_selector" | "job_selector" => "a in (b)",
            "collect_when" => "true",
            "trace_endpoint" => "http://collector:4317",
            _ => key.default.unwrap_or("x"),
        };
        let pair = [("client_cert", "x"), ("client_key", "x"), (key.name, text)];
        let printed = loads(&flags(&pair)).settings.print().replace('"', "");
        let shown = if key.kind == Kind::Secret {
            "***"
        } else {
            text
        };
        let start = format!("{} = {shown} ", key.name);
        let line = printed.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("`{start}` is not in {printed}"));
        assert!(
            line.ends_with(&format!(" # --{}", PROGRAM.flag(key.name))),
            "{line}"
        );
    }
}

#[test]
fn every_problem_is_said_at_once_with_its_place() {
    let sources = Sources {
        env: owned(&[
            ("HINDSIGHT_WATCHER_THREADINESS", "0"),
            ("HINDSIGHT_WATCHER_SUMMARY_LABEL", "x"),
            ("HINDSIGHT_WATCHER_SERVICE_HOST", "10.0.0.1"),
        ]),
        flags: owned(&[
            ("server", "localhost:8080"),
            ("cluster_id", "a/b"),
            ("label_selector", "a in ("),
            ("collect", "maybe"),
            ("recheck", "0"),
            ("collect_when", "nothing == 1"),
            ("deletes_per_second", "0"),
            ("lease_duration", "10s"),
            ("token", "a"),
            ("token_file", "b"),
            ("client_cert", "c"),
        ]),
        ..file(
            "grace = 'soon'\nretention = 1\nkinds = 'pods'\nlabel-selector = 'a=b'\n\
             namespace = 'Team A'\n",
        )
    };
    refuses(
        &sources,
        &[
            "retention in /etc/w.toml line 2: unknown key; there are server, ",
            "label-selector in /etc/w.toml line 4: unknown key; did you mean `label_selector`?",
            "HINDSIGHT_WATCHER_SUMMARY_LABEL in environment: unknown variable; did you mean \
             `HINDSIGHT_WATCHER_SUMMARY_LABELS`?",
            "--server: `localhost:8080` is not a valid address of a service; want `http://HOST:PORT`",
            "namespace in /etc/w.toml line 5: `Team A` is not a valid namespace",
            "--cluster-id: `a/b` cannot name a cluster",
            "kinds in /etc/w.toml line 3: `pods` is not a valid kind of run; want any of ",
            "--collect: `maybe` is neither",
            "grace in /etc/w.toml line 1: `soon` is not a valid duration",
            "--label-selector: `a in (` is not a label selector",
            "--recheck: `0` is too short",
            "--collect-when: `nothing == 1` is not a valid expression: column 1: unknown name `nothing`",
            "--deletes-per-second: `0` is not a valid rate",
            "HINDSIGHT_WATCHER_THREADINESS in environment: `0` is not a valid number; want a whole \
             number from 1 to 1024",
            "--token-file: token and token_file both say who the watcher is; keep one",
            "--client-cert: needs client_key too",
            "--lease-duration: lease_duration, lease_renew_deadline and lease_retry do not fit",
        ],
    );
}

#[test]
fn lists_may_be_lists_in_the_file() {
    let launch = loads(&file("kinds = ['taskruns', 'Workflow.argoproj.io']"));
    let kinds: Vec<&str> = launch.config.kinds.iter().map(|kind| kind.group).collect();
    assert_eq!(kinds, ["tekton.dev", "argoproj.io"]);
}

#[test]
fn a_dry_run_is_one_of_collection() {
    let launch = loads(&flags(&[("dry_run", "true")]));
    assert!(launch.config.dry_run && launch.config.policy.collect.is_some());
}

#[test]
fn each_replica_has_a_name_of_its_own() {
    let [one, other] = [(); 2].map(|()| loads(&flags(&[("leader_elect", "true")])));
    let identity = |launch: &Launch| launch.config.lease.as_ref().unwrap().identity.clone();
    assert_ne!(identity(&one), identity(&other));
    assert_eq!(one.config.lease.unwrap().name, "hindsight-watcher");
    assert_eq!(loads(&flags(&[])).config.lease, None);
}

#[test]
fn rules_are_tables_of_the_file() {
    let launch = loads(&file(
        "collect = true\nkeep_last = 3\ncollect_when = \"outcome == 'success'\"\n\
         [[rule]]\nkinds = ['PipelineRun', 'taskruns.tekton.dev']\nnamespaces = ['ci-*']\n\
         label_selector = 'a=b'\noutcomes = ['failure', 'timeout']\ngrace = '2h'\n\
         keep_last = 10\ncollect_when = 'has(object.spec)'\n[[rule]]\ncollect = false\n",
    ));
    let collect = launch.config.policy.collect.unwrap();
    assert_eq!(collect.keep_last, 3);
    assert!(collect.when.is_some() && collect.namespaces);
    let [first, second] = &collect.rules[..] else {
        panic!("{:?}", collect.rules);
    };
    assert_eq!((first.kinds.len(), first.outcomes.len()), (2, 2));
    assert_eq!(first.grace, Some(SignedDuration::from_hours(2)));
    assert_eq!((first.keep_last, first.never), (Some(10), false));
    assert!(second.never && second.grace.is_none());
}

#[test]
fn a_wrong_rule_is_refused_by_its_number() {
    for (text, why) in [
        ("[[rule]]\nkind = 'TaskRun'", "unknown field `kind`"),
        (
            "[[rule]]\nkinds = ['Pod']",
            "`Pod` is not a valid kind of run",
        ),
        (
            "[[rule]]\noutcomes = ['bad']",
            "`bad` is not a valid outcome; want `success`",
        ),
        ("[[rule]]\ngrace = 'soon'", "is not a valid duration"),
        ("[[rule]]\ncollect_when = 'run.x'", "unknown name `run`"),
        (
            "[[rule]]\nlabel_selector = 'a in (b'",
            "is not a label selector",
        ),
        (
            "[[rule]]\ngrace = '1h'\n[[rule]]\nx = 1",
            "rule in /etc/w.toml line 3: unknown field `x`",
        ),
        ("rule = 'x'", "write `[[rule]]`"),
    ] {
        refuses(&file(text), &[why]);
    }
}

#[test]
fn kinds_can_be_declared_in_the_file() {
    let text = "[[kind]]\ngroup = 'declared.example'\nversion = 'v1'\nkind = 'Backup'\n\
        plural = 'backups'\nlabel_selector = 'a=b'\ndone = 'has(object.status.end)'\n\
        outcome = \"'success'\"\nended = 'object.status.end'\n\
        [[rule]]\nkinds = ['Backup']\n";
    let config = loads(&file(text)).config;
    let kind = config.kinds.last().unwrap();
    assert_eq!(kind.data_type(), "declared.example/v1.Backup");
    assert_eq!(config.selectors, [(*kind, "a in (b)".to_owned())]);
    // Reading it again changes nothing.
    assert_eq!(loads(&file(text)).config.kinds.last(), Some(kind));
    for (text, why) in [
        ("done = 'true'", "missing field `group`"),
        (
            "group = ''\nversion = 'v1'\nkind = 'X Y'\nplural = 'xs'\ndone = 'true'",
            "not a valid name",
        ),
        (
            "group = 'tekton.dev'\nversion = 'v1'\nkind = 'TaskRun'\nplural = 'x'\ndone = 'true'",
            "tekton.dev/v1.TaskRun is known without it",
        ),
        (
            "group = ''\nversion = 'v1'\nkind = 'X'\nplural = 'xs'\ndone = 'status.x'",
            "done: `status.x` is not a valid expression: column 1: unknown name `status`",
        ),
    ] {
        refuses(&file(&format!("[[kind]]\n{text}")), &[why]);
    }
}

#[test]
fn jobs_are_watched_only_where_somebody_says_which() {
    let config = loads(&flags(&[("job_selector", "app=etl,!old")])).config;
    assert_eq!(config.kinds.last().unwrap().data_type(), "batch/v1.Job");
    assert_eq!(config.selectors[0].1, "app in (etl),!old");
    refuses(
        &flags(&[("job_selector", "a in (")]),
        &["is not a label selector"],
    );
}

#[test]
fn a_cluster_may_be_named_by_its_own_uid() {
    let launch = loads(&flags(&[("cluster_id", "auto")]));
    assert!(launch.cluster_from_uid() && launch.config.policy.cluster.is_none());
    let launch = loads(&flags(&[("cluster_id", "east")]));
    assert!(!launch.cluster_from_uid() && launch.config.policy.cluster.is_some());
    refuses(&flags(&[("cluster_id", "a/b")]), &["cannot name a cluster"]);
}
