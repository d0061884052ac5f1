//! What requests for lists mean.

use jiff::Timestamp;

use super::*;
use crate::model::Tags;

fn pipeline(id: &str, name: &str, at: i64) -> Pipeline {
    Pipeline {
        id: id.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
        display_name: format!("{name} shown"),
        description: String::new(),
        tags: Tags::from([("team".to_owned(), name[..1].to_owned())]),
        created_at: Timestamp::from_second(at).unwrap(),
        original_id: None,
    }
}

fn scope() -> Scope {
    Scope::Pipelines {
        namespace: String::new(),
    }
}

fn ask(filter: &str, sort_by: &str) -> ListAsk {
    ListAsk {
        filter: filter.to_owned(),
        sort_by: sort_by.to_owned(),
        ..ListAsk::default()
    }
}

fn query(filter: &str, sort_by: &str) -> Query {
    Query::new(scope(), &ask(filter, sort_by), usize::MAX).unwrap()
}

#[track_caller]
fn finds(predicate: &str, expected: &[&str]) {
    let all = [
        pipeline("1", "alpha", 10),
        pipeline("2", "Beta", 20),
        pipeline("3", "gamma", 30),
    ];
    let filter = format!(r#"{{"predicates":[{predicate}]}}"#);
    let page = query(&filter, "id").page(all);
    let ids: Vec<_> = page.items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids, expected, "{predicate}");
    assert_eq!(page.total, expected.len() as u64);
}

#[track_caller]
fn refuses(filter: &str, why: &str) {
    let verdict = Query::new(scope(), &ask(filter, ""), usize::MAX);
    assert_eq!(verdict.unwrap_err().to_string(), why, "{filter}");
}

