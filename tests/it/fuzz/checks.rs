//! What must hold of any input. Fuzz targets give these checks random bytes, and a test of the
//! ordinary suite gives them the corpus.

use std::sync::LazyLock;

use hindsight::{
    filter::{
        Body, Filter, Language, Order, Position, Row, Selection,
        columns::{object_columns, of_record, of_result},
        condition::{Ability, Column},
        order::{KeyValue, MAX_KEYS},
        parse_order,
    },
    model::{Etag, Payload, Record, Resource, RunResult, Summary},
    query::{Binding, Tokens},
};
use hindsight_proto::names::{RecordName, ResultName, ResultPattern};

const RESOURCES: [Resource; 2] = [Resource::Results, Resource::Records];

static RECORD: LazyLock<Record> = LazyLock::new(|| Record {
    name: "ci/results/r/records/x".parse().expect("the name is legal"),
    uid: "u-1".to_owned(),
    etag: Etag::from_text("e"),
    create_time: "2026-03-01T10:00:00Z".parse().expect("it is a time"),
    update_time: "2026-03-01T10:05:00Z".parse().expect("it is a time"),
    data: Some(Payload {
        data_type: "tekton.dev/v1.TaskRun".to_owned(),
        value: br#"{"kind":"TaskRun","metadata":{"name":"a","namespace":"ci","uid":"5",
            "creationTimestamp":"2026-03-01T09:00:00Z","labels":{"app":"a","n":"5"}},
            "spec":{"retries":3,"params":[{"name":"env","value":["a"]}],"ratio":0.5,"x":null},
            "status":{"startTime":"2026-03-01T09:00:01Z","conditions":[{"reason":"Failed",
            "status":"False"}]}}"#
            .to_vec()
            .into(),
    }),
});

static RESULT: LazyLock<RunResult> = LazyLock::new(|| RunResult {
    name: "ci/results/r".parse().expect("the name is legal"),
    uid: "u-2".to_owned(),
    etag: Etag::from_text("e"),
    create_time: RECORD.create_time,
    update_time: RECORD.update_time,
    annotations: [("app".to_owned(), "a".to_owned())].into(),
    summary: Some(Summary {
        record: RECORD.name.clone(),
        data_type: "tekton.dev/v1.TaskRun".to_owned(),
        start_time: Some(RECORD.create_time),
        end_time: None,
        status: 2,
        annotations: [("branch".to_owned(), "main".to_owned())].into(),
    }),
});

/// A filter is read or refused; it is evaluated or costs too much; and what the engine is asked
/// accepts at least what the filter matches, and no more if nothing is left over.
pub fn filter(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        for resource in RESOURCES {
            if let Ok(filter) = Filter::compile(text, resource) {
                agrees(&filter, resource);
            }
        }
    }
}

/// The same of label and field selectors.
pub fn selector(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        for resource in RESOURCES {
            for language in [Language::Labels, Language::Fields] {
                let selection = Selection {
                    filter: text,
                    language,
                    ..Selection::default()
                };
                if let Ok(filter) = Filter::select(&selection, resource) {
                    agrees(&filter, resource);
                }
            }
        }
    }
}

fn agrees(filter: &Filter, resource: Resource) {
    let body = Body::of(&RECORD);
    let payload = RECORD.data.as_ref().map(object_columns).unwrap_or_default();
    let row = match resource {
        Resource::Results => Row::Result(&RESULT),
        Resource::Records => Row::Record {
            record: &RECORD,
            body: &body,
        },
    };
    let column = |column: &Column| match resource {
        Resource::Results => of_result(&RESULT, column),
        Resource::Records => of_record(&RECORD, &payload, column),
    };
    let split = filter.split(&|_| Ability::Exact);
    let returned = split.condition.passes(&column);
    if let Ok(matched) = filter.matches(&row) {
        assert!(returned || !matched, "too little: {}", filter.text());
        assert!(
            split.residual || returned == matched,
            "too much: {}",
            filter.text()
        );
    }
    assert!(!filter.explain(&|_| Ability::Superset).is_empty());
}

/// An order is read, with at least one key and not too many, or refused with a place.
pub fn order(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        for resource in RESOURCES {
            match parse_order(text, resource) {
                Ok(order) => assert!((1..=MAX_KEYS).contains(&order.keys().len())),
                Err(error) => assert!(error.to_string().starts_with("order_by ")),
            }
        }
    }
}

/// No text that we did not seal is a page token, and what we sealed comes back.
pub fn token(data: &[u8]) {
    let tokens = Tokens::new(b"a key that nobody has");
    let order = Order::newest_first();
    let binding = Binding {
        method: "ListRecords",
        parent: "ci/results/-",
        filter: "",
        order: &order,
    };
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(tokens.open(text, &binding).is_err());
    }
    let keys = data.chunks(9).take(MAX_KEYS).map(|chunk| match chunk {
        [0, ..] => None,
        [1, number @ ..] => Some(KeyValue::Int(
            number.iter().fold(0, |sum, b| sum << 8 | i64::from(*b)),
        )),
        text => Some(KeyValue::Text(String::from_utf8_lossy(text).into_owned())),
    });
    let position = Position {
        keys: keys.collect(),
        id: i64::from(data.first().copied().unwrap_or_default()) - 100,
    };
    let sealed = tokens.seal(&position, &binding);
    assert_eq!(tokens.open(&sealed, &binding), Ok(position));
}

/// A name that is read is written as it was, and means the same when it is read again.
pub fn name(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(name) = text.parse::<ResultName>() {
        assert_eq!(name.to_string(), text);
    }
    if let Ok(name) = text.parse::<RecordName>() {
        assert_eq!(name.to_string(), text);
        assert!(text.starts_with(&name.result().to_string()));
    }
    if let Ok(pattern) = text.parse::<ResultPattern>() {
        assert_eq!(pattern.to_string().parse::<ResultPattern>(), Ok(pattern));
    }
}
