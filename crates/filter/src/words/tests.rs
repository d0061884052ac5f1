//! Words, what they mean, and that no text means anything else.

use jiff::tz::TimeZone;
use proptest::{prelude::*, sample::select};

use super::*;
use crate::{
    Filter,
    condition::{Ability, Is, Test},
    model::Resource,
};

fn now() -> Now {
    Now {
        time: "2026-03-29T12:00:00Z".parse().unwrap(),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
    }
}

/// What stores answer: everything but parts of texts with characters that they keep otherwise.
fn ability(test: &Test) -> Ability {
    match &test.is {
        Is::EndsWith(part) | Is::Contains(part) if part.contains(['\0', '\u{1}', '\u{2}']) => {
            Ability::None
        }
        _ => Ability::Exact,
    }
}

/// Whether stores answer the filter without a look at payloads.
fn is_answered(cel: &str) -> bool {
    let filter = Filter::compile(cel, Resource::Records).unwrap_or_else(|e| panic!("{cel}: {e}"));
    !filter.split(&ability).residual
}

#[track_caller]
fn means(words: &str, cel: &str) {
    let query = read(words, &now()).unwrap_or_else(|e| panic!("{words}: {e}"));
    assert_eq!(query.cel, cel, "{words}");
    assert_eq!(query.mark, None, "{words}");
    assert!(is_answered(cel), "{cel}");
}

#[track_caller]
fn refuses(words: &str, part: &str, what: &str) {
    let error = read(words, &now()).unwrap_err();
    assert_eq!(error.to_string(), format!("query {}: {what}", error.place));
    assert_eq!(&words[error.at..][..part.len()], part, "{words}");
    assert_eq!(error.word, part, "{words}");
}

#[test]
fn words_are_joined_by_and() {
    means("", "");
    means("  \t\n ", "");
    means(
        "failed pipeline:release took>10m since:24h label:team=web",
        "run.outcome in [FAILURE, TIMEOUT] && run.pipeline == \"release\" && \
         run.end_time - run.start_time > duration(\"600s\") && \
         run.start_time >= timestamp(\"2026-03-28T12:00:00Z\") && run.labels[\"team\"] == \"web\"",
    );
}

#[test]
fn a_word_by_itself_is_a_part_of_a_name_or_a_status() {
    let name = |test: &str| format!("data.metadata.name.{test}");
    means("release-42", &name("contains(\"release-42\")"));
    means("build*", &name("startsWith(\"build\")"));
    means("*build", &name("endsWith(\"build\")"));
    means("*build*", &name("contains(\"build\")"));
    means("\"failed\"", &name("contains(\"failed\")"));
    means("'a b'", &name("contains(\"a b\")"));
    means("1.2", &name("contains(\"1.2\")"));
    means("-test", "!(data.metadata.name.contains(\"test\"))");
    means(
        "Running",
        "(run.outcome == UNKNOWN && has(run.start_time) && !has(run.end_time))",
    );
    means("succeeded", "run.outcome == SUCCESS");
    means("failed", "run.outcome in [FAILURE, TIMEOUT]");
    means(
        "-failed",
        "(!has(run.outcome) || !(run.outcome in [FAILURE, TIMEOUT]))",
    );
    means(
        "not:cancelled",
        "(!has(run.outcome) || !(run.outcome == CANCELLED))",
    );
}

#[test]
fn statuses_are_those_of_every_kind() {
    means("status:failed", "run.outcome == FAILURE");
    means("status:failed,timeout", "run.outcome in [FAILURE, TIMEOUT]");
    means("status:OK", "run.outcome == SUCCESS");
    means(
        "status:waiting,cancelled",
        "(run.outcome == CANCELLED || \
         (run.outcome == UNKNOWN && !has(run.start_time) && !has(run.end_time)))",
    );
    means("is:failed", "run.outcome in [FAILURE, TIMEOUT]");
    means("is:top", "!has(run.labels[\"tekton.dev/pipelineRun\"])");
    means("-is:top", "!(!has(run.labels[\"tekton.dev/pipelineRun\"]))");
    means("is:child", "has(run.labels[\"tekton.dev/pipelineRun\"])");
}

