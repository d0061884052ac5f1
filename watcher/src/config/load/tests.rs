//! What is read from where, and every way to get it wrong.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::load;
use crate::config::{Launch, keys, sources::Sources};
use hindsight_runtime::telemetry::LogFormat;

fn flags(flags: &[(&'static str, &str)]) -> Sources {
    let flags = flags
        .iter()
        .map(|(name, text)| (*name, (*text).to_owned()))
        .collect();
    Sources {
        flags,
        ..Sources::default()
    }
}

fn file(text: &str) -> Sources {
    Sources {
        file: Some(("/etc/w.toml".into(), text.to_owned())),
        ..Sources::default()
    }
}

fn env(name: &str, text: &str) -> Sources {
    Sources {
        env: BTreeMap::from([(name.to_owned(), text.to_owned())]),
        ..Sources::default()
    }
}

#[track_caller]
fn loads(sources: &Sources) -> Launch {
    load(sources).unwrap_or_else(|problems| panic!("{problems:?}"))
}

#[track_caller]
fn refuses(sources: &Sources, expected: &[&str]) {
    let problems = load(sources).expect_err("it is refused");
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for part in expected {
        assert!(
            said.iter().any(|said| said.contains(part)),
            "{part} is not in {said:#?}"
        );
    }
}

#[test]
fn nothing_said_is_a_watcher_that_deletes_nothing() {
    let launch = loads(&Sources::default());
    assert_eq!(launch.server, "http://127.0.0.1:8080");
    assert_eq!(launch.log_format, LogFormat::Text);
    assert_eq!(launch.config.policy.collect, None);
    assert!(!launch.plain_calls);
    assert!(loads(&flags(&[("plain-calls", "true")])).plain_calls);
    assert!(launch.config.policy.annotate);
    let all = hindsight_run::KINDS.len() + hindsight_run::DEFINITIONS.len();
    assert_eq!(launch.config.kinds.len(), all);
    assert_eq!(launch.config.policy.summary.labels, ["tekton.dev/pipeline"]);
}

#[test]
fn a_flag_beats_a_variable_and_a_variable_beats_the_file() {
    let mut sources = file("namespace = 'file'\ngrace = '1m'\nthreadiness = 3\ncollect = true");
    sources
        .env
        .insert("HINDSIGHT_WATCHER_NAMESPACE".into(), "env".into());
    sources
        .env
        .insert("HINDSIGHT_WATCHER_GRACE".into(), "2m".into());
    sources.flags.insert("namespace", "flag".into());
    let config = loads(&sources).config;
    assert_eq!(config.namespace.as_deref(), Some("flag"));
    assert_eq!(config.threadiness.get(), 3);
    assert_eq!(
        config.policy.collect.unwrap().grace,
        SignedDuration::from_mins(2)
    );
}

#[test]
fn every_key_can_be_said_everywhere() {
    for key in keys::KEYS {
        let text = match key.name {
            "kinds" => "taskruns",
            "label-selector" | "job-selector" => "a=b",
            "collect-when" => "true",
            "metrics-listen" => "127.0.0.1:0",
            "trace-endpoint" => "http://collector:4317",
            _ if !key.default.is_empty() => key.default,
            _ => "x",
        };
        loads(&flags(&[(key.name, text)]));
        loads(&env(&key.variable(), text));
        loads(&file(&format!("{} = '{text}'", key.name)));
    }
}

#[test]
fn lists_may_be_lists_in_the_file() {
    let launch = loads(&file("kinds = ['taskruns', 'Workflow.argoproj.io']"));
    let kinds: Vec<&str> = launch.config.kinds.iter().map(|kind| kind.group).collect();
    assert_eq!(kinds, ["tekton.dev", "argoproj.io"]);
}

#[test]
fn spans_are_those_of_go() {
    for (text, expected) in [
        ("0", SignedDuration::ZERO),
        ("150s", SignedDuration::from_secs(150)),
        ("2m30s", SignedDuration::from_secs(150)),
        ("1.5h", SignedDuration::from_mins(90)),
        ("-1ns", SignedDuration::from_nanos(-1)),
    ] {
        let launch = loads(&flags(&[("collect", "true"), ("grace", text)]));
        assert_eq!(
            launch.config.policy.collect.unwrap().grace,
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_dry_run_is_one_of_collection() {
    let launch = loads(&flags(&[("dry-run", "true")]));
    assert!(launch.config.dry_run && launch.config.policy.collect.is_some());
}

#[test]
fn every_problem_is_said_at_once_with_its_origin() {
    let mut sources = file("grace = 'soon'\nretention = 1\nkinds = 'pods'\nserver = {a = 1}");
    sources
        .env
        .insert("HINDSIGHT_WATCHER_THREADINESS".into(), "0".into());
    sources
        .env
        .insert("HINDSIGHT_WATCHER_SUMMARY_LABEL".into(), "x".into());
    sources.flags.insert("collect", "maybe".into());
    sources.flags.insert("label-selector", "a in (".into());
    sources.flags.insert("cluster-id", "a/b".into());
    refuses(
        &sources,
        &[
            "grace in /etc/w.toml: `soon` is not a duration",
            "retention in /etc/w.toml: there is no such key",
            "kinds in /etc/w.toml: `pods` is no kind of run",
            "server in /etc/w.toml: want text",
            "HINDSIGHT_WATCHER_THREADINESS in the environment: `0`",
            "HINDSIGHT_WATCHER_SUMMARY_LABEL in the environment: there is no such key; is it \
             `summary-labels`?",
            "--collect: `maybe` is neither",
            "--label-selector: `a in (` is not a label selector",
            "--cluster-id: `a/b` cannot name a cluster",
        ],
    );
}

#[test]
fn each_replica_has_a_name_of_its_own() {
    let [one, other] = [(); 2].map(|()| loads(&flags(&[("leader-elect", "true")])));
    let identity = |launch: &Launch| launch.config.lease.as_ref().unwrap().identity.clone();
    assert_ne!(identity(&one), identity(&other));
    assert_eq!(one.config.lease.unwrap().name, "hindsight-watcher");
    assert_eq!(loads(&flags(&[])).config.lease, None);
}

#[test]
fn metrics_can_be_turned_off() {
    for said in [&[][..], &[("metrics-listen", "off")]] {
        assert_eq!(loads(&flags(said)).config.metrics_listen, None);
    }
    let mut sources = file("metrics-listen = '127.0.0.1:0'");
    sources.flags.insert("metrics-listen", "off".to_owned());
    assert_eq!(loads(&sources).config.metrics_listen, None);
}

#[test]
fn each_value_is_checked() {
    for (name, text, why) in [
        ("server", "localhost:8080", "want `http://host:port`"),
        ("namespace", "Team A", "is no namespace"),
        ("metrics-listen", "9090", "is no address"),
        ("shutdown-grace", "-1s", "negative"),
        ("recheck", "0", "not positive"),
        ("log-format", "xml", "want `text` or `json`"),
        ("spool-bytes", "1 lot", "is no size"),
        ("spool-bytes", "99999999TiB", "is no size"),
        ("threadiness", "many", "no number"),
        ("log-level", "loud=very", "is not a log filter"),
    ] {
        refuses(&flags(&[(name, text)]), &[why]);
    }
    refuses(
        &flags(&[("lease-duration", "10s")]),
        &["each longer than the next"],
    );
    refuses(
        &flags(&[("token", "a"), ("token-file", "b")]),
        &["keep one"],
    );
    refuses(&file("a = = b"), &["it is no TOML"]);
}

#[test]
fn variables_that_kubernetes_makes_for_a_service_are_not_ours() {
    loads(&env("HINDSIGHT_WATCHER_SERVICE_HOST", "10.0.0.1"));
    loads(&env("HINDSIGHT_WATCHER_PORT", "tcp://10.0.0.1:9090"));
    loads(&env("HINDSIGHT_WATCHER_PORT_9090_TCP_PROTO", "tcp"));
}

#[test]
fn a_token_is_not_shown() {
    let launch = loads(&flags(&[("token", "secret")]));
    assert!(!format!("{launch:?}").contains("secret"));
}

#[test]
fn rules_are_tables_of_the_file() {
    let launch = loads(&file(
        "collect = true\nkeep-last = 3\ncollect-when = \"outcome == 'success'\"\n\
         [[rule]]\nkinds = ['PipelineRun', 'taskruns.tekton.dev']\nnamespaces = ['ci-*']\n\
         label-selector = 'a=b'\noutcomes = ['failure', 'timeout']\ngrace = '2h'\n\
         keep-last = 10\ncollect-when = 'has(object.spec)'\n[[rule]]\ncollect = false\n",
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
        ("[[rule]]\nkinds = ['Pod']", "`Pod` is no kind of run"),
        (
            "[[rule]]\noutcomes = ['bad']",
            "`bad` is none; want any of success",
        ),
        ("[[rule]]\ngrace = 'soon'", "is not a duration"),
        ("[[rule]]\ncollect-when = 'run.x'", "there is no `run`"),
        (
            "[[rule]]\nlabel-selector = 'a in (b'",
            "is not a label selector",
        ),
        (
            "[[rule]]\ngrace = '1h'\n[[rule]]\nx = 1",
            "rule in /etc/w.toml, number 2",
        ),
        ("rule = 'x'", "write `[[rule]]`"),
    ] {
        refuses(&file(text), &[why]);
    }
    refuses(
        &flags(&[("collect-when", "nothing == 1")]),
        &["there is no `nothing`"],
    );
    refuses(&flags(&[("deletes-per-second", "0")]), &["is no rate"]);
}

#[test]
fn kinds_can_be_declared_in_the_file() {
    let text = "[[kind]]\ngroup = 'declared.example'\nversion = 'v1'\nkind = 'Backup'\n\
        plural = 'backups'\nlabel-selector = 'a=b'\ndone = 'has(object.status.end)'\n\
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
            "done: `status.x` is no expression: there is no `status`",
        ),
    ] {
        refuses(&file(&format!("[[kind]]\n{text}")), &[why]);
    }
}

#[test]
fn jobs_are_watched_only_where_somebody_says_which() {
    let config = loads(&flags(&[("job-selector", "app=etl,!old")])).config;
    assert_eq!(config.kinds.last().unwrap().data_type(), "batch/v1.Job");
    assert_eq!(config.selectors[0].1, "app in (etl),!old");
    refuses(
        &flags(&[("job-selector", "a in (")]),
        &["is not a label selector"],
    );
}

#[test]
fn a_cluster_may_be_named_by_its_own_uid() {
    let launch = loads(&flags(&[("cluster-id", "auto")]));
    assert!(launch.cluster_from_uid && launch.config.policy.cluster.is_none());
    let launch = loads(&flags(&[("cluster-id", "east")]));
    assert!(!launch.cluster_from_uid && launch.config.policy.cluster.is_some());
    refuses(&flags(&[("cluster-id", "a/b")]), &["cannot name a cluster"]);
}
