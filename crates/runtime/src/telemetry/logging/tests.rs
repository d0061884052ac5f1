//! What a log line looks like, and which filters are refused.

use std::sync::{Arc, Mutex};

use tracing::{debug, info, subscriber::with_default};

use super::*;
use crate::error::report;

/// A writer that keeps what was written.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(filter: &str, format: LogFormat, events: impl FnOnce()) -> String {
    let page = Page::default();
    let writer = page.clone();
    let filter = filter.parse().unwrap();
    with_default(
        subscriber("", &filter, format, false, move || writer.clone()).0,
        events,
    );
    let bytes = page.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn text_is_one_plain_line_per_event() {
    let text = written("info", LogFormat::Text, || {
        info!(record.name = "a/results/b", "stored");
        debug!("not asked for");
    });
    let (time, rest) = text.split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    assert_eq!(
        rest.trim_start(),
        "INFO hindsight_runtime::telemetry::logging::tests: stored record.name=\"a/results/b\"\n"
    );
}

#[test]
fn json_is_one_object_per_event() {
    let text = written("info", LogFormat::Json, || info!(attempt = 2, "stored"));
    let mut event: serde_json::Value = serde_json::from_str(&text).unwrap();
    let time = event["timestamp"].take();
    assert!(
        time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(),
        "{time}"
    );
    assert_eq!(
        event,
        serde_json::json!({
            "timestamp": null,
            "level": "INFO",
            "message": "stored",
            "attempt": 2,
            "target": "hindsight_runtime::telemetry::logging::tests",
        })
    );
}

#[test]
fn a_filter_may_tell_modules_apart() {
    let events = || {
        debug!(target: "hindsight_storage", "asked for");
        info!(target: "hindsight::grpc", "not asked for");
    };
    let text = written("warn, hindsight_storage=debug", LogFormat::Text, events);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.ends_with("hindsight_storage: asked for\n"), "{text}");
    assert_eq!(written("off", LogFormat::Text, events), "");
}

#[test]
fn what_is_not_a_filter_is_refused_with_what_is_wanted() {
    let refusal = |text: &str| report(&text.parse::<LogFilter>().unwrap_err());
    let levels = "want `error`, `warn`, `info`, `debug`, `trace` or `off`, or with a module";
    assert_eq!(
        refusal("verbose"),
        format!("`verbose` is not a valid level; {levels} `verbose=debug`")
    );
    assert_eq!(
        refusal("info, noise"),
        format!("`noise` is not a valid level; {levels} `noise=debug`")
    );
    assert_eq!(
        refusal(" "),
        "the filter is empty; write `off` to log nothing"
    );
    assert!(
        refusal("hindsight=loud").starts_with(
            "`hindsight=loud` is not a valid log filter; want for example `info,hindsight_storage=debug`: "
        ),
        "{}",
        refusal("hindsight=loud")
    );
    assert_eq!("xml".parse::<LogFormat>(), Err(BadFormat("xml".to_owned())));
}

#[test]
fn the_level_changes_while_it_is_logged() {
    let page = Page::default();
    let writer = page.clone();
    let filter = "warn".parse().unwrap();
    let (subscriber, level) =
        subscriber("", &filter, LogFormat::Text, false, move || writer.clone());
    with_default(subscriber, || {
        info!("first");
        level.set(&"info".parse().unwrap());
        info!("second");
        level.set(&"off".parse().unwrap());
        tracing::error!("third");
    });
    let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    assert!(
        text.contains("second") && text.lines().count() == 1,
        "{text}"
    );
}

#[test]
fn what_is_silenced_is_heard_when_it_is_asked_for_also_after_a_change() {
    let page = Page::default();
    let writer = page.clone();
    let filter = "info".parse().unwrap();
    let make = move || writer.clone();
    let (subscriber, level) = subscriber("loud=off", &filter, LogFormat::Text, false, make);
    with_default(subscriber, || {
        info!(target: "loud", "first");
        level.set(&"debug".parse().unwrap());
        info!(target: "loud", "second");
        level.set(&"info,loud=info".parse().unwrap());
        info!(target: "loud", "third");
        info!("fourth");
    });
    let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("third") && text.contains("fourth"), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}