#[test]
fn values_between_commas_are_joined_by_or() {
    means("pipeline:a,b", "run.pipeline in [\"a\", \"b\"]");
    means("cluster:east", "run.cluster == \"east\"");
    means("tier:cold", "tier == \"cold\"");
    means("-tier:hot", "!(tier == \"hot\")");
    means(
        "signature:1k3f9xq2mz0,1a*",
        "(run.signature == \"1k3f9xq2mz0\" || run.signature.startsWith(\"1a\"))",
    );
    means(
        "-cluster:east*",
        "(!has(run.cluster) || !(run.cluster.startsWith(\"east\")))",
    );
    means(
        "pipeline:a,b*,\"c,d\"",
        "(run.pipeline in [\"a\", \"c,d\"] || run.pipeline.startsWith(\"b\"))",
    );
    means(
        "name:a name:b* -name:*c",
        "data.metadata.name == \"a\" && \
         data.metadata.name.startsWith(\"b\") && !(data.metadata.name.endsWith(\"c\"))",
    );
    means("ns:a", "data.metadata.namespace == \"a\"");
    means("NAMESPACE:a", "data.metadata.namespace == \"a\"");
    means("uid:u-1", "data.metadata.uid == \"u-1\"");
    means("pipeline:\"\"", "run.pipeline == \"\"");
    means("pipeline:*", "run.pipeline.startsWith(\"\")");
    means(
        "-pipeline:a",
        "(!has(run.pipeline) || !(run.pipeline == \"a\"))",
    );
}

#[test]
fn a_run_may_lack_a_reason() {
    means(
        "reason:Error,OOM*",
        "(run.reason == \"Error\" || run.reason.startsWith(\"OOM\"))",
    );
    means(
        "-reason:Error",
        "(!has(run.reason) || !(run.reason == \"Error\"))",
    );
}

#[test]
fn kinds_have_short_names() {
    for kind in ["TaskRun", "taskrun", "taskruns", "TASKRUN", "tr"] {
        means(&format!("kind:{kind}"), "data.kind == \"TaskRun\"");
    }
    means("kind:wf,job", "data.kind in [\"Workflow\", \"Job\"]");
    means("kind:SparkApplication", "data.kind == \"SparkApplication\"");
    means("kind:\"lower\"", "data.kind == \"lower\"");
    means("-kind:*Run", "!(data.kind.endsWith(\"Run\"))");
}

#[test]
fn labels_are_there_or_have_a_value() {
    means("label:team", "has(run.labels[\"team\"])");
    means("-label:team", "!(has(run.labels[\"team\"]))");
    means(
        "label:app.kubernetes.io/name=a,b",
        "run.labels[\"app.kubernetes.io/name\"] in [\"a\", \"b\"]",
    );
    means("label:team=", "run.labels[\"team\"] == \"\"");
    means("label:a=b=c", "run.labels[\"a\"] == \"b=c\"");
    means("label:\"a=b\"=c", "run.labels[\"a=b\"] == \"c\"");
    means("label:team=w*", "run.labels[\"team\"].startsWith(\"w\")");
    means(
        "-label:team=web",
        "(!has(run.labels[\"team\"]) || !(run.labels[\"team\"] == \"web\"))",
    );
}

#[test]
fn times_are_of_the_zone_and_the_moment() {
    let since = |time: &str| format!("run.start_time >= timestamp(\"{time}\")");
    // Clocks went ahead at two in the morning.
    means("since:today", &since("2026-03-28T23:00:00Z"));
    means("since:yesterday", &since("2026-03-27T23:00:00Z"));
    means("since:2026-03-30", &since("2026-03-29T22:00:00Z"));
    means("since:2026-03-29T02:30", &since("2026-03-29T01:30:00Z"));
    means("since:2026-03-29T02:30:00Z", &since("2026-03-29T02:30:00Z"));
    means(
        "since:2026-03-29T02:30:00-05:00",
        &since("2026-03-29T07:30:00Z"),
    );
    means("since:1d12h", &since("2026-03-28T00:00:00Z"));
    means("since:now", &since("2026-03-29T12:00:00Z"));
    means(
        "until:2w",
        "run.start_time < timestamp(\"2026-03-15T12:00:00Z\")",
    );
    means(
        "-until:2026-03-02",
        "(!has(run.start_time) || !(run.start_time < timestamp(\"2026-03-01T23:00:00Z\")))",
    );
    let took = |sign: &str, length: &str| {
        format!("run.end_time - run.start_time {sign} duration(\"{length}\")")
    };
    means("took>1h30m", &took(">", "5400s"));
    means("took<=90s", &took("<=", "90s"));
    means(
        "-took>=1w",
        "(!has(run.start_time) || !has(run.end_time) || \
         !(run.end_time - run.start_time >= duration(\"604800s\")))",
    );
}

