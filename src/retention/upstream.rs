//! The ConfigMap of Tekton Results' retention policy agent, as our file.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};

use super::file::{Entry, Kept, Rules, Whole};

/// When the agent passes if its ConfigMap does not say: what its manifest has.
const USUAL: &str = "5 5 * * 0";
/// How long it keeps runs then.
const USUAL_DAYS: &str = "30d";
const SECONDS_OF_DAY: u64 = 86_400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigMap {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    kind: Option<String>,
    #[serde(rename = "metadata")]
    _metadata: Option<IgnoredAny>,
    data: Data,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Data {
    run_at: Option<String>,
    default_retention: Option<String>,
    max_retention: Option<String>,
    policies: Option<String>,
    #[serde(rename = "_example")]
    _example: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    name: String,
    selector: Selector,
    retention: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Selector {
    #[serde(default)]
    match_namespaces: Vec<String>,
    #[serde(default)]
    match_labels: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    match_annotations: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    match_statuses: Vec<String>,
}

/// The file that says what a ConfigMap says, for runs in their own right. It fails if something in it is not
/// understood, or the agent would take it otherwise than it reads.
pub fn converted(text: &str, zone: &str) -> Result<String, String> {
    let map: ConfigMap = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    if map.kind.as_deref().is_some_and(|kind| kind != "ConfigMap") {
        return Err("it is no ConfigMap".to_owned());
    }
    let data = map.data;
    if data.default_retention.is_some() && data.max_retention.is_some() {
        return Err(
            "defaultRetention and maxRetention are both there, and the agent takes maxRetention; \
             leave one out"
                .to_owned(),
        );
    }
    let policies: Vec<Policy> = match data.policies.as_deref().map(str::trim) {
        None | Some("") => Vec::new(),
        Some(text) => serde_saphyr::from_str(text).map_err(|error| format!("policies: {error}"))?,
    };
    let whole = data.default_retention.or(data.max_retention);
    let whole = whole.unwrap_or_else(|| USUAL_DAYS.to_owned());
    let run_at = data.run_at.as_deref().unwrap_or(USUAL);
    let file = Whole {
        run_at: format!("{run_at} {zone}"),
        at_start: Some(false),
        batch: None,
        pause: None,
        policies: policies.iter().map(entry).collect::<Result<_, _>>()?,
        default: Kept {
            keep_for: Some(duration(&whole).map_err(|why| format!("defaultRetention {why}"))?),
            keep_last: None,
            archive_after: None,
        },
        namespaces: BTreeMap::new(),
    };
    let text = toml::to_string(&file).map_err(|error| error.to_string())?;
    Rules::parse(&text)?;
    Ok(text)
}

fn entry(policy: &Policy) -> Result<Entry, String> {
    let of = |why: String| format!("policy `{}`: {why}", policy.name);
    let selector = &policy.selector;
    let mut parts = Vec::new();
    if !selector.match_namespaces.is_empty() {
        parts.push(is_in("parent", &selector.match_namespaces));
    }
    for (place, matched) in [
        ("labels", &selector.match_labels),
        ("annotations", &selector.match_annotations),
    ] {
        for (key, values) in matched {
            if values.is_empty() {
                return Err(of(format!("`{key}` has no values, so it matches nothing")));
            }
            parts.push(is_in(
                &format!("data.metadata.{place}[{}]", quoted(key)),
                values,
            ));
        }
    }
    if !selector.match_statuses.is_empty() {
        let reason = "data.status.conditions[0].reason";
        parts.push(is_in(reason, &selector.match_statuses));
    }
    if parts.is_empty() {
        return Err(of(
            "its selector is empty, so it matches every run; put its retention into \
             defaultRetention"
                .to_owned(),
        ));
    }
    let keep_for = duration(&policy.retention);
    Ok(Entry {
        name: name(&policy.name),
        when: Some(parts.join(" && ")),
        outcomes: None,
        keep_for: Some(keep_for.map_err(|why| of(format!("retention {why}")))?),
        keep_last: None,
        archive_after: None,
    })
}

/// A name in the characters of ours.
fn name(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let name: String = lower
        .chars()
        .map(|c| if of_name(c) { c } else { '-' })
        .collect();
    match name.as_str() {
        "default" => "default-policy".to_owned(),
        _ => name,
    }
}

fn is_in(field: &str, values: &[String]) -> String {
    let values: Vec<_> = values.iter().map(|value| quoted(value)).collect();
    format!("{field} in [{}]", values.join(", "))
}

/// A text in CEL, which takes the escapes of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A number of days, `30d`, or a duration of Go, as one of ours.
fn duration(text: &str) -> Result<String, String> {
    let text = text.trim();
    let days = text.strip_suffix('d').unwrap_or(text);
    if let Ok(days) = days.parse::<u64>() {
        return match days.checked_mul(SECONDS_OF_DAY) {
            None | Some(0) => Err(format!("`{text}` would delete every run, or none")),
            Some(_) => Ok(format!("{days}d")),
        };
    }
    // Units of Go are ours; what is wrong is said when the file is read.
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
