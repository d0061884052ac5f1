//! The rules of the house, as tests over the source tree.
//!
//! The tables at the top say who may use what; a new arrow between rooms, or a crate in a new
//! place, is an edit here that a reviewer sees. Each rule is a function from files to
//! complaints, and is shown a bad sample too: a check that cannot fail checks nothing.

#[path = "tidy/arrows.rs"]
mod arrows;
#[path = "tidy/crates.rs"]
mod crates;
#[path = "tidy/deny.rs"]
mod deny;
#[path = "tidy/json.rs"]
mod json;
#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/monitoring.rs"]
mod monitoring;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/structure.rs"]
mod structure;
#[path = "tidy/weaknesses.rs"]
mod weaknesses;
#[path = "tidy/words.rs"]
mod words;

use crates::CRATES;
use source::{Source, tree};

/// Most lines a file may have.
const LONGEST: usize = 500;

/// The rooms of the server, and which others each may enter. `*` is every room. What is below them
/// is a crate each, whose manifest says what it may enter.
const ROOMS: &[(&str, &[&str])] = &[
    ("cli", &["app", "config", "import", "retention"]),
    ("app", &["*"]),
    ("events", &["service", "outgoing"]),
    ("retention", &["query", "service"]),
    ("homes", &["service", "outgoing"]),
    ("outgoing", &[]),
    ("grpc", &["service"]),
    ("import", &[]),
    ("service", &["query"]),
    ("query", &[]),
    ("config", &[]),
];

/// Where environment variables may be read. Tests, also those beside the code, may too.
const ENVIRONMENT: &[&str] = &[
    "crates/config/src/sources.rs",
    "crates/storage/src/testing.rs",
    "*/build.rs",
];

/// Where the library that reads JSON is called, into types of which none is its own value.
/// Everything else asks `hindsight_run::json`, which gives no key of a stranger a meaning.
const READS_JSON: &[(&str, &str)] = &[
    ("crates/run/src/json.rs", "the reader itself"),
    (
        "crates/access/src/auth/oidc/provider.rs",
        "answers of the issuer",
    ),
    ("controller/src/object.rs", "raw objects"),
    (
        "crates/ray/src/clusters.rs",
        "objects whose keys were checked, or the API server sent",
    ),
    (
        "crates/ray/src/history.rs",
        "events, of a type without raw values",
    ),
    ("controller/src/object/text.rs", "raw members"),
    ("crates/kfp/src/query/filter/parse.rs", "messages"),
    ("crates/kfp/src/query/token.rs", "a type of its own"),
    (
        "crates/kfp/src/kubernetes/calls.rs",
        "objects whose specs stay raw",
    ),
    ("crates/kfp/src/spec/read.rs", "a reader of its own"),
    ("src/app/kfp/upload.rs", "maps of texts"),
    ("src/cli/output.rs", "raw payloads"),
    ("src/homes/loki/answer.rs", "answers of Loki"),
    ("crates/filter/src/outline.rs", "a reader of its own"),
    ("crates/filter/src/indexed/path.rs", "one text"),
    ("crates/filter/src/prune.rs", "one text"),
    ("src/grpc/fields/payload.rs", "raw parts"),
    ("src/import.rs", "raw objects"),
    ("crates/transcode/src/mask.rs", "raw members"),
    ("crates/transcode/src/request.rs", "messages"),
    ("crates/storage/src/tools/fsck/records.rs", "maps of texts"),
    ("crates/storage/src/sql/pipelines.rs", "maps of texts"),
    ("crates/storage/src/sql/read.rs", "maps of texts"),
    (
        "crates/storage/src/tools/archive.rs",
        "whether two keys are there",
    ),
    ("crates/storage/src/tools/tekton/row.rs", "maps of texts"),
    ("crates/transcode/src/unique.rs", "a reader of its own"),
    ("watcher/src/cli/ledger.rs", "a type of the watcher's"),
    ("watcher/src/cluster.rs", "an event that is made here"),
    ("watcher/src/object.rs", "raw objects"),
];