#[test]
fn a_text_with_a_mark_of_cel_is_cel() {
    let cel = |text: &str, cel: &str, mark, at| {
        let query = read(text, &now()).unwrap();
        assert_eq!(query.cel, cel);
        assert_eq!(query.mark, Some(Mark { text: mark, at }));
    };
    cel("data.kind == 'a'", "data.kind == 'a'", "==", 10);
    cel(" has(data.x) ", "has(data.x)", "(", 4);
    cel("cel: data.flag", "data.flag", "cel:", 0);
    cel("failed && x", "failed && x", "&&", 7);
    cel("\"==\" in x[0]", "\"==\" in x[0]", "[", 9);
    means("\"a == b\"", "data.metadata.name.contains(\"a == b\")");
}

/// A text, the part of it that is wrong, and what is said of it.
const REFUSED: [(&str, &str, &str); 21] = [
    (
        "failed pipline:a",
        "pipline",
        "unknown word `pipline`; did you mean `pipeline`? To search names for it, quote it",
    ),
    (
        "status:faild",
        "faild",
        "unknown status `faild`; did you mean `failed`?",
    ),
    (
        "status:x",
        "x",
        "unknown status `x`; want one of `succeeded`, `failed`, `timeout`, `cancelled`, `running`, \
         `waiting`, `vanished`",
    ),
    (
        "kind:taskrn",
        "taskrn",
        "unknown kind `taskrn`; did you mean `TaskRun`? Another kind is written as it is \
         spelled, with its capitals",
    ),
    (
        "is:parent",
        "parent",
        "`is:` has no `parent`; want one of `failed`, `running`, `child`, `top`",
    ),
    ("--a", "--", "this excludes twice; write one `-`, or none"),
    (
        "name:a*b",
        "*",
        "`*` stands at the beginning or the end of a value; for both ends write two words, such as \
         `name:a* name:*b`",
    ),
    (
        "e \"a",
        "\"a",
        "the quote before `a` is not closed; end it with `\"`, or write `\\\"` in quotes for the \
         character",
    ),
    (
        "pipeline: release",
        "",
        "`pipeline:` wants a value; an empty one is written `\"\"`",
    ),
    (
        "pipeline:a pipeline:b",
        "pipeline:b",
        "`pipeline:` is given twice, and a run has one; write `pipeline:a,b` for either",
    ),
    (
        "failed timeout",
        "timeout",
        "`status:` is given twice, and a run has one; write `status:a,b` for either",
    ),
    (
        "pipeline=a",
        "pipeline=a",
        "a word with a value is written `key:value`; a filter in CEL begins with `cel:`",
    ),
    (
        "!failed",
        "!failed",
        "exclude with `-` or `not:`; a filter in CEL begins with `cel:`",
    ),
    (
        "data.spec.debug",
        "data.spec.debug",
        "`data.spec.debug` may be a field of CEL or a part of a name; begin with `cel:` for the \
         one, quote it for the other",
    ),
    (
        "run.outcome>1",
        "run.outcome",
        "`run.outcome` is a variable of CEL; begin the filter with `cel:`",
    ),
    (
        "a,b",
        "a,b",
        "a list of names is written `name:a,b`, one of statuses `status:a,b`",
    ),
    (
        "took:10m",
        "took:10m",
        "write `took>10m` or `took<10m`; no run takes an exact time",
    ),
    (
        "pipeline>a",
        "pipeline",
        "`pipeline` has no `>`; write `pipeline:`",
    ),
    (
        "label:=a",
        "=a",
        "there is no key before `=`; write `label:key=value`",
    ),
    (
        "tier:hot,warm",
        "warm",
        "`warm` is no tier; want `hot` or `cold`",
    ),
    (
        "name:a\u{1b}b",
        "a\u{1b}b",
        "a control character; a filter for one is written in CEL, after `cel:`",
    ),
];

