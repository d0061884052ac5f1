//! Rights as files of ours spell them: parents, and a role or verbs.

use serde::{Deserialize, de::DeserializeOwned};

use super::{Access, Guarded, Verb};
use hindsight_proto::names::{Parent, ParentPattern};

/// Makes sense of the text of a file; the error says where it makes none.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        // The parser's own text quotes the line, which may hold a token by mistake.
        let line = error
            .span()
            .map(|span| 1 + text[..span.start].matches('\n').count());
        let message = without_value(error.message());
        match line {
            Some(line) => format!("line {line}: {message}"),
            None => message,
        }
    })
}

/// A message of a type that does not fit repeats the text that was found.
fn without_value(message: &str) -> String {
    match (message.find("string \""), message.rfind("\", expected")) {
        (Some(from), Some(to)) if from < to => {
            format!("{}a text{}", &message[..from], &message[to + 1..])
        }
        _ => message.to_owned(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rights {
    parents: Vec<String>,
    role: Option<Role>,
    verbs: Option<Vec<Word>>,
    #[serde(default = "all")]
    resources: Vec<Kind>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Role {
    Readonly,
    Readwrite,
    Admin,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Word {
    Create,
    Get,
    Update,
    Delete,
    List,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Results,
    Records,
    Logs,
    Clusters,
    ComputeTemplates,
    Pipelines,
    PipelineVersions,
}

/// What rights without resources are about. Those that make pods, and say what is run, are named.
fn all() -> Vec<Kind> {
    vec![Kind::Results, Kind::Records, Kind::Logs]
}

/// Rights that make sense.
pub(super) struct Granted {
    parents: Vec<ParentPattern>,
    verbs: Vec<Verb>,
    resources: Vec<Guarded>,
}

impl Granted {
    pub(super) fn allows(&self, access: &Access) -> bool {
        self.verbs.contains(&access.verb)
            && self.resources.contains(&access.resource)
            && self
                .parents
                .iter()
                .any(|parent| *parent == ParentPattern::Any || *parent == access.parent)
    }
}

impl Rights {
    /// The rights, or where they make no sense.
    pub(super) fn granted(&self) -> Result<Granted, String> {
        let verbs = match (self.role, &self.verbs) {
            (Some(role), None) => of_role(role).to_vec(),
            (None, Some(words)) => words.iter().copied().map(verb).collect(),
            _ => return Err("a grant has a role or verbs, one of the two".to_owned()),
        };
        let parents = self.parents.iter().map(|text| match text.as_str() {
            "*" => Ok(ParentPattern::Any),
            text => text
                .parse::<Parent>()
                .map(ParentPattern::Exact)
                .map_err(|error| format!("{error}, or `*` for every parent")),
        });
        Ok(Granted {
            parents: parents.collect::<Result<_, _>>()?,
            verbs,
            resources: self
                .resources
                .iter()
                .map(|kind| match kind {
                    Kind::Results => Guarded::Results,
                    Kind::Records => Guarded::Records,
                    Kind::Logs => Guarded::Logs,
                    Kind::Clusters => Guarded::Clusters,
                    Kind::ComputeTemplates => Guarded::ComputeTemplates,
                    Kind::Pipelines => Guarded::Pipelines,
                    Kind::PipelineVersions => Guarded::PipelineVersions,
                })
                .collect(),
        })
    }
}

fn of_role(role: Role) -> &'static [Verb] {
    const ALL: &[Verb] = &[
        Verb::Get,
        Verb::List,
        Verb::Create,
        Verb::Update,
        Verb::Delete,
    ];
    match role {
        Role::Readonly => &ALL[..2],
        Role::Readwrite => &ALL[..4],
        Role::Admin => ALL,
    }
}

fn verb(word: Word) -> Verb {
    match word {
        Word::Create => Verb::Create,
        Word::Get => Verb::Get,
        Word::Update => Verb::Update,
        Word::Delete => Verb::Delete,
        Word::List => Verb::List,
    }
}