/// Fails with every complaint on a line of its own.
#[track_caller]
fn clean(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Shows a rule one bad file and checks what it says about it.
#[track_caller]
fn complains(rule: impl Fn(&[Source]) -> Vec<String>, path: &str, text: &str, expected: &[&str]) {
    assert_eq!(rule(&[Source::new(path, text)]), expected, "about {path}");
}

#[test]
fn no_file_is_too_long() {
    clean(&structure::too_long(&tree(), LONGEST));
    let long = "//! Long.\n".repeat(3);
    complains(
        |files| structure::too_long(files, 3),
        "src/a.rs",
        &long,
        &[],
    );
    complains(
        |files| structure::too_long(files, 2),
        "src/a.rs",
        &long,
        &["src/a.rs:3: more than 2 lines; divide it by what it is for"],
    );
}

#[test]
fn every_file_opens_by_saying_what_it_is_for() {
    clean(&structure::without_opening(&tree()));
    complains(
        structure::without_opening,
        "src/a.rs",
        "use std::fmt;\n//! Late.\n",
        &["src/a.rs:1: does not open with `//!` and what it is for"],
    );
    complains(
        structure::without_opening,
        "src/a.rs",
        "//!\n",
        &["src/a.rs:1: does not open with `//!` and what it is for"],
    );
}

#[test]
fn no_module_is_called_mod_rs() {
    clean(&structure::mod_files(&tree()));
    complains(
        structure::mod_files,
        "src/a/mod.rs",
        "//! A.\n",
        &["src/a/mod.rs:1: call it src/a.rs"],
    );
}

#[test]
fn every_file_is_part_of_a_crate() {
    clean(&structure::unreachable(&tree()));
    let files = [
        Source::new("src/lib.rs", "//! Root.\npub mod a;\n// mod c;\n"),
        Source::new(
            "src/a.rs",
            "//! A.\nmod b;\n#[path = \"odd name.rs\"]\nmod odd;\n",
        ),
        Source::new("src/a/b.rs", "//! B.\n"),
        Source::new("src/a/odd name.rs", "//! B.\n"),
        Source::new("src/c.rs", "//! C.\n"),
        Source::new("src/a/lost.rs", "//! Lost.\n"),
    ];
    assert_eq!(
        structure::unreachable(&files),
        [
            "src/c.rs:1: no `mod` line leads here, so it is not compiled",
            "src/a/lost.rs:1: no `mod` line leads here, so it is not compiled",
        ]
    );
}

#[test]
fn rooms_enter_only_the_rooms_they_may() {
    clean(&arrows::between_rooms(&tree(), ROOMS));
    let rule = |files: &[Source]| arrows::between_rooms(files, ROOMS);
    let grouped = "//! A.\nuse crate::{\n    query::{self, list},\n    app::Page,\n};\n";
    complains(
        rule,
        "src/service/a.rs",
        grouped,
        &["src/service/a.rs:4: `service` may not enter `app`; it may enter query"],
    );
    let inline = "//! A.\n// crate::app\nfn f() { crate::grpc::open(\"crate::app\") }\n";
    complains(
        rule,
        "src/query.rs",
        inline,
        &["src/query.rs:3: `query` may not enter `grpc`; it may enter nothing"],
    );
    complains(
        rule,
        "src/attic.rs",
        "//! A.\n",
        &["src/attic.rs:1: `attic` is not in the table of rooms in tests/tidy.rs"],
    );
    complains(
        rule,
        "src/app/a.rs",
        "//! A.\nuse crate::grpc::Page;\n",
        &[],
    );
}

#[test]
fn siblings_do_not_name_each_other_in_a_circle() {
    clean(&modules::circular(&tree()));
}

#[test]
fn crates_are_named_only_where_they_may_be() {
    clean(&arrows::to_crates(&tree(), CRATES));
    let rule = |files: &[Source]| arrows::to_crates(files, CRATES);
    let sql = "//! A.\nuse sqlx::Row;\nuse std::fmt;\nfn f() { x::sqlx::y(); notsqlx::z() }\n";
    complains(rule, "crates/storage/src/driver.rs", sql, &[]);
    complains(rule, "tests/store.rs", sql, &[]);
    complains(
        rule,
        "src/service/a.rs",
        sql,
        &[
            "src/service/a.rs:2: `sqlx` may be named only in crates/storage/src/driver*, crates/storage/src/tools/archive*, crates/storage/src/tools/foreign.rs, crates/storage/src/tools/tekton*, crates/storage/src/testing.rs, crates/storage/src/conformance*",
        ],
    );
    let grouped = "//! A.\nuse {\n    cel::Program,\n};\nuse anyhow as a;\nuse kube;\n";
    complains(
        rule,
        "watcher/src/plan/a.rs",
        grouped,
        &[
            "watcher/src/plan/a.rs:3: `cel` may be named only in crates/filter/src/parse.rs, crates/filter/src/parse/",
            "watcher/src/plan/a.rs:6: `kube` may not be named in watcher/src/plan*",
            "watcher/src/plan/a.rs:5: `anyhow` may be named only in src/main.rs, src/cli*, controller/src/cli*, \
         watcher/src/main.rs, watcher/src/cli*, tests/kubesim/src/main.rs",
        ],
    );
}

#[test]
fn only_configuration_reads_the_environment() {
    clean(&arrows::environment(&tree(), ENVIRONMENT));
    let rule = |files: &[Source]| arrows::environment(files, ENVIRONMENT);
    let reads =
        "//! A.\nfn f() { std::env::var_os(\"HOME\"); env!(\"HOME\"); std::env::temp_dir(); }\n";
    complains(rule, "crates/config/src/sources.rs", reads, &[]);
    complains(rule, "tests/a.rs", reads, &[]);
    complains(
        rule,
        "src/app.rs",
        reads,
        &["src/app.rs:2: reads the environment; only crates/config/src/sources.rs does"],
    );
}

#[test]
fn json_of_strangers_is_read_in_one_place() {
    clean(&json::readers(&tree(), READS_JSON));
    let bad = "//! A.\nfn f() { serde_json::from_slice::<Value>(b); serde_json::to_value(raw) }\n\
               use serde_json::{Map, from_str};\n#[cfg(test)]\nmod tests { serde_json::from_str(t) }\n";
    complains(
        |files| json::readers(files, &[("src/b.rs", "")]),
        "src/a.rs",
        bad,
        &[
            "src/a.rs:2: `serde_json::from_slice` gives some keys a meaning; ask `hindsight_run::json`",
            "src/a.rs:2: `serde_json::to_value` gives some keys a meaning; ask `hindsight_run::json`",
            "src/a.rs:3: name what reads JSON by its path, as in `serde_json::from_str`",
            "src/b.rs:1: reads no JSON; take it off the list in tests/tidy.rs",
        ],
    );
    complains(|files| json::readers(files, &[]), "tests/a.rs", bad, &[]);
}

#[test]
fn error_texts_follow_the_style() {
    clean(&words::error_texts(&tree()));
    let bad = "//! A.\n#[error(\"Bad name\")]\n#[error(\n    \"ends here.\"\n)]\n\
               #[error(\"failed to open \\\n  it\")]\n#[error(transparent)]\n// #[error(\"X.\")]\n\
               #[error(\"`{0}` is \\\"fine\\\"\")]\n#[error(\"{0}\")]\n#[error(r#\"Raw\"#)]\n";
    complains(
        words::error_texts,
        "src/a.rs",
        bad,
        &[
            "src/a.rs:2: error text begins with `B`; begin with a small letter, a backtick or a brace",
            "src/a.rs:3: error text ends with a full stop",
            "src/a.rs:6: error text says it failed; it is an error already, say what was wrong",
            "src/a.rs:12: error text begins with `R`; begin with a small letter, a backtick or a brace",
        ],
    );
}

#[test]
fn what_is_left_to_do_has_an_issue() {
    clean(&words::loose_ends(&tree()));
    let marks = concat!(
        "//! A.\n// TO",
        "DO: later\n// TO",
        "DO(#12): later\n// FIX",
        "ME\n"
    );
    complains(
        words::loose_ends,
        "src/a.rs",
        marks,
        &[
            concat!(
                "src/a.rs:2: `TO",
                "DO` without an issue, as in `TO",
                "DO(#12)`"
            ),
            concat!(
                "src/a.rs:4: `FIX",
                "ME` without an issue, as in `FIX",
                "ME(#12)`"
            ),
        ],
    );
}

#[test]
fn nothing_is_unfinished_and_no_test_is_switched_off() {
    clean(&words::unfinished(&tree()));
    // In pieces, so that the sample is not found in this file.
    let bad = concat!(
        "//! A. todo",
        "!()\nfn f() { todo",
        "!() }\nfn g() { unimplemented",
        "!(\"x\") }\n#[test]\n#[ignore = \"slow\"]\nfn test_h() {}\n"
    );
    complains(
        words::unfinished,
        "src/a.rs",
        bad,
        &[
            "src/a.rs:2: `todo!` is not an answer",
            "src/a.rs:3: `unimplemented!` is not an answer",
            "src/a.rs:5: a test that is switched off proves nothing; mend it or take it out",
            "src/a.rs:6: the name of a test is a true sentence, without `test_`",
        ],
    );
}

#[test]
fn the_page_about_configuration_is_fresh() {
    let page = std::fs::read_to_string(source::root().join("docs/config.md")).unwrap();
    let expected = [
        hindsight::config::reference_markdown(),
        hindsight_watcher::config::reference_markdown(),
        hindsight_controller::config::reference_markdown(),
    ];
    assert!(
        page == expected.concat(),
        "docs/config.md is stale; write it anew with \
         `(hindsight config docs; hindsight-watcher config docs; \
         hindsight-workflow config docs) > docs/config.md`"
    );
}

#[test]
fn crates_enter_what_the_map_shows() {
    let read = |name: &str| std::fs::read_to_string(source::root().join(name)).unwrap();
    let manifests: Vec<String> = [
        "Cargo.toml",
        "controller/Cargo.toml",
        "proto/Cargo.toml",
        "watcher/Cargo.toml",
        "web/Cargo.toml",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain(source::crates())
    .map(|manifest| read(&manifest))
    .collect();
    let map = read("docs/ARCHITECTURE.md");
    clean(&structure::off_the_map(&manifests, &map));
    let manifest =
        "[package]\nname = \"hindsight-a\"\n[dependencies]\nhindsight-b = \"1\"\nc = \"1\"";
    assert_eq!(
        structure::off_the_map(&[manifest.to_owned()], "```crates\na -> c\nd ->\n```\n"),
        [
            "docs/ARCHITECTURE.md: says `a -> c`, and the manifest `a -> b`",
            "docs/ARCHITECTURE.md: there is no crate `d`",
        ]
    );
}

#[test]
fn crates_whose_types_cross_our_seams_are_there_once() {
    let read = |name: &str| std::fs::read_to_string(source::root().join(name)).unwrap();
    clean(&structure::duplicates(
        &read("deny.toml"),
        &read("Cargo.lock"),
    ));
    let deny =
        "[bans]\ndeny = [{ crate = \"a\", deny-multiple-versions = true }, { crate = \"b\" }]";
    let package = |name: &str, version: &str| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
    };
    let lock = package("a", "1.0.0") + &package("a", "2.0.0") + &package("b", "3.0.0");
    assert_eq!(
        structure::duplicates(deny, &lock),
        ["Cargo.lock: `a` is there as 1.0.0 and 2.0.0"]
    );
    assert!(structure::duplicates(deny, &package("a", "1.0.0")).is_empty());
}

#[test]
fn the_tree_is_really_read() {
    let paths: Vec<_> = tree().into_iter().map(|file| file.path).collect();
    for path in [
        "src/lib.rs",
        "proto/src/lib.rs",
        "watcher/src/lib.rs",
        "tests/tidy/source.rs",
    ] {
        assert!(
            paths.iter().any(|seen| seen == path),
            "{path} is not among {paths:?}"
        );
    }
    assert!(!paths.iter().any(|path| path.starts_with("target/")));
}

#[test]
fn alerts_and_dashboard_name_metrics_that_exist() {
    let (alerts, dashboard, runbook) = monitoring::read();
    let known = monitoring::registered(&tree());
    for what in [&alerts, &dashboard] {
        clean(&monitoring::strangers(&known, what, &runbook));
    }
    let bad = serde_json::json!({"groups": [{"rules": [
        {"alert": "New", "expr": "rate(hindsight_nothing_total[5m]) > 0"},
    ]}]});
    assert_eq!(
        monitoring::strangers(&known, &bad, &runbook),
        [
            "`hindsight_nothing_total` is no metric of ours",
            "docs/operate.md does not say what to do about `New`",
        ]
    );
}

#[test]
fn every_known_weakness_is_shown_to_be_absent_or_has_a_reason() {
    let text = std::fs::read_to_string(source::root().join("docs/weaknesses.md")).unwrap();
    let page = Source::new("docs/weaknesses.md", &text);
    clean(&weaknesses::unshown(&page, &tree(), weaknesses::CHAPTERS));
    let bad = "| No. | There | Here | Shown by |\n|---|---|---|---|\n\
               | A1 | x | y | `it_is_so`, `it_is_not_a_test`, `it_is_a_text` |\n\
               | A2 | x | y | – |\n| A3 | x | Reason: z. | – |\n";
    let files = [Source::new(
        "tests/a.rs",
        "//! A.\n// #[test]\nfn it_is_not_a_test() {}\n#[tokio::test]\n\
         async fn it_is_so() { \"#[test] fn it_is_a_text()\" }\n",
    )];
    assert_eq!(
        weaknesses::unshown(&Source::new("docs/a.md", bad), &files, &[('A', 1..=4)]),
        [
            "docs/a.md:3: A1 names `it_is_not_a_test`, which is no test",
            "docs/a.md:3: A1 names `it_is_a_text`, which is no test",
            "docs/a.md:4: A2 names no test and gives no reason",
            "docs/a.md:1: there is no row A4",
        ]
    );
}