#[test]
fn what_is_no_word_says_how_to_write_it() {
    for (words, part, what) in REFUSED {
        refuses(words, part, what);
    }
    refuses(
        "since:soon",
        "soon",
        &format!("`soon` is not a time; {}", time::TIMES),
    );
    refuses(
        "took>10",
        "10",
        &format!("`10` is no length of time; {}", time::LENGTHS),
    );
}

#[test]
fn a_text_is_bounded() {
    let many = "a ".repeat(MAX_WORDS + 1);
    let error = read(&many, &now()).unwrap_err();
    assert_eq!(error.at, 2 * MAX_WORDS);
    let values = format!("name:{}", "a,".repeat(MAX_VALUES) + "a");
    assert!(read(&values, &now()).is_err());
    let long = "a".repeat(MAX_BYTES + 1);
    assert!(
        read(&long, &now())
            .unwrap_err()
            .what
            .starts_with("4097 bytes")
    );
    // As much as is possible is still answered by columns.
    let most = format!(
        "-reason:{} {}",
        "a*,".repeat(MAX_VALUES - MAX_WORDS) + "b",
        "-reason:c* ".repeat(MAX_WORDS - 1)
    );
    let query = read(&most, &now()).unwrap();
    assert!(is_answered(&query.cel));
}

fn word() -> impl Strategy<Value = String> {
    let key = select(vec![
        "",
        "-",
        "not:",
        "name:",
        "-pipeline:",
        "pipeline:",
        "label:",
        "-label:",
        "label:team=",
        "status:",
        "kind:",
        "reason:",
        "-reason:",
        "ns:",
        "uid:",
        "cluster:",
        "tier:",
        "took>",
        "took<=",
        "since:",
        "until:",
        "is:",
        "cel:",
        "x:",
    ]);
    let value = prop_oneof![
        select(vec![
            "failed",
            "timeout",
            "running",
            "10m",
            "2026-03-02",
            "a*",
            "*b",
            "a,b",
            "\"a b\"",
            "'\\''",
            "TaskRun",
            "child",
            "team",
            "team=web",
            "\" == \"",
            "\"\\\") || true || (\\\"\"",
            "x\"",
            "\u{202e}",
            "*",
            "",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,8}",
        any::<String>(),
    ];
    (key, value).prop_map(|(key, value)| format!("{key}{value}"))
}

proptest! {
    #[test]
    fn words_always_make_a_filter_that_columns_answer(
        words in prop::collection::vec(word(), 0..6),
    ) {
        let text = words.join(" ");
        match read(&text, &now()) {
            Ok(Query { cel, mark: None }) => prop_assert!(is_answered(&cel), "{text}: {cel}"),
            Ok(_) => {}
            Err(error) => {
                prop_assert!(text.is_char_boundary(error.at));
                prop_assert!(!error.what.is_empty());
            }
        }
    }

    #[test]
    fn a_value_is_one_text_whatever_is_in_it(text in prop_oneof![any::<String>(), "[a-c.:@*, \"'=(]{0,6}"]) {
        match read(&format!("name:{}", value(&text)), &now()) {
            Ok(query) => {
                prop_assert!(query.mark.is_none());
                let expected = format!("data.metadata.name == {}", quoted(&text));
                prop_assert_eq!(&query.cel, &expected);
                let filter = Filter::compile(&query.cel, Resource::Records).unwrap();
                let asked = format!("data.metadata.name = {text:?}");
                prop_assert_eq!(filter.split(&ability).condition.to_string(), asked);
            }
            Err(_) => prop_assert!(text.contains(char::is_control)),
        }
    }
}

#[test]
fn reading_takes_time_in_proportion_to_the_text() {
    let long = "\\\"'(".repeat(200_000);
    let begun = std::time::Instant::now();
    drop(read(&format!("'{long}"), &now()));
    drop(read(&long, &now()));
    drop(read(&format!("\"{}\"", "=".repeat(1_000_000)), &now()));
    assert!(begun.elapsed().as_secs() < 5);
}
