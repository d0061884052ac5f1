//! Path templates of `google.api.http`, as in `/v1/parents/{name=*/results/*}`.

use std::ops::Range;

use super::dialect::First;

/// A template, ready to be matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    segments: Vec<Segment>,
    variables: Vec<Variable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    field: String,
    segments: Range<usize>,
}

/// A field that the path names, and its value.
pub(super) type Capture = (String, String);

impl Template {
    /// Reads a template. `**` and `:verb` are not understood.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut template = Self {
            segments: Vec::new(),
            variables: Vec::new(),
        };
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.strip_prefix('/').ok_or("a `/` is missing")?;
            if let Some(inside) = rest.strip_prefix('{') {
                let (variable, after) = inside.split_once('}').ok_or("a `}` is missing")?;
                let (field, pattern) = variable.split_once('=').unwrap_or((variable, "*"));
                let from = template.segments.len();
                for part in pattern.split('/') {
                    template.push(part)?;
                }
                template.variables.push(Variable {
                    field: field.to_owned(),
                    segments: from..template.segments.len(),
                });
                rest = after;
            } else {
                let end = rest.find('/').unwrap_or(rest.len());
                template.push(&rest[..end])?;
                rest = &rest[end..];
            }
        }
        Ok(template)
    }

    fn push(&mut self, part: &str) -> Result<(), &'static str> {
        self.segments.push(match part {
            "" => return Err("a segment is empty"),
            "*" => Segment::Any,
            _ if part.contains(['*', ':', '{', '}']) => {
                return Err("`**`, `:verb` and nested variables are not supported");
            }
            _ => Segment::Literal(part.to_owned()),
        });
        Ok(())
    }

    /// How many segments are spelled out; of two templates that match, the one with more wins.
    pub(super) fn literals(&self) -> usize {
        let literal = |segment: &&Segment| matches!(segment, Segment::Literal(_));
        self.segments.iter().filter(literal).count()
    }

    /// The fields whose values paths carry.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.variables
            .iter()
            .map(|variable| variable.field.as_str())
    }

    /// What the variables stand for in a path of these decoded segments, if it fits.
    ///
    /// Where the first wildcard may stand for several segments, none of them equals a literal
    /// that follows it: the last `results` and `records` of a path are the ones that count.
    pub(super) fn matches(&self, path: &[String], first: First) -> Option<Vec<Capture>> {
        let extra = path.len().checked_sub(self.segments.len())?;
        let wide = self.segments.iter().position(|s| *s == Segment::Any);
        if extra > 0 && (wide.is_none() || first == First::Segment) {
            return None;
        }
        // Where in the path a segment of the template begins.
        let at = |segment: usize| match wide {
            Some(wide) if segment > wide => segment + extra,
            _ => segment,
        };
        for (index, segment) in self.segments.iter().enumerate() {
            for part in &path[at(index)..at(index + 1)] {
                let fits = match segment {
                    Segment::Literal(literal) => part == literal,
                    Segment::Any if extra > 0 && Some(index) == wide => {
                        !part.is_empty() && !self.spells_out(part, index)
                    }
                    Segment::Any => !part.is_empty(),
                };
                if !fits {
                    return None;
                }
            }
        }
        let capture = |variable: &Variable| {
            let value = path[at(variable.segments.start)..at(variable.segments.end)].join("/");
            (variable.field.clone(), value)
        };
        Some(self.variables.iter().map(capture).collect())
    }

    fn spells_out(&self, part: &str, after: usize) -> bool {
        self.segments[after..]
            .iter()
            .any(|segment| matches!(segment, Segment::Literal(literal) if literal == part))
    }

    /// The template as OpenAPI spells paths, with one name per wildcard, and those names.
    pub(super) fn spelled(&self) -> (String, Vec<String>) {
        let (mut path, mut names) = (String::new(), Vec::new());
        for (index, segment) in self.segments.iter().enumerate() {
            path.push('/');
            match segment {
                Segment::Literal(literal) => path.push_str(literal),
                Segment::Any => {
                    let name = self.wildcard(index);
                    path.push_str(&format!("{{{name}}}"));
                    names.push(name);
                }
            }
        }
        (path, names)
    }

    /// `/results/*` is called `result`, and a wildcard with nothing before it `parent`.
    fn wildcard(&self, index: usize) -> String {
        let inside = |variable: &&Variable| variable.segments.contains(&index);
        let starts = self
            .variables
            .iter()
            .find(inside)
            .is_none_or(|v| v.segments.start == index);
        match index.checked_sub(1).map(|before| &self.segments[before]) {
            Some(Segment::Literal(collection)) if !starts => {
                collection.trim_end_matches('s').to_owned()
            }
            _ => "parent".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn gives(template: &str, path: &str, expected: Option<&[(&str, &str)]>) {
        let segments: Vec<String> = path[1..].split('/').map(str::to_owned).collect();
        let template = Template::parse(template).unwrap();
        let captures = template.matches(&segments, First::Segments);
        let captures = captures.as_ref().map(|captures| {
            let borrowed = |(field, value): &'_ Capture| (field.clone(), value.clone());
            captures.iter().map(borrowed).collect::<Vec<_>>()
        });
        let expected = expected.map(|expected| {
            let owned = |(field, value): &(&str, &str)| (field.to_string(), value.to_string());
            expected.iter().map(owned).collect::<Vec<_>>()
        });
        assert_eq!(captures, expected, "{path}");
    }

    #[test]
    fn the_first_wildcard_takes_what_the_others_leave() {
        let list = "/p/{parent=*}/results";
        gives(list, "/p/ci/results", Some(&[("parent", "ci")]));
        gives(list, "/p/c/a/results", Some(&[("parent", "c/a")]));
        gives(list, "/p/results/results", Some(&[("parent", "results")]));
        gives(list, "/p/a/results/b/results", None);
        gives(list, "/p/results", None);
        gives(list, "/p//results", None);
        gives(list, "/p/ci/results/", None);
        gives(list, "/p/ci", None);
        let get = "/p/{r.name=*/results/*/records/*}";
        gives(
            get,
            "/p/ci/results/a/records/b",
            Some(&[("r.name", "ci/results/a/records/b")]),
        );
        gives(
            get,
            "/p/c/1/ns/ci/results/a/records/b",
            Some(&[("r.name", "c/1/ns/ci/results/a/records/b")]),
        );
        gives(get, "/p/ci/results/a/records/b/records/c", None);
        gives("/v/{id}", "/v/7", Some(&[("id", "7")]));
        gives("/v", "/v/7", None);
    }

    #[test]
    fn one_segment_means_one_where_the_dialect_says_so() {
        let template = Template::parse("/p/{parent=*}/results").unwrap();
        let path = ["p", "c", "a", "results"].map(str::to_owned);
        assert_eq!(template.matches(&path, First::Segment), None);
        assert!(template.matches(&path, First::Segments).is_some());
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in ["p", "/{a", "/{a=**}", "/a:cancel", "//a", "/{a=*}b"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
