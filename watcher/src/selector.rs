//! Label selectors as `kubectl -l` writes them, parsed once and matched without a server.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

/// Which objects are meant, by their labels. The empty selector means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
}

/// Why a text is no label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is not a label selector: {why}; want for example `app=build,tier!=test,env in (a,b),!keep`"
)]
pub struct ParseSelectorError {
    given: String,
    why: String,
}

impl Selector {
    /// Whether an object with `labels` is meant. As in Kubernetes, `a!=b` and `a notin (b)`
    /// hold for an object without label `a`.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.and_then(|labels| labels.get(&requirement.key)?.as_str());
            match (&requirement.test, value) {
                (Test::Exists, value) => value.is_some(),
                (Test::Absent, value) => value.is_none(),
                (Test::In(wanted), value) => {
                    value.is_some_and(|value| wanted.iter().any(|w| w == value))
                }
                (Test::NotIn(unwanted), value) => {
                    value.is_none_or(|value| !unwanted.iter().any(|u| u == value))
                }
            }
        })
    }
}

impl FromStr for Selector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why: String| ParseSelectorError {
            given: text.to_owned(),
            why,
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        split(text)
            .into_iter()
            .map(|part| requirement(part.trim()).map_err(refuse))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Requirement { key, test }) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            match test {
                Test::Exists => write!(f, "{key}")?,
                Test::Absent => write!(f, "!{key}")?,
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
            }
        }
        Ok(())
    }
}

/// Cuts at the commas that stand outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn requirement(part: &str) -> Result<Requirement, String> {
    let made = |key: &str, test| {
        Ok(Requirement {
            key: check_key(key.trim())?,
            test,
        })
    };
    if let Some(key) = part.strip_prefix('!') {
        return made(key, Test::Absent);
    }
    if let Some((key, set)) = part.split_once('(') {
        let set = set
            .trim_end()
            .strip_suffix(')')
            .ok_or("a `(` is not closed")?;
        let values: Vec<String> = set
            .split(',')
            .map(|v| check_value(v.trim()))
            .collect::<Result<_, _>>()?;
        let key = key.trim_end();
        return match (key.strip_suffix(" notin"), key.strip_suffix(" in")) {
            (Some(key), _) => made(key, Test::NotIn(values)),
            (_, Some(key)) => made(key, Test::In(values)),
            _ => Err(format!(
                "`{part}` has a list, but neither `in` nor `notin` before it"
            )),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return made(key, Test::NotIn(vec![check_value(value.trim())?]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return made(key, Test::In(vec![check_value(value.trim())?]));
    }
    made(part, Test::Exists)
}

fn check_key(key: &str) -> Result<String, String> {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
    check_value(name)?;
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if name.is_empty() || !prefix.chars().all(ok) {
        return Err(format!("`{key}` is no label"));
    }
    Ok(key.to_owned())
}

fn check_value(value: &str) -> Result<String, String> {
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if value.len() > 63 || !value.chars().all(ok) {
        return Err(format!("`{value}` is no value of a label"));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Selector;

    #[track_caller]
    fn check(selector: &str, matches: bool) {
        let labels = json!({"app": "build", "tekton.dev/pipeline": "nightly", "keep": ""});
        let selector: Selector = selector.parse().unwrap();
        assert_eq!(selector.matches(labels.as_object()), matches, "{selector}");
    }

    #[test]
    fn a_selector_means_what_kubectl_means() {
        for text in [
            "",
            " ",
            "app",
            "app=build",
            "app == build",
            "app!=test",
            "other!=x",
            "!other",
            "app in (test, build)",
            "app notin (test)",
            "other notin (test)",
            "keep=",
            "tekton.dev/pipeline=nightly,app=build",
        ] {
            check(text, true);
        }
        for text in [
            "other",
            "app=test",
            "app!=build",
            "!app",
            "app in (test)",
            "app=build,other=x",
        ] {
            check(text, false);
        }
        assert!(!"a".parse::<Selector>().unwrap().matches(None));
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        for (text, why) in [
            ("app in (a", "not closed"),
            ("app (a)", "neither"),
            ("a b=c", "no value of a label"),
            ("app=a b", "no value of a label"),
            ("=x", "no label"),
            ("a,", "no label"),
        ] {
            let error = text.parse::<Selector>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
