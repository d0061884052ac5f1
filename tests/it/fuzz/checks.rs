//! What must hold of any input. Fuzz targets give these checks random bytes, and a test of the
//! ordinary suite gives them the corpus.

use std::sync::LazyLock;

use hindsight::query::{Binding, Tokens};
use hindsight_filter::model::{Etag, Payload, Record, Resource, RunResult, Summary, Tier};
use hindsight_filter::{
    Body, CostBudget, EvalError, Filter, Language, MAX_COMPILE_STEPS, Order, Position, Row,
    Selection,
    columns::{object_columns, of_record, of_result},
    condition::{Ability, Column},
    order::{KeyValue, MAX_KEYS},
    parse_order,
    words::{Now, read},
};
use hindsight_proto::names::{RecordName, ResultName, ResultPattern};
use tokio_util::sync::CancellationToken;

const RESOURCES: [Resource; 2] = [Resource::Results, Resource::Records];

static RECORD: LazyLock<Record> = LazyLock::new(|| Record {
    name: "ci/results/r/records/x".parse().expect("the name is legal"),
    uid: "u-1".to_owned(),
    etag: Etag::from_text("e"),
    create_time: "2026-03-01T10:00:00Z".parse().expect("it is a time"),
    update_time: "2026-03-01T10:05:00Z".parse().expect("it is a time"),
    data: Some(Payload::new(
        "tekton.dev/v1.TaskRun".to_owned(),
        br#"{"kind":"TaskRun","metadata":{"name":"a","namespace":"ci","uid":"5",
            "creationTimestamp":"2026-03-01T09:00:00Z","labels":{"app":"a","n":"5"}},
            "spec":{"retries":3,"params":[{"name":"env","value":["a"]}],"ratio":0.5,"x":null},
            "status":{"startTime":"2026-03-01T09:00:01Z","conditions":[{"reason":"Failed",
            "status":"False"}]}}"#
            .to_vec()
            .into(),
    )),
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
            tier: Tier::Hot,
            body: &body,
        },
    };
    let column = |column: &Column| match resource {
        Resource::Results => of_result(&RESULT, column),
        Resource::Records => of_record(&RECORD, Tier::Hot, &payload, column),
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

/// Words are a filter that is answered without payloads, or are refused at a place in the text.
pub fn words(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let now = Now {
        time: jiff::Timestamp::UNIX_EPOCH,
        zone: jiff::tz::TimeZone::UTC,
    };
    match read(text, &now) {
        Ok(query) if query.mark.is_none() => {
            let filter = Filter::compile(&query.cel, Resource::Records).unwrap();
            assert!(!filter.split(&|_| Ability::Exact).residual, "{text:?}");
        }
        Ok(_) => {}
        Err(error) => assert!(text.is_char_boundary(error.at)),
    }
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

/// A filter that is written to cost much is refused for what it costs, or judged on a row that is
/// large within what a row may cost, and given up once nobody waits for it.
pub fn cost(data: &[u8]) {
    let text = Hostile {
        bytes: data,
        left: 99_000,
    }
    .test(0);
    let mut budget = CostBudget::default();
    let selection = Selection {
        filter: &text,
        ..Selection::default()
    };
    let Ok(filter) = Filter::select_within(&selection, Resource::Records, &mut budget) else {
        return;
    };
    assert!(budget.steps() <= MAX_COMPILE_STEPS, "{text}");
    drop(filter.split(&|_| Ability::Exact));
    let row = Row::Record {
        record: &LARGE,
        tier: Tier::Hot,
        body: &LARGE_BODY,
    };
    let judged = filter.matches(&row);
    assert_ne!(judged, Err(EvalError::Cancelled), "{text}");
    let stop = CancellationToken::new();
    stop.cancel();
    match (filter.matches_until(&row, &stop), judged) {
        (Err(EvalError::Cancelled), _) => {}
        // It took too few steps for that to be noticed.
        (given, judged) => assert_eq!(given, judged, "{text}"),
    }
}

static LARGE: LazyLock<Record> = LazyLock::new(|| {
    let mut record = RECORD.clone();
    let zeros = ["0"; 5_000].join(",");
    let long = "ab".repeat(100_000);
    let json = format!(r#"{{"kind":"TaskRun","l":[{zeros}],"s":"{long}","n":5}}"#);
    record.data = Some(Payload::new(
        "tekton.dev/v1.TaskRun".to_owned(),
        json.into_bytes().into(),
    ));
    record
});

static LARGE_BODY: LazyLock<Body> = LazyLock::new(|| Body::of(&LARGE));

/// Writes filters of long chains, long lists, large patterns and nested macros, as bytes say.
struct Hostile<'a> {
    bytes: &'a [u8],
    /// Characters that may still be written.
    left: usize,
}

impl Hostile<'_> {
    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        usize::from(*first)
    }

    /// How often something is repeated: mostly seldom, at times as often as there is room.
    fn times(&mut self, each: usize) -> usize {
        let wanted = 1 << (self.byte() % 64).min(15);
        let times = wanted.min(self.left / (each + 1));
        self.left -= times * each;
        times.max(1)
    }

    fn repeated(&mut self, text: &str) -> String {
        text.repeat(self.times(text.len()))
    }

    fn test(&mut self, depth: usize) -> String {
        if depth > 12 {
            return "data.n == 5".to_owned();
        }
        let text = |this: &mut Self| this.text(depth + 1);
        match self.byte() % 9 {
            0 => format!("data.n == {}", self.byte()),
            1 => format!("{}.matches('{}')", text(self), self.pattern()),
            2 => format!("{}.contains({})", text(self), text(self)),
            3 => format!("{} < {}", text(self), text(self)),
            4 => format!("data.n in [{}1]", self.repeated("1,")),
            5 => format!("data.l.exists(v{depth}, {})", self.test(depth + 1)),
            6 => format!("data.l.all(v{depth}, {} != '')", text(self)),
            7 => {
                let test = self.test(depth + 1);
                let times = self.times(test.len() + 2);
                vec![test; times].join("||")
            }
            _ => format!("{}.matches({})", text(self), text(self)),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        if depth > 12 {
            return "data.s".to_owned();
        }
        match self.byte() % 9 {
            0 => "data.s".to_owned(),
            1 => format!("'{}'", self.repeated("a")),
            2 => {
                let step = ".replace('a','aaaaaaaaaa')";
                format!(
                    "{}{}",
                    self.text(depth + 1),
                    step.repeat(1 + self.byte() % 6)
                )
            }
            3 => format!("string(bytes({}))", self.text(depth + 1)),
            4 => format!("{}.split('').join('a')", self.text(depth + 1)),
            5 => format!("({} + {})", self.text(depth + 1), self.text(depth + 1)),
            6 => format!("data.l.map(w{depth}, {}).join()", self.text(depth + 1)),
            7 => format!("string({} + 1)", self.byte()),
            _ => format!("{}.lowerAscii()", self.text(depth + 1)),
        }
    }

    fn pattern(&mut self) -> String {
        match self.byte() % 7 {
            0 => format!("[a-z]{{{}}}[^a-z]", self.byte() * 50),
            1 => format!("[ab]*a[ab]{{{}}}c", self.byte()),
            2 => format!("(.{{1,{0}}}){{1,{0}}}!", 1 + self.byte() % 20),
            3 => format!("(?i){}", self.repeated("[^a]")),
            4 => self.repeated("a|"),
            5 => format!("{}a{}", "(".repeat(self.byte()), ")*".repeat(self.byte())),
            _ => self.repeated("(a*)*"),
        }
    }
}
