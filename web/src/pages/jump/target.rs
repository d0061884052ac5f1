//! What a text in the jump box may mean.

use hindsight_run::reference;

/// Longest text that is looked up.
const LONGEST: usize = 1_000;
/// Fewest digits of a digest or a commit.
const DIGEST: usize = 7;

/// A text as it may be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// No text, or spaces alone: there is nothing to look up.
    Empty,
    /// The full name of a record.
    Record(String),
    /// A name, a UID or the beginning of one; in this namespace, if one is given.
    Named { namespace: String, name: String },
    /// The digits of a digest or of a commit.
    Digest(String),
}

/// Reads a text. What may be several things is looked up as a name first.
pub(super) fn target(text: &str) -> Target {
    let text = text.trim();
    let text = match text.char_indices().nth(LONGEST) {
        Some((at, _)) => &text[..at],
        None => text,
    };
    if let Some(name) = reference::record(text) {
        return Target::Record(name.to_string());
    }
    if text.is_empty() {
        return Target::Empty;
    }
    if let Some(digits) = digest(text) {
        return Target::Digest(digits);
    }
    let (namespace, name) = match text.rsplit_once('/') {
        Some((namespace, name)) if !text.contains("://") && !name.is_empty() => (namespace, name),
        _ => ("", text),
    };
    Target::Named {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// The digits of `sha256:…`, of `image@sha256:…`, or of a text that is nothing but many of them.
fn digest(text: &str) -> Option<String> {
    let text = text.rsplit_once('@').map_or(text, |(_, digest)| digest);
    let named = text
        .split_once(':')
        .filter(|(name, _)| name.starts_with("sha"));
    let digits = named.map_or(text, |(_, digits)| digits);
    let is_long = digits.len() >= DIGEST && (named.is_some() || digits.len() >= 40);
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_long && are_digits && digits.len() <= 128).then(|| digits.to_ascii_lowercase())
}

/// Whether a text can be a part of a commit that labels have.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() >= DIGEST && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pasted_is_told_apart() {
        let full = "shop/results/5d5f/records/77aa";
        let record = |name: &str| Target::Record(name.to_owned());
        let named = |namespace: &str, name: &str| Target::Named {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let digits = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        for (text, meant) in [
            (" ", Target::Empty),
            (full, record(full)),
            (
                "https://h.example/base/ui/run/shop/results/5d5f/records/77aa?tz=UTC#L1",
                record(full),
            ),
            (
                "/ui/graph/cluster/east/results/a/records/b",
                record("cluster/east/results/a/records/b"),
            ),
            (
                "http://h/apis/hindsight.dev/v1/parents/shop/results/5d5f/records/77aa/tree",
                record(full),
            ),
            ("release-42", named("", "release-42")),
            ("shop/release-42", named("shop", "release-42")),
            ("cluster/east/x", named("cluster/east", "x")),
            (
                "https://h.example/elsewhere",
                named("", "https://h.example/elsewhere"),
            ),
            (
                &format!("sha256:{digits}"),
                Target::Digest(digits.to_owned()),
            ),
            (
                &format!("registry.example/shop/web@sha256:{digits}"),
                Target::Digest(digits.to_owned()),
            ),
            (&digits.to_uppercase(), Target::Digest(digits.to_owned())),
            ("0b4f9a2e", named("", "0b4f9a2e")),
        ] {
            assert_eq!(target(text), meant, "{text}");
        }
        assert!(is_commit("0b4f9a2e") && !is_commit("0b4f9a") && !is_commit("release"));
    }

    #[test]
    fn a_long_text_is_cut() {
        let Target::Named { name, .. } = target(&"é".repeat(5_000)) else {
            panic!("no name");
        };
        assert_eq!(name.chars().count(), LONGEST);
    }
}
