//! Which expressions are columns.

use crate::{
    condition::{Column, ObjectField},
    expr::{Expr, ExprKind, Field},
    syntax::Operator,
    value::Value,
};

/// A column that an expression is.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) column: Column,
    pub(crate) kind: Kind,
    /// It comes from a payload, so that the expression may have a value of another type, for
    /// which the column is empty.
    pub(crate) json: bool,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Time,
    Int,
    Duration,
}

/// The column that holds the values of `expr`, if there is one.
pub(crate) fn of(expr: &Expr) -> Option<Found> {
    match &expr.kind {
        ExprKind::Field(field) => of_field(*field),
        ExprKind::Member(of, key) => of_member(of, key),
        ExprKind::Arithmetic(Operator::Subtract, pair) => of_difference(pair),
        _ => None,
    }
}

/// The column of the time from start to completion.
fn of_difference([end, start]: &[Expr; 2]) -> Option<Found> {
    if let (ExprKind::Field(Field::RunEndTime), ExprKind::Field(Field::RunStartTime)) =
        (&end.kind, &start.kind)
    {
        return Some(Found {
            column: Column::Duration,
            kind: Kind::Duration,
            json: true,
        });
    }
    let is = |expr, field| of(expr).is_some_and(|found| found.column == Column::Object(field));
    let both = is(end, ObjectField::CompletionTime) && is(start, ObjectField::StartTime);
    // A row is of one kind: of two, the difference is unknown.
    let of_two_kinds = required_alias(end)
        .zip(required_alias(start))
        .is_some_and(|(end, start)| end != start);
    (both && !of_two_kinds).then_some(Found {
        column: Column::ObjectDuration,
        kind: Kind::Duration,
        json: true,
    })
}

/// The column that `expr` is, on rows of every kind.
pub(crate) fn whole(expr: &Expr) -> Option<Found> {
    match required_alias(expr) {
        Some(_of_one_kind) => None,
        None => of(expr),
    }
}

/// The column of a field of the resource.
pub(super) fn of_field(field: Field) -> Option<Found> {
    let (column, kind) = match field {
        Field::Parent => (Column::Parent, Kind::Text),
        Field::Uid => (Column::Uid, Kind::Text),
        Field::CreateTime => (Column::CreateTime, Kind::Time),
        Field::UpdateTime => (Column::UpdateTime, Kind::Time),
        Field::SummaryRecord => (Column::SummaryRecord, Kind::Text),
        Field::SummaryType => (Column::SummaryType, Kind::Text),
        Field::SummaryStartTime => (Column::SummaryStartTime, Kind::Time),
        Field::SummaryEndTime => (Column::SummaryEndTime, Kind::Time),
        Field::SummaryStatus => (Column::SummaryStatus, Kind::Int),
        Field::ResultName => (Column::ResultId, Kind::Text),
        Field::Name => (Column::RecordName, Kind::Text),
        Field::DataType => (Column::DataType, Kind::Text),
        Field::RunOutcome => (Column::Outcome, Kind::Int),
        Field::Tier => (Column::Tier, Kind::Text),
        Field::RunCluster => (Column::Cluster, Kind::Text),
        Field::RunPipeline => (Column::Pipeline, Kind::Text),
        Field::RunTask => (Column::Object(ObjectField::TaskRef), Kind::Text),
        Field::RunReason => (Column::Reason, Kind::Text),
        Field::RunPhase => (Column::Object(ObjectField::Phase), Kind::Text),
        Field::RunStartTime => (Column::Began, Kind::Time),
        Field::RunEndTime => (Column::Ended, Kind::Time),
        Field::RunSignature => (Column::Signature, Kind::Text),
        Field::Annotations
        | Field::Summary
        | Field::SummaryAnnotations
        | Field::Run
        | Field::RunLabels => return None,
    };
    Some(Found {
        column,
        kind,
        json: false,
    })
}

/// The column of `of.key`.
pub(super) fn of_member(of: &Expr, key: &str) -> Option<Found> {
    let texts = |column| {
        Some(Found {
            column,
            kind: Kind::Text,
            json: false,
        })
    };
    match &of.kind {
        ExprKind::Field(Field::Annotations) => return texts(Column::Annotation(key.to_owned())),
        ExprKind::Field(Field::SummaryAnnotations) => {
            return texts(Column::SummaryAnnotation(key.to_owned()));
        }
        ExprKind::Field(Field::RunLabels) => return texts(Column::Label(key.to_owned())),
        _ => {}
    }
    let mut path = payload_path(of)?;
    if is_labels(of) {
        let column = Column::Label(key.to_owned());
        return Some(Found {
            column,
            kind: Kind::Text,
            json: true,
        });
    }
    path.push(Step::Key(key));
    let field = ObjectField::ALL
        .into_iter()
        .find(|field| is_at(*field, &path))?;
    let kind = if field.is_time() {
        Kind::Time
    } else {
        Kind::Text
    };
    Some(Found {
        column: Column::Object(field),
        kind,
        json: true,
    })
}

/// Whether `expr` is `metadata.labels` of the payload.
pub(super) fn is_labels(expr: &Expr) -> bool {
    payload_path(expr).is_some_and(|path| path == [Step::Key("metadata"), Step::Key("labels")])
}

#[derive(Debug, PartialEq)]
enum Step<'e> {
    Key(&'e str),
    At(i64),
}

/// The steps from the payload's root to `expr`.
fn payload_path(expr: &Expr) -> Option<Vec<Step<'_>>> {
    match &expr.kind {
        ExprKind::Data | ExprKind::Alias(_) => Some(Vec::new()),
        ExprKind::Member(of, key) => {
            let mut path = payload_path(of)?;
            path.push(Step::Key(key));
            Some(path)
        }
        ExprKind::Index(of, index) => {
            let mut path = payload_path(of)?;
            let Some(Value::Int(index)) = index.constant() else {
                return None;
            };
            path.push(Step::At(*index));
            Some(path)
        }
        _ => None,
    }
}

fn is_at(field: ObjectField, path: &[Step<'_>]) -> bool {
    let steps = field
        .pointer()
        .split('/')
        .skip(1)
        .map(|part| match part.parse() {
            Ok(index) => Step::At(index),
            Err(_not_a_number) => Step::Key(part),
        });
    steps.eq(path.iter().map(|step| match step {
        Step::Key(key) => Step::Key(key),
        Step::At(index) => Step::At(*index),
    }))
}

/// The alias without whose kind `expr` is unknown, whatever else it is made of.
pub(super) fn required_alias(expr: &Expr) -> Option<&'static str> {
    match &expr.kind {
        ExprKind::Alias(alias) => Some(alias),
        ExprKind::Member(of, _) | ExprKind::Has(of, _) | ExprKind::Negate(of) => required_alias(of),
        ExprKind::Index(of, index) => required_alias(of).or_else(|| required_alias(index)),
        ExprKind::Compare(_, pair) | ExprKind::In(pair) | ExprKind::Arithmetic(_, pair) => {
            pair.iter().find_map(required_alias)
        }
        ExprKind::Call(_, args) | ExprKind::List(args) => args.iter().find_map(required_alias),
        ExprKind::Macro(of) => required_alias(&of.range),
        _ => None,
    }
}
