//! The language of filters whose callers name none.

use std::fmt;

use super::{problem::BadValue, value::Value};

/// A language of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterLanguage {
    /// CEL.
    Cel,
    /// Kubernetes label selectors.
    Labels,
    /// Kubernetes field selectors.
    Fields,
}

impl fmt::Display for FilterLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cel => "cel",
            Self::Labels => "labels",
            Self::Fields => "fields",
        })
    }
}

impl Value for FilterLanguage {
    fn read(text: &str) -> Result<Self, BadValue> {
        let mut all = [Self::Cel, Self::Labels, Self::Fields].into_iter();
        all.find(|value| value.to_string() == text).ok_or_else(|| {
            BadValue::new(format!(
                "`{text}` is no language of filters; want `cel`, `labels` or `fields`"
            ))
        })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}
