//! Filters that are written to cost much. All of them are refused by what they are charged.

use tokio_util::sync::CancellationToken;

use super::rows::{judge, record};
use crate::{
    Body, CostBudget, EvalError, Filter, FilterError, Language, Row, Selection,
    condition::{Ability, Condition, Is},
    model::{Record, Resource, Tier},
};

/// A text of a million characters, in 150.
fn made_long() -> String {
    let tenfold = r#".replace("a","aaaaaaaaaa")"#;
    format!(
        r#""aaaaaaaaaa"{tenfold}{tenfold}{tenfold}.replace("a","{}")"#,
        "a".repeat(100)
    )
}

fn select(text: &str, language: Language, budget: &mut CostBudget) -> Result<Filter, FilterError> {
    let selection = Selection {
        filter: text,
        language,
        ..Selection::default()
    };
    Filter::select_within(&selection, Resource::Records, budget)
}

/// The refusal of a filter that costs too much, whatever else is wrong with it.
#[track_caller]
fn too_costly(text: &str, language: Language) -> String {
    let mut budget = CostBudget::default();
    let error = select(text, language, &mut budget).unwrap_err();
    let (head, _) = text.split_at(text.len().min(80));
    assert!(
        matches!(error, FilterError::TooCostly { .. }),
        "{head}: {error}"
    );
    error.to_string()
}

fn payload(json: &str) -> Record {
    record("ci/results/r/records/x", "t", json.as_bytes())
}

