//! Texts with variables, such as `${parent}/${record}/`, by which logs are found that are kept elsewhere.

/// What a variable stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// The parent of the record, as it is named.
    Parent,
    /// The last segment of the parent.
    Namespace,
    /// The cluster that the parent is of.
    Cluster,
    /// The last part of the name of the result.
    Result,
    /// The last part of the name of the record.
    Record,
    /// The last part of the name that Tekton Results gives to the record of the log.
    Log,
    /// `metadata.uid` of the run.
    Uid,
    /// `metadata.name` of the run.
    Name,
    /// The kind of the run, which begins with a small letter.
    Kind,
    /// The pod of the run.
    Pod,
    /// When the run began, in milliseconds since 1970.
    Start,
    /// When the run ended, in milliseconds since 1970.
    End,
}

const NAMES: [(&str, Variable); 12] = [
    ("parent", Variable::Parent),
    ("namespace", Variable::Namespace),
    ("cluster", Variable::Cluster),
    ("result", Variable::Result),
    ("record", Variable::Record),
    ("log", Variable::Log),
    ("uid", Variable::Uid),
    ("name", Variable::Name),
    ("kind", Variable::Kind),
    ("pod", Variable::Pod),
    ("start", Variable::Start),
    ("end", Variable::End),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(Variable),
}

/// A text with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A variable has no end.
    #[error("`${{` has no `}}` after it")]
    Open,
    /// There is no such variable.
    #[error("`${{{0}}}` is no variable; there are {1}")]
    Unknown(String, String),
}

impl Template {
    /// Reads a text. It fails if a variable is unknown.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or(TemplateError::Open)?;
            let known = NAMES.iter().find(|(known, _)| *known == name);
            let Some((_, variable)) = known else {
                let known = NAMES.map(|(known, _)| format!("`{known}`")).join(", ");
                let name = name.chars().take(40).collect();
                return Err(TemplateError::Unknown(name, known));
            };
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Variable(*variable));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    /// Whether a variable is in it.
    #[must_use]
    pub fn has(&self, variable: Variable) -> bool {
        self.0.contains(&Piece::Variable(variable))
    }

    /// The text with values in the place of variables; none if one of them has no value.
    pub fn fill(&self, mut value: impl FnMut(Variable) -> Option<String>) -> Option<String> {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Variable(variable) => value(*variable),
        });
        pieces.collect()
    }
}

impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Variable(variable) => {
                    let known = NAMES.iter().find(|(_, known)| known == variable);
                    let (name, _) = known.unwrap_or(&NAMES[0]);
                    write!(f, "${{{name}}}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_or_nothing_is() {
        let text = "a/${parent}/${uid}-${uid}/$x{y}";
        let template = Template::parse(text).unwrap();
        assert_eq!(template.to_string(), text);
        assert!(template.has(Variable::Uid) && !template.has(Variable::Name));
        let filled = template.fill(|variable| match variable {
            Variable::Parent => Some("ci".to_owned()),
            _ => Some("${uid}".to_owned()),
        });
        assert_eq!(
            filled.unwrap(),
            "a/ci/${uid}-${uid}/$x{y}",
            "values are not filled again"
        );
        assert_eq!(template.fill(|_| None), None);
    }

    #[test]
    fn a_variable_that_does_not_exist_is_refused() {
        assert_eq!(Template::parse("a${uid").unwrap_err(), TemplateError::Open);
        let unknown = Template::parse("${path}").unwrap_err().to_string();
        assert!(unknown.starts_with("`${path}` is no variable; there are `parent`"));
    }
}
