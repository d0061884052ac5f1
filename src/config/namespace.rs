//! A namespace of Kubernetes.

use hindsight_config::{BadValue, Kind, Value};
use hindsight_filter::model::Parent;

/// The name of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(Parent);

impl Namespace {
    /// As it is written.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.as_str()
    }

    /// The parent of what belongs to it.
    #[must_use]
    pub fn parent(&self) -> Parent {
        self.0.clone()
    }
}

impl Value for Namespace {
    const WORD: &'static str = "NAMESPACE";
    const KIND: Kind = Kind::Text;

    fn read(text: &str) -> Result<Self, BadValue> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = text.as_bytes();
        let is_label = bytes.len() <= 63
            && bytes.iter().copied().all(plain)
            && ends(bytes.first())
            && ends(bytes.last());
        let parent = text.parse().ok().filter(|_| is_label);
        parent.map(Self).ok_or_else(|| {
            let want = "at most 63 lower case letters, digits and `-`, for example `kubeflow`";
            BadValue::not_valid(text, "namespace", want)
        })
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_dns_label() {
        for good in ["kubeflow", "a", "7-b", &"n".repeat(63)] {
            assert_eq!(Namespace::read(good).unwrap().show(), good);
        }
        for bad in ["", "-", "a-", "A", "a.b", "a/b", "é", &"n".repeat(64)] {
            assert!(Namespace::read(bad).is_err(), "{bad}");
        }
    }
}
