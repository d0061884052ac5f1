//! What label selectors mean and what they refuse, by example.

use super::{Selector, is_qualified_name};

#[track_caller]
fn check(text: &str, expected: bool) {
    let labels = [
        ("app", "build"),
        ("tekton.dev/pipeline", "nightly"),
        ("keep", ""),
        ("in", ""),
        ("weight", "7"),
    ];
    let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|l| l.1);
    let selector: Selector = text.parse().unwrap();
    assert_eq!(selector.matches(label), expected, "{text}");
    let again: Selector = selector.to_string().parse().unwrap();
    assert_eq!(again.matches(label), expected, "{text}, then {selector}");
}

#[test]
fn a_selector_means_what_kubectl_means() {
    for text in [
        "",
        " ",
        "app",
        "app=build",
        " app == build ",
        "app!=test",
        "other!=x",
        "!other",
        "! other",
        "app in (test, build)",
        "app in (build,)",
        "app notin (test)",
        "other notin (test)",
        "keep=",
        "keep==",
        "keep=,app",
        "keep in ()",
        "keep in (,x)",
        "tekton.dev/pipeline=nightly,app=build",
        "weight>6,weight<8",
        "in,!notin",
    ] {
        check(text, true);
    }
    for text in [
        "other",
        "app=test",
        "app=Build",
        "app!=build",
        "!app",
        "app in (test)",
        "other in (test)",
        "app notin (build, test)",
        "app=build,other=x",
        "app,!keep",
        "weight>7",
        "app>1",
        "other<1",
    ] {
        check(text, false);
    }
}

#[test]
fn nonsense_is_refused_with_its_place() {
    let operators = "one of `=`, `==`, `!=`, `in`, `notin`, `<` and `>`";
    let value = "a valid value of a label; want up to 63 letters, digits, `-`, `_` and `.`, with a \
                 letter or digit at both ends";
    let unexpected = |found: &str, wanted: &str| {
        let found = found.to_owned();
        found + " is not expected here; want " + wanted
    };
    for (text, at, why) in [
        ("app in (a", 9, unexpected("the end", "`,` or `)`")),
        ("app in a", 7, unexpected("`a`", "`(`")),
        ("app (a)", 4, unexpected("`(`", operators)),
        ("a b=c", 2, unexpected("`b`", operators)),
        ("app=a b", 6, unexpected("`b`", "`,` or the end")),
        ("app=(a)", 4, unexpected("`(`", "a value")),
        ("=x", 0, unexpected("`=`", "a label")),
        ("a,", 2, unexpected("the end", "a label")),
        ("a=b,,c", 4, unexpected("`,`", "a label")),
        ("a>b", 2, unexpected("`b`", "a whole number")),
        ("a=é", 2, format!("`é` is not {value}")),
        ("a='b'", 2, format!("`'b'` is not {value}")),
        ("a=-b", 2, format!("`-b` is not {value}")),
        ("a=b/c", 2, format!("`b/c` is not {value}")),
        (
            "/a=b",
            0,
            "`/a` is not a valid label; want `name` or `example.com/name`".to_owned(),
        ),
    ] {
        let error = text.parse::<Selector>().unwrap_err();
        assert_eq!((error.at, error.what), (at, why), "{text}");
    }
}

#[test]
fn keys_and_values_are_as_long_as_in_kubernetes() {
    let (name, prefix) = ("n".repeat(63), "p".repeat(253));
    let key = format!("{prefix}/{name}");
    assert!(is_qualified_name(&key));
    assert!(format!("{key}={name}").parse::<Selector>().is_ok());
    assert!(format!("{key}={name}n").parse::<Selector>().is_err());
    for key in [
        "",
        "a/",
        "/a",
        "a/b/c",
        "-a",
        "Example.com/a",
        "a..b/c",
        "-a/b",
        &format!("{key}n"),
        &format!("p{key}"),
    ] {
        assert!(!is_qualified_name(key), "{key}");
    }
}
