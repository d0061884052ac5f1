//! The two kinds by which Tekton asks for a custom task.

/// A kind by which Tekton asks for a custom task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// `CustomRun` of `tekton.dev/v1beta1`.
    #[default]
    CustomRun,
    /// `Run` of `tekton.dev/v1alpha1`, which Tekton had before.
    Run,
}

impl Form {
    /// The kinds that Tekton has used for custom tasks.
    pub const ALL: [Self; 2] = [Self::CustomRun, Self::Run];

    /// The API group of both kinds.
    pub const GROUP: &'static str = "tekton.dev";

    /// The kind of an object of this API version and kind.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/')?;
        let mut all = Self::ALL.into_iter();
        all.find(|form| (group, version, kind) == (Self::GROUP, form.version(), form.kind()))
    }

    /// The version of the API group.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::CustomRun => "v1beta1",
            Self::Run => "v1alpha1",
        }
    }

    /// The name of the kind.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::CustomRun => "CustomRun",
            Self::Run => "Run",
        }
    }

    /// The name of the kind in URLs.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::CustomRun => "customruns",
            Self::Run => "runs",
        }
    }

    /// The field of the spec that names a custom task.
    #[must_use]
    pub const fn reference(self) -> &'static str {
        match self {
            Self::CustomRun => "customRef",
            Self::Run => "ref",
        }
    }

    /// The field of the spec that has a custom task embedded.
    #[must_use]
    pub const fn embedded(self) -> &'static str {
        match self {
            Self::CustomRun => "customSpec",
            Self::Run => "spec",
        }
    }

    /// A reason of Tekton's that begins with the kind, such as `CustomRunCancelled`.
    pub(crate) fn reason(self, end: &str) -> String {
        format!("{}{end}", self.kind())
    }
}
