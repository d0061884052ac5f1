//! Operators of two sides, and whether they go together.

use super::{Lowered, Lowering, call, common};
use crate::{
    error::{Miss, Problem},
    eval,
    expr::{Comparison, Expr, ExprKind, Field},
    fields,
    lower::told::{listed, mismatch, short, spell},
    syntax::{Kind, Node, Operator},
    types::Type,
    value::Value,
};

impl Lowering<'_> {
    pub(super) fn binary(&mut self, node: &Node, operator: Operator, pair: &[Node; 2]) -> Lowered {
        let comparison = match operator {
            Operator::And | Operator::Or => {
                let left = self.test(&pair[0], operator.text())?;
                let right = self.test(&pair[1], operator.text())?;
                let pair = Box::new([left, right]);
                let kind = match operator {
                    Operator::And => ExprKind::And(pair),
                    _ => ExprKind::Or(pair),
                };
                return Ok(Expr::new(Type::Bool, kind));
            }
            Operator::In => return self.contained(node, pair),
            Operator::Equal => Comparison::Equal,
            Operator::NotEqual => Comparison::NotEqual,
            Operator::Less => Comparison::Less,
            Operator::AtMost => Comparison::AtMost,
            Operator::Greater => Comparison::Greater,
            Operator::AtLeast => Comparison::AtLeast,
            _ => {
                let (left, right) = (self.value(&pair[0])?, self.value(&pair[1])?);
                let Some(ty) = left.ty.combined(operator, &right.ty) else {
                    let what = format!(
                        "`{}` does not combine {} with {}",
                        operator.text(),
                        left.ty,
                        right.ty
                    );
                    return Err(Problem::new(node.at, what));
                };
                return Ok(Expr::new(
                    ty,
                    ExprKind::Arithmetic(operator, Box::new([left, right])),
                ));
            }
        };
        let (left, right) = (self.expr(&pair[0])?, self.expr(&pair[1])?);
        let left = status_of_text(left, &right, &pair[0])?;
        let right = status_of_text(right, &left, &pair[1])?;
        let fits = match comparison {
            Comparison::Equal | Comparison::NotEqual => left.ty.equals(&right.ty),
            _ => left.ty.orders(&right.ty),
        };
        if !fits {
            return Err(mismatch(node, operator, pair, &left.ty, &right.ty));
        }
        Ok(Expr::new(
            Type::Bool,
            ExprKind::Compare(comparison, Box::new([left, right])),
        ))
    }

    fn contained(&mut self, node: &Node, pair: &[Node; 2]) -> Lowered {
        let needle = self.value(&pair[0])?;
        let haystack = match &pair[1].kind {
            Kind::List(items) => {
                let mut elements = Vec::with_capacity(items.len());
                for item in items {
                    let element = status_of_text(self.value(item)?, &needle, item)?;
                    if !needle.ty.equals(&element.ty) {
                        let what = format!(
                            "{} is {}, so it is never {}",
                            spell(&pair[0]),
                            needle.ty,
                            element.ty
                        );
                        return Err(Problem::new(item.at, what));
                    }
                    elements.push(element);
                }
                let of = common(elements.iter().map(|item| &item.ty));
                let list = Expr::new(Type::List(Box::new(of)), ExprKind::List(elements));
                self.folded(&pair[1], list)?
            }
            _ => self.value(&pair[1])?,
        };
        let wrong = match &haystack.ty {
            Type::List(of) if !needle.ty.equals(of) => {
                format!("is a list, none of whose elements is {}", needle.ty)
            }
            Type::Map(_) if !needle.ty.may_be(&Type::Text) => {
                format!("is a map, none of whose keys is {}", needle.ty)
            }
            Type::List(_) | Type::Map(_) | Type::Dyn | Type::Object => String::new(),
            Type::Text => "is text, but `in` wants a list or a map; for a part of a text write \
                           `.contains(\"...\")`"
                .to_owned(),
            ty => format!("is {ty}, but `in` wants a list such as `[\"a\", \"b\"]`, or a map"),
        };
        if !wrong.is_empty() {
            return Err(Problem::new(
                node.at,
                format!("{} {wrong}", spell(&pair[1])),
            ));
        }
        Ok(Expr::new(
            Type::Bool,
            ExprKind::In(Box::new([needle, haystack])),
        ))
    }

    /// Works out what does not depend on the row. A conversion that must fail is a problem now.
    pub(super) fn folded(&mut self, node: &Node, expr: Expr) -> Lowered {
        let foldable = !matches!(
            &expr.kind,
            ExprKind::Macro(_)
                | ExprKind::Field(_)
                | ExprKind::HasField(_)
                | ExprKind::Data
                | ExprKind::Alias(_)
                | ExprKind::Local(_)
        ) && expr.parts().iter().all(|part| part.constant().is_some());
        if !foldable {
            return Ok(expr);
        }
        let value = match eval::constant(&expr, &mut self.budget.meter) {
            Ok(value) => {
                self.budget.keep(&value, node.at)?;
                value.owned()
            }
            Err(Miss::Unknown) => match call::conversion_problem(&expr) {
                Some(what) => return Err(Problem::new(node.at, what)),
                None => None,
            },
            Err(Miss::Budget) => return Err(self.budget.refused(node.at)),
        };
        Ok(match value {
            Some(value) => Expr::new(expr.ty, ExprKind::Const(value)),
            None => expr,
        })
    }
}

/// A status that was written as text becomes its number, if it is compared with a status.
fn status_of_text(expr: Expr, other: &Expr, node: &Node) -> Lowered {
    if !matches!(
        other.kind,
        ExprKind::Field(Field::SummaryStatus | Field::RunOutcome)
    ) {
        return Ok(expr);
    }
    let Some(Value::Text(name)) = expr.constant() else {
        return Ok(expr);
    };
    match fields::status(name) {
        Some(number) => Ok(Expr::new(Type::Int, ExprKind::Const(Value::Int(number)))),
        None => {
            let names = listed(fields::STATUSES.iter().map(|&(name, _)| name).collect());
            let what = format!("unknown status `{}`; want one of {names}", short(name));
            Err(Problem::new(node.at, what))
        }
    }
}