#[test]
fn constants_that_take_long_to_work_out_are_refused() {
    let long = made_long();
    for states in [9_000, 4_000, 1_000] {
        let one = format!(r#"{long}.matches("[a-z]{{{states}}}[^a-z]")"#);
        too_costly(&one, Language::Cel);
        too_costly(&[one.as_str(); 100].join("||"), Language::Cel);
    }
    let contains: Vec<_> = (0..400)
        .map(|n| format!("{long}.contains('{n}')"))
        .collect();
    too_costly(&contains.join("||"), Language::Cel);
    let nested = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let lists = format!(
        "{long}.split('') == [{}1]",
        format!("{nested},").repeat(100)
    );
    too_costly(&lists, Language::Cel);
}

#[test]
fn constants_that_take_much_room_are_refused() {
    let long = made_long();
    let many: Vec<_> = (0..100).map(|n| format!("data.a{n} == {long}")).collect();
    let told = too_costly(&many.join("||"), Language::Cel);
    assert!(
        told.contains("constants of the request have more than"),
        "{told}"
    );
    let some: Vec<_> = (0..3).map(|n| format!("data.a{n} == {long}")).collect();
    Filter::compile(&some.join("||"), Resource::Records).unwrap();
}

#[test]
fn patterns_are_bounded_one_by_one_and_together() {
    let told = too_costly(r#"uid.matches("a{12000}")"#, Language::Cel);
    assert!(
        told.contains("patterns of the request have more than 10000 states"),
        "{told}"
    );
    too_costly(
        &[r#"uid.matches("a{2000}")"#; 4_000].join("||"),
        Language::Cel,
    );
    too_costly(&["uid.matches('a')"; 4_000].join("||"), Language::Cel);
    let classes = format!(r#"uid.matches(r"(?i){}")"#, r"\pL".repeat(30_000));
    let told = too_costly(&classes, Language::Cel);
    assert!(told.contains("takes more than 250000 steps"), "{told}");
    let told = Filter::compile(r#"uid.matches("(a{9999}){9999}")"#, Resource::Records);
    let told = told.unwrap_err().to_string();
    assert!(told.contains("is too large when compiled"), "{told}");
}

#[test]
fn texts_of_many_parts_are_refused_before_they_are_parsed() {
    for part in ["1||", "[1],", "f(x),", "1 == ", "(", "\u{e9}", "'\u{e9}'||"] {
        let text = part.repeat(99_000 / part.chars().count());
        let mut budget = CostBudget::default();
        let error = select(&text, Language::Cel, &mut budget).unwrap_err();
        let refused = matches!(
            error,
            FilterError::TooCostly { .. } | FilterError::TooDeep { .. }
        );
        assert!(refused, "{part}: {error}");
    }
}

#[test]
fn selectors_are_bounded_as_filters_are() {
    let values = |count: usize| format!("k in ({}a)", "a,".repeat(count));
    for (language, text) in [
        (Language::Labels, values(1_000_000)),
        (Language::Fields, "a.".repeat(1_000_000) + "a=b"),
    ] {
        let error = select(&text, language, &mut CostBudget::default()).unwrap_err();
        assert!(matches!(error, FilterError::TooLong { .. }), "{error}");
    }
    too_costly(&values(49_000), Language::Labels);
    select(&values(5_000), Language::Labels, &mut CostBudget::default()).unwrap();
    for (language, part) in [(Language::Labels, "a=b"), (Language::Fields, "a=b")] {
        let text = [part; 1_001].join(",");
        let error = select(&text, language, &mut CostBudget::default()).unwrap_err();
        assert!(
            error.to_string().ends_with(": more than 1000 requirements"),
            "{error}"
        );
    }
    // A field that was nested so deep ended the process.
    let deep = format!("a{}=b", ".a".repeat(49_000));
    let error = select(&deep, Language::Fields, &mut CostBudget::default()).unwrap_err();
    let refused = matches!(
        error,
        FilterError::TooCostly { .. } | FilterError::Selector { .. }
    );
    assert!(refused, "{error}");
    let deep = format!("a{}=b", ".a[0]".repeat(60));
    let error = select(&deep, Language::Fields, &mut CostBudget::default()).unwrap_err();
    assert!(
        error.to_string().ends_with("nested more than 96 deep"),
        "{error}"
    );
}

#[test]
fn the_texts_of_a_request_are_charged_to_one_budget() {
    let list = format!("data.x in [{}1]", "1,".repeat(15_000));
    let labels = format!("k in ({}a)", "a,".repeat(15_000));
    let mut selection = Selection {
        filter: &list,
        ..Selection::default()
    };
    Filter::select(&selection, Resource::Records).unwrap();
    selection.labels = &labels;
    let error = Filter::select(&selection, Resource::Records).unwrap_err();
    assert!(matches!(error, FilterError::TooCostly { .. }), "{error}");
}

#[test]
fn what_is_long_is_not_searched_for_similar_names() {
    let long = "x".repeat(30_000);
    let text = format!("data.l.exists({long}y, {long}z)");
    let error = Filter::compile(&text, Resource::Records).unwrap_err();
    assert!(!error.to_string().contains("did you mean"), "{error}");
    let error = Filter::compile("data.l.exists(element, elemnt)", Resource::Records).unwrap_err();
    assert!(
        error.to_string().contains("did you mean `element`?"),
        "{error}"
    );
}

#[test]
fn a_long_list_of_names_is_one_question() {
    let names: Vec<_> = (0..9_000).map(|n| format!("'n{n}'")).collect();
    let text = format!("name in [{}]", names.join(","));
    let filter = Filter::compile(&text, Resource::Records).unwrap();
    let asked = std::cell::Cell::new(0);
    let split = filter.split(&|_| {
        asked.set(asked.get() + 1);
        Ability::Exact
    });
    let Condition::Test(test) = split.condition else {
        panic!("it is one test: {}", split.condition);
    };
    assert!(matches!(&test.is, Is::OneOf(values) if values.len() == 9_000));
    assert!(asked.get() <= 9_001, "{}", asked.get());
}

#[test]
fn patterns_on_rows_pay_for_their_states() {
    let row = payload(&format!(r#"{{"a":"{}"}}"#, "a".repeat(1 << 20)));
    for pattern in ["[a-z]{9000}[^a-z]", "[a-z]{2000}[^a-z]"] {
        let filter = format!("data.a.matches('{pattern}')");
        assert_eq!(judge(&filter, &row), Err(EvalError::Budget), "{pattern}");
        let filter = format!("data.a.matches('{pattern}' + data.b)");
        assert_ne!(judge(&filter, &row), Ok(true), "{pattern}");
    }
    // What people ask takes as long for each byte as a search for a word.
    let words = "the step build failed: out of memory (exit 137); retry 3 of 5\\n";
    let row = payload(&format!(r#"{{"a":"{}"}}"#, words.repeat(16_000)));
    for pattern in [
        "(?i)OUT of MEMORY",
        r"exit \\d+\\); retry",
        r"\\w+: out of \\w+",
        "fail(ed|ure).*retry",
        r"\\bmemory\\b",
    ] {
        let filter = format!("data.a.matches('{pattern}')");
        assert_eq!(judge(&filter, &row), Ok(true), "{pattern}");
        let filter = format!("data.a.matches('{pattern}!')");
        assert_eq!(judge(&filter, &row), Ok(false), "{pattern}!");
    }
}

#[test]
fn what_is_copied_or_compared_on_a_row_is_paid_for() {
    let zeros = ["0"; 20_000].join(",");
    let fields: Vec<_> = (0..50_000).map(|n| format!("\"k{n}\":0")).collect();
    let row = payload(&format!(
        r#"{{"l":[{zeros}],"x":"{}","o":{{{}}}}}"#,
        "x".repeat(2 << 20),
        fields.join(",")
    ));
    for filter in [
        r#"[bytes(data.x)].exists(b, data.l.exists(i, string(b) == "q"))"#,
        "[bytes(data.x)].exists(b, data.l.exists(i, b != b))",
        "data.l.exists(i, data.x != data.x)",
        "data.l.exists(i, data.x < data.x)",
        "data.l.exists(i, data.o.contains('nothing'))",
        "data.l.exists(i, data.o != data.o)",
        "data.l.exists(i, data.o.exists(k, false))",
        "data.l.exists(i, data.x.substring(1) == '')",
        "data.l.exists(i, data.x + 'a' == '')",
        "data.l.map(i, data.x.lowerAscii()).size() == 0",
        "data.l.map(i, bytes(data.x)).size() == 0",
        "data.l.exists(i, -1 in data.l)",
        "data.l.exists(i, data.l + data.l == [])",
        "data.l.exists(i, timestamp(data.x) > timestamp(0))",
        "data.l.exists(i, timestamp(0).getHours('Nowhere/' + string(i)) > 0)",
    ] {
        assert_eq!(judge(filter, &row), Err(EvalError::Budget), "{filter}");
    }
    let keys: Vec<_> = (0..2_000).map(|n| format!("'k{n}': {n}")).collect();
    let keys = keys.join(",");
    let filter = format!("data.l.exists(i, {{{keys}}}['none'] == 1)");
    assert_eq!(judge(&filter, &row), Err(EvalError::Budget));
}

#[test]
fn a_row_is_given_up_when_nobody_waits_for_it() {
    let row = payload(&format!(r#"{{"l":[{}]}}"#, ["0"; 20_000].join(",")));
    let text = "data.l.exists(a, data.l.exists(b, a != b))";
    let filter = Filter::compile(text, Resource::Records).unwrap();
    let body = Body::of(&row);
    let row = Row::Record {
        record: &row,
        tier: Tier::Hot,
        body: &body,
    };
    let stop = CancellationToken::new();
    assert_eq!(filter.matches_until(&row, &stop), Err(EvalError::Budget));
    stop.cancel();
    assert_eq!(filter.matches_until(&row, &stop), Err(EvalError::Cancelled));
    let text = format!("{}.contains('b')", made_long());
    let mut budget = CostBudget::of_request(&stop);
    let error = select(&text, Language::Cel, &mut budget).unwrap_err();
    assert!(matches!(error, FilterError::TooCostly { .. }), "{error}");
    assert!(budget.steps() < 20_000, "{}", budget.steps());
}
