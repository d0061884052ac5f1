//! A filter after its names and types are known. What the evaluator runs and what `split` reads.

use super::{pattern::Pattern, syntax::Operator, types::Type, value::Value};

#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) ty: Type,
    pub(super) kind: ExprKind,
}

#[derive(Debug, Clone)]
pub(super) enum ExprKind {
    Const(Value<'static>),
    Field(Field),
    /// The JSON of the record's payload.
    Data,
    /// The same, if the record is of a kind that filters call so.
    Alias(&'static str),
    /// A variable of a macro, counted from the outermost.
    Local(usize),
    /// A member of an object: `of.key`, or `of["key"]`.
    Member(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Has(Box<Expr>, String),
    HasField(Field),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    And(Box<[Expr; 2]>),
    Or(Box<[Expr; 2]>),
    If(Box<[Expr; 3]>),
    Compare(Comparison, Box<[Expr; 2]>),
    In(Box<[Expr; 2]>),
    Arithmetic(Operator, Box<[Expr; 2]>),
    Call(Function, Vec<Expr>),
    Macro(Box<Macro>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    /// What `b ? a` must be for `a self b`.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::AtMost => Self::AtLeast,
            Self::Greater => Self::Less,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }
}

/// A field of the resource itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Parent,
    Uid,
    CreateTime,
    UpdateTime,
    Annotations,
    Summary,
    SummaryRecord,
    SummaryType,
    SummaryStartTime,
    SummaryEndTime,
    SummaryStatus,
    SummaryAnnotations,
    /// The last part of the result's name; compared with a text that has a `/`, the whole name.
    ResultName,
    /// The record's full name; compared with a text that has no `/`, its last part.
    Name,
    DataType,
    /// What is kept of a run beside its record; of other records there is none.
    Run,
    /// The tier that the record is kept in.
    Tier,
    /// The cluster that the parent names.
    RunCluster,
    RunOutcome,
    RunPipeline,
    RunTask,
    RunReason,
    RunPhase,
    RunStartTime,
    RunEndTime,
    RunLabels,
    RunSignature,
}

impl Field {
    /// Whether it is read from the payload, where no column is at hand.
    fn is_of_payload(self) -> bool {
        matches!(
            self,
            Self::Run
                | Self::RunOutcome
                | Self::RunPipeline
                | Self::RunTask
                | Self::RunReason
                | Self::RunPhase
                | Self::RunStartTime
                | Self::RunEndTime
                | Self::RunLabels
                | Self::RunSignature
        )
    }
}

/// A function, after its overload is chosen as far as types allow. The receiver, if it was
/// called on one, is the first argument.
#[derive(Debug, Clone)]
pub(super) enum Function {
    Size,
    Int,
    Uint,
    Double,
    Text,
    Bool,
    Bytes,
    Dyn,
    Type,
    Timestamp,
    Duration,
    /// Of text only: fields that are known to be text are never searched as JSON.
    ContainsText,
    Contains,
    StartsWith,
    EndsWith,
    /// With a pattern that was compiled already.
    MatchesRegex(Pattern),
    Matches,
    LowerAscii,
    UpperAscii,
    Trim,
    Split,
    Replace,
    Substring,
    IndexOf,
    LastIndexOf,
    CharAt,
    Join,
    Get(TimePart),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimePart {
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

#[derive(Debug, Clone)]
pub(super) struct Macro {
    pub(super) of: MacroKind,
    /// What it goes over.
    pub(super) range: Expr,
    /// The number of its first variable.
    pub(super) slot: usize,
    /// One variable (elements of lists, keys of maps) or two (index and element, key and value).
    pub(super) variables: usize,
    /// The test; of `map`, which elements to take.
    pub(super) test: Option<Expr>,
    /// What `map` makes of an element.
    pub(super) make: Option<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MacroKind {
    Exists,
    All,
    ExistsOne,
    Filter,
    Map,
}

impl Expr {
    pub(super) fn new(ty: Type, kind: ExprKind) -> Self {
        Self { ty, kind }
    }

    pub(super) fn constant(&self) -> Option<&Value<'static>> {
        match &self.kind {
            ExprKind::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Whether judging a row needs the record's payload.
    pub(super) fn needs_body(&self) -> bool {
        matches!(self.kind, ExprKind::Data | ExprKind::Alias(_))
            || self.is_of_run()
            || self.parts().into_iter().any(Expr::needs_body)
    }

    /// Whether it is a field that is worked out from the whole payload.
    pub(super) fn is_of_run(&self) -> bool {
        match self.kind {
            ExprKind::Field(field) | ExprKind::HasField(field) => field.is_of_payload(),
            _ => false,
        }
    }

    /// The expressions that this one is made of.
    pub(super) fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Const(_)
            | ExprKind::Field(_)
            | ExprKind::HasField(_)
            | ExprKind::Data
            | ExprKind::Alias(_)
            | ExprKind::Local(_) => Vec::new(),
            ExprKind::Member(of, _)
            | ExprKind::Has(of, _)
            | ExprKind::Not(of)
            | ExprKind::Negate(of) => vec![of],
            ExprKind::Index(of, index) => vec![of, index],
            ExprKind::And(pair)
            | ExprKind::Or(pair)
            | ExprKind::Compare(_, pair)
            | ExprKind::In(pair)
            | ExprKind::Arithmetic(_, pair) => pair.iter().collect(),
            ExprKind::If(three) => three.iter().collect(),
            ExprKind::Call(_, args) | ExprKind::List(args) => args.iter().collect(),
            ExprKind::Map(entries) => entries.iter().flat_map(|(k, v)| [k, v]).collect(),
            ExprKind::Macro(of) => {
                let mut parts = vec![&of.range];
                parts.extend(&of.test);
                parts.extend(&of.make);
                parts
            }
        }
    }
}
