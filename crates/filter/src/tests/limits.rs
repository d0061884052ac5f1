//! Filters that are large, deep or slow.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::rows::{judge, record, task_record};
use crate::{
    Body, EvalError, Filter, FilterError, Row,
    condition::Ability,
    model::{Resource, Tier},
};

fn compile(text: &str) -> Result<Filter, FilterError> {
    Filter::compile(text, Resource::Records)
}

#[test]
fn long_filters_are_refused_by_length() {
    let text = format!("data.kind == '{}'", "x".repeat(100_000));
    assert_eq!(
        compile(&text).unwrap_err(),
        FilterError::TooLong { chars: 100_015 }
    );
    let many = format!("data.x in [{}1]", "1,".repeat(20_000));
    assert_eq!(compile(&many).unwrap_err(), FilterError::TooManyParts);
}

#[test]
fn wide_filters_are_read() {
    let names: Vec<_> = (0..2_000)
        .map(|n| format!("data.metadata.name == 'n{n}'"))
        .collect();
    compile(&names.join(" || ")).unwrap();
    let list: Vec<_> = (0..5_000).map(|n| format!("'n{n}'")).collect();
    compile(&format!("data.metadata.name in [{}]", list.join(","))).unwrap();
}

#[test]
fn deep_filters_are_refused_whatever_they_nest() {
    let deep = |open: &str, inner: &str, close: &str| {
        for times in [100, 5_000, 25_000] {
            let text = format!("{}{inner}{}", open.repeat(times), close.repeat(times));
            if text.len() <= 100_000 {
                let error = compile(&text).unwrap_err();
                assert!(
                    matches!(error, FilterError::TooDeep { .. }),
                    "{open}: {error}"
                );
            }
        }
    };
    deep("(", "true", ")");
    deep("[", "1", "]");
    deep("{1:", "1", "}");
    deep("!(", "true", ")");
    deep("has(", "data.x", ")");
    deep("", "data", ".x");
    deep("", "data", "[0]");
    deep("", "data", ".x()");
    deep("1+", "1", "");
    deep("1==", "1", "");
    deep("1 in ", "1", "");
    deep("true?1:", "1", "");
    deep("true && false ? 1 : ", "1", "");
    deep("x && (y || ", "true", ")");
    deep("data.a.exists(x, ", "true", ")");
    deep("'a' + ", "'b'", "");
    deep("r'\\' + ", "'b'", "");
    deep("/**/'a' + ", "'b'", "");
}

#[test]
fn signs_in_a_row_cancel() {
    assert_eq!(
        judge(&format!("{}true", "!".repeat(10_000)), &task_record()),
        Ok(true)
    );
}

#[test]
fn one_row_cannot_take_forever() {
    let list: Vec<_> = (0..1_000).collect();
    let row = record(
        "ci/results/r/records/x",
        "t",
        format!("{{\"l\":{list:?},\"s\":\"{}\"}}", "a".repeat(100_000)).as_bytes(),
    );
    let began = Instant::now();
    for filter in [
        "data.l.exists(a, data.l.exists(b, a * b < 0))",
        "data.l.all(a, data.l.all(b, data.l.all(c, true)))",
        "data.l.map(a, data.l).size() < 0 || data.l.exists(a, data.l == data.l && false)",
        "data.s.replace('a', data.s).size() == 0",
        "data.l.map(a, data.s + data.s).join('').size() == 0",
        "data.l.exists(a, data.s.contains('b') || data.s.matches('(a|b)*c'))",
        "data.l.exists(a, data.s.matches(data.s + 'b'))",
        "data.s.split('').exists(x, data.s.split('').exists(y, x != y))",
    ] {
        assert_eq!(judge(filter, &row), Err(EvalError::Budget), "{filter}");
    }
    // Without the budget each of these takes minutes.
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn choices_in_conditions_do_not_multiply_without_end() {
    let mut text = "data.kind == 'x'".to_owned();
    for _ in 0..40 {
        text = format!("({text} ? data.kind == 'a' : data.kind == 'b')");
    }
    let split = compile(&text).unwrap().split(&|_| Ability::Exact);
    assert!(split.residual);
}

const PIECES: [&str; 36] = [
    "data",
    ".kind",
    ".metadata",
    "[0]",
    "['k']",
    " == ",
    " != ",
    " && ",
    " || ",
    "!",
    "(",
    ")",
    "'a'",
    "\"b\\n\"",
    "r'\\'",
    "5",
    "5u",
    "-1.5e3",
    "0x1F",
    "null",
    "true",
    " in ",
    "[",
    "]",
    ",",
    "{",
    "}",
    ":",
    " ? ",
    ".exists(c, ",
    ".contains(",
    "timestamp(",
    "has(",
    "`x y`",
    "// c\n",
    "'''t'''",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        drop(compile(&text));
        drop(Filter::compile(&text, Resource::Results));
    }

    #[test]
    fn any_row_of_pieces_is_read_or_refused(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)
    ) {
        let text = pieces.concat();
        if let Ok(filter) = compile(&text) {
            let row = task_record();
            let body = Body::of(&row);
            let judged = filter.matches(&Row::Record { record: &row, tier: Tier::Hot, body: &body });
            prop_assert!(judged.is_ok());
        }
    }

    #[test]
    fn a_damaged_filter_is_read_or_refused(at in 0_usize..200, with in "\\PC{0,3}", cut in 0_usize..4) {
        let valid = "data_type in [\"tekton.dev/v1.TaskRun\"] && !(data.status.startTime > \
            timestamp('2026-01-01T00:00:00Z')) || data.status.conditions.exists(c, c.reason == \
            r'a\\d' ? true : c.status.matches('^x+$')) && '''a'b''' != data.spec[\"k\"].x";
        let chars: Vec<char> = valid.chars().collect();
        let at = at.min(chars.len());
        let rest = chars[(at + cut).min(chars.len())..].iter();
        let text: String = chars[..at].iter().copied().chain(with.chars()).chain(rest.copied()).collect();
        drop(compile(&text));
    }
}
