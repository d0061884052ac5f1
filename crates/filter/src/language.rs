//! The languages that rows can be selected in. All of them end in the same typed expression, so
//! that columns, evaluation, explanation and page tokens know only one.

use std::{fmt, str::FromStr, sync::Arc};

use super::{
    Filter,
    cost::CostBudget,
    error::FilterError,
    expr::{Expr, ExprKind},
    lower, parse,
    reads::Reads,
    selector,
    types::Type,
    value::Value,
};
use crate::model::Resource;

/// A language of filters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// The Common Expression Language, with the variables that docs/filters.md lists.
    #[default]
    Cel,
    /// Kubernetes label selectors, as `kubectl -l` takes them.
    Labels,
    /// Kubernetes field selectors, as `kubectl --field-selector` takes them.
    Fields,
}

/// A text that names no language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no language of filters; want `cel`, `labels` or `fields`")]
pub struct UnknownLanguage(String);

impl Language {
    /// Every language, in the order in which refusals name them.
    pub const ALL: [Self; 3] = [Self::Cel, Self::Labels, Self::Fields];

    /// Its name in settings and requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cel => "cel",
            Self::Labels => "labels",
            Self::Fields => "fields",
        }
    }

    /// What `text`, which is not blank, selects.
    fn read(
        self,
        text: &str,
        resource: Resource,
        budget: &mut CostBudget,
    ) -> Result<Expr, FilterError> {
        match self {
            Self::Cel => {
                let tree = parse::parse(text, budget)?;
                lower::lower(&tree, resource, budget).map_err(|problem| problem.in_meaning(text))
            }
            Self::Labels => selector::labels(text, resource, budget),
            Self::Fields => selector::fields(text, resource, budget),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|language| language.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownLanguage(text.to_owned()))
    }
}

/// Everything that selects rows in one request; all of it must hold. Blank texts select every
/// row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// The filter, written in `language`.
    pub filter: &'a str,
    /// The language of the filter.
    pub language: Language,
    /// A label selector, as `kubectl -l` takes it.
    pub labels: &'a str,
    /// A field selector, as `kubectl --field-selector` takes it.
    pub fields: &'a str,
}

impl Selection<'_> {
    fn texts(&self) -> [(Language, &str); 3] {
        [
            (self.language, self.filter.trim()),
            (Language::Labels, self.labels.trim()),
            (Language::Fields, self.fields.trim()),
        ]
    }
}

impl Filter {
    /// Reads what a request selects rows by, as [`Filter::select_within`] does at the expense of a
    /// budget of its own.
    ///
    /// # Errors
    /// The same as [`Filter::select_within`].
    pub fn select(selection: &Selection<'_>, resource: Resource) -> Result<Self, FilterError> {
        Self::select_within(selection, resource, &mut CostBudget::default())
    }

    /// Reads what a request selects rows by, at the expense of `budget`.
    ///
    /// # Errors
    /// If one of its texts is not written in its language, makes no sense on `resource`, or costs
    /// too much.
    pub fn select_within(
        selection: &Selection<'_>,
        resource: Resource,
        budget: &mut CostBudget,
    ) -> Result<Self, FilterError> {
        let texts = selection.texts();
        let given = texts.iter().filter(|(_, text)| !text.is_empty());
        let expr = given.clone().try_fold(None, |so_far, (language, text)| {
            let expr = language.read(text, resource, budget)?;
            Ok(Some(match so_far {
                None => expr,
                Some(so_far) => Expr::new(Type::Bool, ExprKind::And(Box::new([so_far, expr]))),
            }))
        })?;
        let always = || Expr::new(Type::Bool, ExprKind::Const(Value::Bool(true)));
        // One text of CEL stands for itself; what else there is cannot be mistaken for it,
        // because no filter has a U+0000 outside of quotes and none begins with one.
        let parts: Vec<_> = given.collect();
        let text = match parts[..] {
            [] => String::new(),
            [(Language::Cel, text)] => (*text).to_owned(),
            _ => parts.iter().fold(String::new(), |all, (language, text)| {
                format!("{all}\0{language}:{}:{text}", text.len())
            }),
        };
        let expr = expr.unwrap_or_else(always);
        Ok(Self {
            text,
            reads: Arc::new(Reads::of(&expr)),
            expr,
        })
    }
}
