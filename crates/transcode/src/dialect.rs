//! How JSON is spelled. Every family of paths has its own habits, which its clients parse
//! strictly; a route takes them from its prefix.

/// The habits of one family of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// The beginning of its paths.
    pub(super) prefix: &'static str,
    /// How fields are spelled in answers; requests may use either spelling.
    pub(super) names: Names,
    /// How values of enums are spelled in answers; requests may use either spelling.
    pub(super) enums: Enums,
    /// What a field is that the message does not have.
    pub(super) unknown: Unknown,
    /// What the first wildcard of a path stands for.
    pub(super) first: First,
    /// The fields that answers have also when they are zero, for clients that do not look whether they are there.
    pub(super) kept: &'static [&'static str],
    /// What is done where the path and the body disagree about a field.
    pub(super) conflict: Conflict,
    /// Maps that the body of an update says are empty, which a message cannot say, and the metadata that does.
    pub(super) emptied: &'static [(&'static str, &'static str)],
    /// Whether calls take selectors and parts of answers beside their message.
    pub(super) has_extras: bool,
}

/// How fields are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// `page_size`, as in the .proto file.
    Snake,
    Camel,
}

/// How values of enums are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enums {
    /// By name; a value without a name is its number.
    Name,
    Number,
}

/// What becomes of a field in a request that the message does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// It is passed over.
    Ignored,
    /// The request is refused.
    Refused,
}

/// What the first wildcard of a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// One or more segments, so that parents such as `cluster/east/namespace/ci` can be named.
    Segments,
    Segment,
}

/// What is done where the path and the body disagree about a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// The request is refused.
    Refused,
    /// The path decides.
    PathWins,
}

pub(super) const TEKTON: Dialect = Dialect {
    prefix: "/apis/results.tekton.dev/",
    names: Names::Snake,
    enums: Enums::Name,
    unknown: Unknown::Ignored,
    first: First::Segments,
    kept: &[],
    conflict: Conflict::Refused,
    emptied: &[],
    has_extras: true,
};

pub(super) const HINDSIGHT: Dialect = Dialect {
    prefix: "/apis/hindsight.dev/",
    names: Names::Camel,
    enums: Enums::Name,
    unknown: Unknown::Refused,
    first: First::Segments,
    kept: &[],
    conflict: Conflict::Refused,
    emptied: &[],
    has_extras: true,
};

/// The API server of KubeRay. Its Python client indexes the fields that are kept.
const KUBERAY: Dialect = Dialect {
    prefix: "/apis/v1/",
    names: Names::Camel,
    enums: Enums::Number,
    unknown: Unknown::Ignored,
    first: First::Segment,
    kept: &["clusters", "compute_templates", "volume_type"],
    conflict: Conflict::Refused,
    emptied: &[],
    has_extras: false,
};

const KUBERAY_ALPHA: Dialect = Dialect {
    prefix: "/apis/v1alpha2/",
    ..KUBERAY
};

/// The API server of Kubeflow pipelines.
const KUBEFLOW: Dialect = Dialect {
    prefix: "/apis/v2beta1/",
    names: Names::Snake,
    enums: Enums::Name,
    unknown: Unknown::Refused,
    first: First::Segment,
    kept: &[],
    conflict: Conflict::PathWins,
    emptied: &[("tags", "x-clear-tags")],
    has_extras: false,
};

const DIALECTS: &[Dialect] = &[TEKTON, HINDSIGHT, KUBERAY, KUBERAY_ALPHA, KUBEFLOW];

impl Dialect {
    /// The dialect of the family that `path` belongs to.
    pub(super) fn of(path: &str) -> Option<Self> {
        DIALECTS
            .iter()
            .find(|dialect| path.starts_with(dialect.prefix))
            .copied()
    }
}
