//! What lines of words lead to, without a server.

use super::{
    line::{Line, words},
    values::{KEYS, Source, WORDS, source},
};
use crate::cli::command;

/// What the last word of a line may go on with: fixed values, or what a server is asked.
fn told(line: &str) -> (Vec<String>, String) {
    let mut root = command();
    root.build();
    let words: Vec<_> = words(line).into_iter().skip(1).collect();
    let line = Line::of(&root, &words);
    let (source, before, value) = source(&line);
    let (fixed, asked) = match source {
        Source::Fixed(fixed) => (fixed, String::new()),
        Source::Files => (Vec::new(), "files".to_owned()),
        Source::Contexts => (Vec::new(), "contexts".to_owned()),
        Source::Server(asked, fixed) => {
            let key = asked.label_key;
            let place = asked.namespace.map(|it| format!(" in {it}"));
            let kind = asked.kind.as_str_name();
            (fixed, format!("{kind}{key}{}", place.unwrap_or_default()))
        }
    };
    let values = fixed.into_iter().map(|it| it.value);
    let values = values.filter(|text| text.starts_with(&value));
    let values = values.map(|text| format!("{before}{text}")).collect();
    (values, format!("{asked} {before}|{value}"))
}

#[test]
fn commands_and_flags_are_known_without_a_server() {
    for (line, values) in [
        ("hindsight fla", &["flaky"][..]),
        ("hindsight __", &[]),
        ("hindsight runs --no-h", &["--no-headers"]),
        ("hindsight runs -o js", &["json", "jsonl"]),
        ("hindsight runs --output=ya", &["--output=yaml"]),
        ("hindsight context us", &["use"]),
        ("hindsight diff a --only params,im", &["params,images"]),
        ("hindsight list ru", &["runs"]),
        (
            "hindsight runs status:failed,ti",
            &["status:failed,timeout"],
        ),
        ("hindsight runs -A not:is:t", &["not:is:top"]),
        ("hindsight why @last-", &["@last-failed"]),
        ("hindsight get record @", &[]),
        ("hindsight completion f", &["fish"]),
    ] {
        assert_eq!(told(line).0, values, "{line}");
    }
}

#[test]
fn values_are_asked_for_by_what_they_are() {
    for (line, asked) in [
        ("hindsight why rel", "NAME |rel"),
        ("hindsight why -n shop rel", "NAME |rel"),
        ("hindsight diff shop/a shop/b", "NAME in shop shop/|b"),
        ("hindsight get run rel", "NAME |rel"),
        ("hindsight delete run a b", "NAME |b"),
        ("hindsight get record rel", " |rel"),
        ("hindsight runs -n sh", "NAMESPACE |sh"),
        (
            "hindsight runs -A --pipeline=a,b",
            "PIPELINE --pipeline=a,|b",
        ),
        ("hindsight runs -Ap rel", "PIPELINE |rel"),
        ("hindsight runs pipeline:a,re", "PIPELINE pipeline:a,|re"),
        ("hindsight flaky label:te", "LABEL_KEY label:|te"),
        (
            "hindsight slow label:team=w",
            "LABEL_VALUEteam label:team=|w",
        ),
        (
            "hindsight list runs -l a=b,team=w",
            "LABEL_VALUEteam a=b,team=|w",
        ),
        ("hindsight runs --context pr", "contexts |pr"),
        ("hindsight context use pr", "contexts |pr"),
        ("hindsight import x.js", "files |x.js"),
        ("hindsight runs --token-file=t", "files --token-file=|t"),
        ("hindsight runs --limit 1", " |1"),
        ("hindsight runs -- -x", "NAME |-x"),
    ] {
        assert_eq!(told(line).1, asked, "{line}");
    }
}

#[test]
fn flags_that_name_a_server_are_kept() {
    let mut root = command();
    root.build();
    let words = [
        "why",
        "--server=http://h:1",
        "-A",
        "-pci",
        "--token-file",
        "t",
        "",
    ];
    let words = words.map(str::to_owned);
    let line = Line::of(&root, &words);
    let given: Vec<_> = line
        .given
        .iter()
        .map(|(id, text)| (*id, text.as_str()))
        .collect();
    let kept = [
        ("all_namespaces", "true"),
        ("pipeline", "ci"),
        ("server", "http://h:1"),
        ("token_file", "t"),
    ];
    assert_eq!(given, kept);
    assert_eq!(super::connect(&line.given).unwrap().server(), "http://h:1");
}

#[test]
fn every_word_that_is_suggested_has_a_meaning() {
    let now = hindsight_filter::words::Now {
        time: jiff::Timestamp::UNIX_EPOCH,
        zone: jiff::tz::TimeZone::UTC,
    };
    let values = |values: &[&'static str]| match values {
        [] => vec!["x"],
        values => values.to_vec(),
    };
    let keys = KEYS.iter().flat_map(|(key, known)| {
        let texts = values(known).into_iter();
        texts.map(move |value| format!("{key}{value}"))
    });
    let alone = WORDS.iter().map(|word| (*word).to_owned());
    for word in keys.chain(alone) {
        let read = hindsight_filter::words::read(&word, &now);
        assert!(read.is_ok(), "{word}: {read:?}");
    }
}
