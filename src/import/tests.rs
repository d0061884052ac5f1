//! Inputs and what is read from them.

use super::{Error, minify, read};

#[track_caller]
fn reads(input: &str, bytes: &[&str]) {
    let objects = read(input.as_bytes()).unwrap();
    let got: Vec<_> = objects
        .iter()
        .map(|o| String::from_utf8(o.bytes.clone()).unwrap())
        .collect();
    assert_eq!(got, bytes);
}

#[test]
fn a_list_gives_its_items_with_their_own_spelling() {
    reads(
        "{ \"kind\": \"List\", \"items\": [\n  {\"b\": 1.0,\n \"a\": \"x \\\" y\\u0041\"},\n {\"kind\": \"TaskRunList\", \"items\": [{\"c\": 1e3}]} ] }",
        &["{\"b\":1.0,\"a\":\"x \\\" y\\u0041\"}", "{\"c\":1e3}"],
    );
}

#[test]
fn a_stream_of_json_documents_is_read_to_its_end() {
    reads(
        "{\"a\": 1}\n{\"a\": 2} [{\"a\": 3}]",
        &["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"],
    );
}

#[test]
fn yaml_documents_and_lists_are_read() {
    reads(
        "---\napiVersion: v1\nkind: List\nitems:\n- a: 1\n- b: [x, y]\n---\nc: true\n---\n",
        &["{\"a\":1}", "{\"b\":[\"x\",\"y\"]}", "{\"c\":true}"],
    );
}

#[test]
fn words_that_old_yaml_took_for_booleans_are_text() {
    reads(
        "a: y\nb: no\nc: on\nd: true\n",
        &["{\"a\":\"y\",\"b\":\"no\",\"c\":\"on\",\"d\":true}"],
    );
}

#[test]
fn an_object_with_items_is_a_list_only_if_its_kind_says_so() {
    reads(
        "{\"kind\": \"ConfigMap\", \"items\": []}",
        &["{\"kind\":\"ConfigMap\",\"items\":[]}"],
    );
    reads("{\"kind\": \"List\", \"items\": []}", &[]);
}

#[test]
fn broken_inputs_are_refused_whole() {
    assert!(matches!(read(b"  \n"), Err(Error::Empty)));
    assert!(matches!(read(b"{\"a\": 1} {\"b\""), Err(Error::Json(_))));
    assert!(matches!(read(b"a: [1"), Err(Error::Yaml(_))));
    assert!(matches!(
        read(b"{\"a\":1} 7"),
        Err(Error::NotAnObject {
            at: 2,
            what: "a number"
        })
    ));
    assert!(matches!(
        read(b"just words"),
        Err(Error::NotAnObject {
            at: 1,
            what: "a text"
        })
    ));
    assert!(matches!(read(b"{\"a\": \"\xff\"}"), Err(Error::NotText(7))));
}

#[test]
fn white_space_inside_text_stays() {
    assert_eq!(
        minify(" { \"a b\" : [ 1 , \"\\\\\" , \" \\\" \" ] } "),
        "{\"a b\":[1,\"\\\\\",\" \\\" \"]}"
    );
}

#[test]
fn keys_that_libraries_give_a_meaning_are_keys() {
    let text = r#"{"a":{"$serde_json::private::RawValue":"[1]"}}"#;
    reads(text, &[text]);
    reads("a:\n  $serde_json::private::RawValue: '[1]'\n", &[text]);
    let object = read(text.as_bytes()).unwrap().remove(0);
    assert_eq!(object.value.to_string(), text);
}

#[test]
fn yaml_is_no_deeper_than_json() {
    let read_all = || {
        let nested = |depth| format!("a: {}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(nested(100).as_bytes()).is_ok());
        for deep in [nested(200), format!("{}1", "- ".repeat(10_000))] {
            assert!(matches!(read(deep.as_bytes()), Err(Error::Yaml(_))));
        }
    };
    // The command line reads files on a stack of 8 MiB, and its frames are smaller.
    let builder = std::thread::Builder::new().stack_size(64 << 20);
    builder.spawn(read_all).unwrap().join().unwrap();
}
