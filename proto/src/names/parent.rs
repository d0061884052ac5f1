//! A parent: the tenant that results belong to, usually a namespace.

use std::{fmt, str::FromStr};

use super::{MAX_PARENT_SEGMENTS, ParseNameError, segment};

const WHAT: &str = "parent";
const WANT: &str = "<namespace>";

/// The tenant that results belong to: a namespace, or several segments such as
/// `cluster/east/namespace/ci`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parent(String);

impl Parent {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last segment, which is what Kubernetes calls the namespace.
    pub fn namespace(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The cluster that it is of: `<id>` in `cluster/<id>/...`.
    pub fn cluster(&self) -> Option<&str> {
        let (id, _) = self.0.strip_prefix("cluster/")?.split_once('/')?;
        Some(id)
    }

    /// What every parent of the cluster `id` begins with; `None` if no cluster can be called so.
    pub fn prefix_of_cluster(id: &str) -> Option<String> {
        let is_one_segment =
            !id.contains('/') && Self::from_str(&format!("cluster/{id}/n")).is_ok();
        is_one_segment.then(|| format!("cluster/{id}/"))
    }
}

impl FromStr for Parent {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why: String| ParseNameError::new(text, WHAT, WANT, why);
        if text.split('/').count() > MAX_PARENT_SEGMENTS {
            return Err(refuse(format!(
                "it has more than {MAX_PARENT_SEGMENTS} segments"
            )));
        }
        for part in text.split('/') {
            segment(part).map_err(refuse)?;
            if matches!(part, "results" | "records") {
                return Err(refuse(format!("the segment `{part}` is reserved")));
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
