//! An answer of Loki: streams, each with labels, times and lines.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

/// The labels that name a container and its pod.
const CONTAINER: &str = "container";
const POD: &str = "pod";

/// One line, as Loki gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// In nanoseconds since 1970.
    pub(super) time: i128,
    pub(super) pod: String,
    pub(super) container: String,
    pub(super) line: String,
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    data: Data,
}

#[derive(Default, Deserialize)]
struct Data {
    #[serde(default, rename = "resultType")]
    result_type: String,
    #[serde(default)]
    result: Vec<OfStream>,
}

#[derive(Deserialize)]
struct OfStream {
    #[serde(default)]
    stream: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<Value>,
}

/// Time and line, and what Loki adds after them.
struct Value(String, String);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pair;

        impl<'de> Visitor<'de> for Pair {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time and a line")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Value, A::Error> {
                let short = || serde::de::Error::invalid_length(0, &self);
                let time = pair.next_element()?.ok_or_else(short)?;
                let line = pair.next_element()?.ok_or_else(short)?;
                while pair.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Value(time, line))
            }
        }

        deserializer.deserialize_seq(Pair)
    }
}

/// The lines of an answer, those of each stream in its order. It fails with why it is no such answer.
pub(super) fn entries(body: &[u8]) -> Result<Vec<Entry>, String> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| format!("its answer is none of Loki: {error}"))?;
    if answer.status != "success" {
        let said: String = answer.error.chars().take(200).collect();
        return Err(format!("it failed: {}", said.escape_default()));
    }
    let kind = answer.data.result_type.as_str();
    if !matches!(kind, "streams" | "") {
        return Err("the query gives numbers and not lines; see logs_loki_query".to_owned());
    }
    let mut all = Vec::new();
    for of in answer.data.result {
        let label = |name: &str| of.stream.get(name).cloned().unwrap_or_default();
        let (pod, container) = (label(POD), label(CONTAINER));
        for Value(time, line) in of.values {
            let time = time.parse::<i64>();
            all.push(Entry {
                time: i128::from(time.map_err(|_odd| "a time is no number".to_owned())?),
                pod: pod.clone(),
                container: container.clone(),
                line,
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_container_and_the_pod_of_their_stream() {
        let body = br#"{"status": "success", "data": {"resultType": "streams", "result": [
            {"stream": {"container": "step-a", "pod": "p", "message": "x"},
             "values": [["1700000000000000001", "one"], ["1700000000000000002", "two", {"x": "y"}]]},
            {"stream": {}, "values": [["3", "three"]]}], "stats": {"summary": {}}}}"#;
        let all = entries(body).unwrap();
        let lines: Vec<_> = all
            .iter()
            .map(|it| {
                (
                    it.time,
                    it.container.as_str(),
                    it.pod.as_str(),
                    it.line.as_str(),
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                (1_700_000_000_000_000_001, "step-a", "p", "one"),
                (1_700_000_000_000_000_002, "step-a", "p", "two"),
                (3, "", "", "three"),
            ]
        );
    }

    #[test]
    fn what_is_no_answer_with_lines_is_refused() {
        for (body, says) in [
            ("{", "its answer is none of Loki"),
            (
                r#"{"status": "error", "error": "too many\nseries"}"#,
                "it failed: too many\\nseries",
            ),
            (
                r#"{"status": "success", "data": {"resultType": "matrix", "result": []}}"#,
                "numbers and not lines",
            ),
            (
                r#"{"status": "success", "data": {"result": [{"values": [["x", "line"]]}]}}"#,
                "no number",
            ),
            (
                r#"{"status": "success", "data": {"result": [{"values": [["1"]]}]}}"#,
                "none of Loki",
            ),
        ] {
            let why = entries(body.as_bytes()).unwrap_err();
            assert!(why.contains(says), "{body}: {why}");
        }
    }
}
