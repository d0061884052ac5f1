//! What is a name and what is not.

use super::{Parent, ParentPattern, RecordName, ResultName, ResultPattern};

#[track_caller]
fn refuses<T: std::str::FromStr<Err = super::ParseNameError>>(text: &str, because: &str) {
    let error = text
        .parse::<T>()
        .err()
        .expect("the name is refused")
        .to_string();
    assert!(
        error.contains(because),
        "`{error}` does not say `{because}`"
    );
}

#[test]
fn a_record_name_reads_back_as_it_was_written() {
    for text in [
        "default/results/1234/records/abc",
        "cluster/c-1/namespace/tekton/results/A.b_c~d-e/records/0",
        "a/results/x/records/y",
    ] {
        assert_eq!(text.parse::<RecordName>().unwrap().to_string(), text);
    }
}

#[test]
fn the_parts_of_a_multi_segment_name_are_found_from_the_right() {
    let name: ResultName = "cluster/c-1/namespace/tekton/results/r".parse().unwrap();
    assert_eq!(name.parent().as_str(), "cluster/c-1/namespace/tekton");
    assert_eq!(name.parent().namespace(), "tekton");
    assert_eq!(name.id(), "r");
}

#[test]
fn malformed_names_are_refused_with_the_reason() {
    refuses::<ResultName>("default/results/a b", "contains ` `");
    refuses::<ResultName>("default/results/a%2F", "contains `%`");
    refuses::<ResultName>("default/results/é", "contains `\\u{e9}`");
    refuses::<ResultName>("default/results/", "a part is empty");
    refuses::<ResultName>("default/foo/1", "no `/results/`");
    refuses::<ResultName>("/results/1", "a part is empty");
    refuses::<ResultName>("-/results/1", "wildcard");
    refuses::<ResultName>("a/results/-", "wildcard");
    refuses::<ResultName>("a/results/..", "folder");
    refuses::<ResultName>("a/results/b/results/c", "reserved");
    refuses::<RecordName>("a/results/b", "no `/records/`");
    refuses::<RecordName>("a/results/b/records/c\n", "contains `\\n`");
    refuses::<Parent>("a//b", "a part is empty");
    refuses::<Parent>("records", "reserved");
    refuses::<ResultName>(&format!("a/results/{}", "x".repeat(64)), "64 bytes");
    refuses::<Parent>("1/2/3/4/5/6/7/8/9", "more than 8");
}

#[test]
fn an_error_names_the_value_and_what_is_wanted() {
    assert_eq!(
        "x".parse::<ResultName>().unwrap_err().to_string(),
        "`x` is not a result name: it has no `/results/`; want `<parent>/results/<result>`"
    );
}

#[test]
fn a_huge_name_is_not_repeated_whole() {
    let error = "x"
        .repeat(1 << 20)
        .parse::<Parent>()
        .unwrap_err()
        .to_string();
    assert!(error.len() < 300, "{}", error.len());
}

#[test]
fn a_dash_is_a_pattern_in_either_half() {
    assert_eq!("-".parse::<ParentPattern>().unwrap(), ParentPattern::Any);
    let all: ResultPattern = "-/results/-".parse().unwrap();
    assert_eq!(
        all,
        ResultPattern {
            parent: ParentPattern::Any,
            id: None
        }
    );
    let one: ResultPattern = "ns/results/r".parse().unwrap();
    assert_eq!(one.to_string(), "ns/results/r");
    let name: ResultName = "ns/results/r".parse().unwrap();
    assert_eq!(ResultPattern::from(&name), one);
}