#[test]
fn kfp_47_each_operation_is_a_name_or_a_number_and_each_value_in_either_spelling() {
    finds(
        r#"{"operation":1,"key":"display_name","stringValue":"alpha shown"}"#,
        &["1"],
    );
    finds(
        r#"{"operation":"EQUALS","key":"name","string_value":"beta"}"#,
        &[],
    );
    finds(
        r#"{"operation":"NOT_EQUALS","key":"name","string_value":"Beta"}"#,
        &["1", "3"],
    );
    finds(
        r#"{"operation":3,"key":"name","string_value":"alpha"}"#,
        &["3"],
    );
    finds(
        r#"{"operation":"GREATER_THAN_EQUALS","key":"created_at","long_value":20}"#,
        &["2", "3"],
    );
    finds(
        r#"{"operation":6,"key":"created_at","longValue":"20"}"#,
        &["1"],
    );
    finds(
        r#"{"operation":"LESS_THAN_EQUALS","key":"created_at","int_value":20}"#,
        &["1", "2"],
    );
    finds(
        r#"{"operation":"EQUALS","key":"created_at","timestampValue":"1970-01-01T00:00:20.9Z"}"#,
        &["2"],
    );
    finds(
        r#"{"operation":"IN","key":"name","string_values":{"values":["alpha","x"]}}"#,
        &["1"],
    );
    finds(
        r#"{"operation":8,"key":"created_at","longValues":{"values":["10",30]}}"#,
        &["1", "3"],
    );
    finds(r#"{"operation":8,"key":"name","stringValues":{}}"#, &[]);
    finds(
        r#"{"operation":"IS_SUBSTRING","key":"name","string_value":"BET"}"#,
        &["2"],
    );
    finds(r#"{"operation":9,"key":"name","string_value":"%"}"#, &[]);
    finds(
        r#"{"operation":1,"key":"pipeline_id","string_value":"3"}"#,
        &["3"],
    );
    finds(
        r#"{"operation":1,"key":"tags.team","string_value":"a"}"#,
        &["1"],
    );
    finds(
        r#"{"operation":1,"key":"tags.none","string_value":""}"#,
        &[],
    );
    finds("", &["1", "2", "3"]);
}

#[test]
fn kfp_47_a_filter_that_makes_no_sense_is_refused_in_words_that_clients_know() {
    let of = |predicate: &str| format!(r#"{{"predicates":[{predicate}]}}"#);
    refuses(
        &of(r#"{"operation":1,"key":"colour","string_value":"x"}"#),
        "no support for filtering on unrecognized field \"colour\"",
    );
    refuses(
        &of(r#"{"operation":1,"key":"status","string_value":"READY"}"#),
        "no support for filtering on unrecognized field \"status\"",
    );
    refuses(
        &of(r#"{"operation":8,"key":"name","string_value":"x"}"#),
        "cannot use IN operator with scalar type string",
    );
    refuses(
        &of(r#"{"operation":1,"key":"name","string_values":{"values":["x"]}}"#),
        "cannot use scalar operator EQUALS on array type []string",
    );
    refuses(
        &of(r#"{"operation":8,"key":"tags.x","string_values":{"values":["x"]}}"#),
        "only EQUALS operation is supported for tag filtering, got IN for key \"tags.x\"",
    );
    refuses(
        &of(r#"{"operation":9,"key":"created_at","long_value":1}"#),
        "cannot use non string value type \"long\" with operator IS_SUBSTRING",
    );
    refuses(
        &of(r#"{"operation":1,"key":"name","long_value":1}"#),
        "field \"name\" is a text; compare it with string_value",
    );
    refuses(
        &of(r#"{"operation":1,"key":"created_at","string_value":"x"}"#),
        "field \"created_at\" is a time; compare it with timestamp_value",
    );
    for predicate in [
        r#"{"operation":0,"key":"name","string_value":"x"}"#,
        r#"{"operation":4,"key":"name","string_value":"x"}"#,
        r#"{"operation":"LIKE","key":"name","string_value":"x"}"#,
        r#"{"key":"name","string_value":"x"}"#,
        r#"{"operation":1,"string_value":"x"}"#,
        r#"{"operation":1,"key":"name"}"#,
        r#"{"operation":1,"key":"name","string_value":"x","int_value":1}"#,
        r#"{"operation":1,"key":"name","string_value":"x","stringValue":"y"}"#,
        r#"{"operation":1,"key":"name","string_value":"x","or":1}"#,
        r#"{"operation":1,"key":"created_at","int_value":2147483648}"#,
        r#"{"operation":1,"key":"created_at","long_value":"ten"}"#,
        r#"{"operation":1,"key":"created_at","timestamp_value":"yesterday"}"#,
    ] {
        let why = Query::new(scope(), &ask(&of(predicate), ""), 0)
            .unwrap_err()
            .to_string();
        assert!(
            why.starts_with("failed to parse filter spec: "),
            "{predicate}: {why}"
        );
    }
    for filter in ["[]", "{", "name = x", r#"{"predicate":[]}"#, "%ff"] {
        let why = Query::new(scope(), &ask(filter, ""), 0)
            .unwrap_err()
            .to_string();
        assert!(
            why.starts_with("failed to parse filter spec: "),
            "{filter}: {why}"
        );
    }
    let many = vec![r#"{"operation":1,"key":"name","string_value":"x"}"#; 101].join(",");
    refuses(
        &of(&many),
        "failed to parse filter spec: it has more than 100 predicates",
    );
    let long = format!("{{{}", " ".repeat(MAX_FILTER));
    refuses(
        &long,
        "failed to parse filter spec: it is longer than 65536 bytes",
    );
}

#[test]
fn kfp_47_a_filter_may_be_encoded_once_more() {
    let once = r#"{"predicates":[{"operation":1,"key":"name","string_value":"100% a+b"}]}"#;
    let twice = "%7B%22predicates%22%3A%5B%7B%22operation%22%3A1%2C%22key%22%3A%22name%22%2C%22string_value%22%3A%22100%25%20a%2Bb%22%7D%5D%7D";
    assert_eq!(query(once, ""), query(twice, ""));
    assert_eq!(query("  ", ""), query("{}", ""));
}

#[test]
fn kfp_48_pages_have_20_items_by_default_and_200_at_most() {
    let size = |page_size| {
        let ask = ListAsk {
            page_size,
            ..ListAsk::default()
        };
        Query::new(scope(), &ask, usize::MAX).map(|query| query.size)
    };
    assert_eq!(size(0).unwrap(), 20);
    assert_eq!(size(7).unwrap(), 7);
    assert_eq!(size(201).unwrap(), 200);
    assert_eq!(
        size(-1).unwrap_err().to_string(),
        "The page size should be greater than 0. Got -1"
    );
}

#[test]
fn kfp_48_an_order_is_a_field_and_a_direction() {
    let sort = |text: &str| Sort::parse(text, Listable::Versions);
    let is = |text: &str, field: Field, descending| {
        assert_eq!(sort(text).unwrap(), Sort { field, descending }, "{text}");
    };
    is("", Field::CreatedAt, false);
    is("created_at desc", Field::CreatedAt, true);
    is(" Name  ASC ", Field::Name, false);
    is("pipeline_version_id", Field::Id, false);
    is("status desc", Field::Status, true);
    for bad in ["name up", "name desc x", "name,id"] {
        sort(bad).unwrap_err();
    }
    assert_eq!(
        sort("name down").unwrap_err().to_string(),
        "Received invalid sort by format \"name down\". Supported format: \"field_name\", \"field_name desc\", or \
         \"field_name asc\""
    );
    for (field, of) in [
        ("tags.a", "PipelineVersion"),
        ("namespace", "PipelineVersion"),
    ] {
        assert_eq!(
            sort(field).unwrap_err().to_string(),
            format!("Invalid sorting field: \"{field}\" on listable type {of}")
        );
    }
}

/// The ids of all pages of so many items each.
fn walk(all: &[Pipeline], filter: &str, sort_by: &str, size: i32) -> Vec<String> {
    let (mut ids, mut token) = (Vec::new(), String::new());
    loop {
        let first = token.is_empty();
        let ask = ListAsk {
            page_size: size,
            sort_by: if first { sort_by } else { "" }.to_owned(),
            filter: if first { filter } else { "" }.to_owned(),
            page_token: token,
        };
        let page = Query::new(scope(), &ask, usize::MAX)
            .unwrap()
            .page(all.iter().cloned());
        ids.extend(page.items.into_iter().map(|item| item.id));
        token = page.next;
        if token.is_empty() {
            return ids;
        }
    }
}

#[test]
fn kfp_23_pages_neither_skip_nor_repeat_whatever_is_deleted_between() {
    let all: Vec<_> = (0..9)
        .map(|n| pipeline(&n.to_string(), ["x", "y", "z"][n % 3], n as i64 / 4))
        .collect();
    for sort_by in ["", "created_at desc", "name", "name desc", "id"] {
        let whole = walk(&all, "", sort_by, 100);
        assert_eq!(whole.len(), 9);
        for size in 1..5 {
            assert_eq!(walk(&all, "", sort_by, size), whole, "{sort_by} by {size}");
        }
        let first = ListAsk {
            page_size: 3,
            ..ask("", sort_by)
        };
        let query = Query::new(scope(), &first, usize::MAX).unwrap();
        let page = query.page(all.iter().cloned());
        let last = &page.items[2].id;
        let left = all.iter().filter(|item| item.id != *last).cloned();
        let next = ListAsk {
            page_token: page.next,
            ..ListAsk::default()
        };
        let next = Query::new(scope(), &next, usize::MAX).unwrap().page(left);
        let ids: Vec<_> = next.items.into_iter().map(|item| item.id).collect();
        assert_eq!(ids, whole[3..], "{sort_by}");
    }
}

#[test]
fn a_token_is_of_one_list_and_takes_the_same_filter_and_order_or_none() {
    let filter =
        r#"{"predicates":[{"operation":8,"key":"created_at","long_values":{"values":[1,2]}}]}"#;
    let all = [pipeline("1", "a", 1), pipeline("2", "b", 2)];
    let first = ListAsk {
        page_size: 1,
        ..ask(filter, "name desc")
    };
    let token = Query::new(scope(), &first, usize::MAX)
        .unwrap()
        .page(all.clone())
        .next;
    assert!(!token.contains(['+', '/', '=']), "{token}");
    let with = |scope: Scope, filter: &str, sort_by: &str, token: &str| {
        let ask = ListAsk {
            page_token: token.to_owned(),
            ..ask(filter, sort_by)
        };
        Query::new(scope, &ask, usize::MAX)
    };
    let spelled = r#"{"predicates":[{"key":"created_at","operation":"IN","longValues":{"values":["1","2"]}}]}"#;
    for (filter, sort_by) in [("", ""), (spelled, "name desc"), ("", "name desc")] {
        let page = with(scope(), filter, sort_by, &token)
            .unwrap()
            .page(all.clone());
        let ids: Vec<_> = page.items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids, ["1"]);
    }
    let other = Scope::Pipelines {
        namespace: "b".to_owned(),
    };
    for verdict in [
        with(other, "", "", &token),
        with(scope(), "", "name", &token),
        with(scope(), r#"{"predicates":[]}"#, "", &token),
    ] {
        let why = verdict.unwrap_err().to_string();
        assert!(
            why.starts_with("page token does not match the supplied sort by"),
            "{why}"
        );
    }
    for bad in ["x", "e30", &token[1..], &format!("{token}{token}")] {
        let why = with(scope(), "", "", bad).unwrap_err().to_string();
        assert_eq!(why, "Invalid page token");
    }
}

#[test]
fn a_page_ends_where_its_bytes_do_but_has_an_item() {
    let all: Vec<_> = (0..4)
        .map(|n| pipeline(&n.to_string(), "aaaaaaaaaa", n))
        .collect();
    let size = all[0].size();
    let given = |room| {
        let query = Query::new(scope(), &ListAsk::default(), room).unwrap();
        let page = query.page(all.iter().cloned());
        (page.items.len(), page.next.is_empty(), page.total)
    };
    assert_eq!(given(1), (1, false, 4));
    assert_eq!(given(2 * size), (2, false, 4));
    assert_eq!(given(4 * size), (4, true, 4));
}
