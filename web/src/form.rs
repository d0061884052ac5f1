//! Parameters of addresses and small forms.

use axum::body::Body;
use http_body_util::{BodyExt as _, Limited};
use std::time::Duration;

/// Largest form, in bytes.
const MAX_FORM: usize = 16 << 10;
/// How long a form is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Names and values, in the order given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads what is encoded as browsers encode forms.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// Reads a body; none if it is too large, too slow or breaks off.
    pub(crate) async fn read(body: Body) -> Option<Self> {
        let whole = Limited::new(body, MAX_FORM).collect();
        let whole = tokio::time::timeout(PATIENCE, whole).await.ok()?.ok()?;
        Some(Self::parse(&whole.to_bytes()))
    }

    /// Whether there is a value of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// The first value of this name without blanks around it; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_form_is_read_up_to_its_limit() {
        let form = Form::read(Body::from("q=took%3E10m+failed&q=x&ns=+a+")).await;
        let form = form.unwrap();
        assert_eq!((form.get("q"), form.get("ns")), ("took>10m failed", "a"));
        assert_eq!(form.get("absent"), "");
        let large = vec![b'a'; MAX_FORM + 1];
        assert!(Form::read(Body::from(large)).await.is_none());
    }
}
