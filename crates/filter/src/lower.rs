//! From syntax to meaning: names are looked up, types are checked, constants are worked out.
//!
//! Everything that can be known to be wrong before a row is seen is refused here, with the
//! place and a remedy. What depends on the row is left to be unknown there.

mod call;
mod macros;
mod member;

use super::{
    cost::CostBudget,
    error::{Miss, Problem},
    eval,
    expr::{Comparison, Expr, ExprKind, Field, Function},
    fields,
    split::column,
    syntax::{Kind, Literal, Node, Operator},
    types::Type,
    value::{Shared, Value},
};
use crate::model::Resource;

type Lowered = Result<Expr, Problem>;

/// Gives `tree` its meaning on rows of `resource`. It must be a test.
pub(super) fn lower(tree: &Node, resource: Resource, budget: &mut CostBudget) -> Lowered {
    let expr = expression(tree, resource, budget)?;
    if expr.ty != Type::Bool && !expr.ty.is_dyn() {
        let what = format!(
            "a filter must be true or false, but {} is {}",
            spell(tree),
            expr.ty
        );
        return Err(Problem::new(start(tree), what + advice_for_test(&expr.ty)));
    }
    Ok(expr)
}

/// Gives `tree` its meaning on rows of `resource`, whatever it is.
pub(super) fn expression(tree: &Node, resource: Resource, budget: &mut CostBudget) -> Lowered {
    let mut lowering = Lowering {
        resource,
        budget,
        scope: Vec::new(),
    };
    lowering.expr(tree)
}

fn advice_for_test(ty: &Type) -> &'static str {
    match ty {
        Type::Text => "; compare it, as in `== \"...\"`",
        Type::Time => "; compare it, as in `> timestamp(\"2026-01-02T03:04:05Z\")`",
        Type::List(_) | Type::Map(_) => "; ask for its elements, as in `.size() > 0`",
        _ => "; compare it",
    }
}

struct Lowering<'b> {
    resource: Resource,
    /// What working out constants and compiling patterns is charged to.
    budget: &'b mut CostBudget,
    /// The variables of the macros around, outermost first.
    scope: Vec<(String, Type)>,
}

impl Lowering<'_> {
    fn expr(&mut self, node: &Node) -> Lowered {
        let expr = match &node.kind {
            Kind::Literal(literal) => return Ok(constant(literal)),
            Kind::Name(name) => return self.name(node, name),
            Kind::Select(of, field) => self.select(node, of, field)?,
            Kind::Index(of, index) => self.index(node, of, index)?,
            Kind::Call { of, name, args } => self.call(node, of.as_deref(), name, args)?,
            Kind::Not(of) => {
                let test = self.test(of, "!")?;
                Expr::new(Type::Bool, ExprKind::Not(Box::new(test)))
            }
            Kind::Negate(of) => {
                let expr = self.expr(of)?;
                if !matches!(expr.ty, Type::Int | Type::Double) && !expr.ty.is_dyn() {
                    let what = format!("{} is {}, so it has no `-`", spell(of), expr.ty);
                    return Err(Problem::new(node.at, what));
                }
                Expr::new(plain(&expr.ty), ExprKind::Negate(Box::new(expr)))
            }
            Kind::If(three) => self.choice(three)?,
            Kind::Binary(operator, pair) => self.binary(node, *operator, pair)?,
            Kind::List(items) => {
                let items: Vec<_> = items
                    .iter()
                    .map(|item| self.value(item))
                    .collect::<Result<_, _>>()?;
                let of = common(items.iter().map(|item| &item.ty));
                Expr::new(Type::List(Box::new(of)), ExprKind::List(items))
            }
            Kind::Map(entries) => self.map(entries)?,
        };
        self.folded(node, expr)
    }

    /// An expression that has a value of its own.
    fn value(&mut self, node: &Node) -> Lowered {
        let expr = self.expr(node)?;
        if expr.ty == Type::Summary {
            let what = "`summary` is a group of fields; name one, such as `summary.status`";
            return Err(Problem::new(node.at, what));
        }
        Ok(expr)
    }

    fn test(&mut self, node: &Node, operator: &str) -> Lowered {
        let expr = self.value(node)?;
        if expr.ty == Type::Bool || expr.ty.is_dyn() {
            return Ok(expr);
        }
        let what = format!(
            "`{operator}` wants tests, but {} is {}",
            spell(node),
            expr.ty
        );
        Err(Problem::new(start(node), what + advice_for_test(&expr.ty)))
    }

    fn name(&self, node: &Node, name: &str) -> Lowered {
        if let Some(slot) = self.scope.iter().rposition(|(known, _)| known == name) {
            return Ok(Expr::new(self.scope[slot].1.clone(), ExprKind::Local(slot)));
        }
        if let Some((ty, kind)) = fields::name(self.resource, name) {
            return Ok(Expr::new(ty, kind));
        }
        let (here, other, there) = match self.resource {
            Resource::Results => ("results", Resource::Records, "records"),
            Resource::Records => ("records", Resource::Results, "results"),
        };
        if fields::name(other, name).is_some() {
            let names = listed(fields::variables(self.resource));
            let what = format!("`{name}` is a variable of {there}; those of {here} are {names}");
            return Err(Problem::new(node.at, what));
        }
        let known = self.scope.iter().map(|(name, _)| name.as_str());
        let advice =
            match fields::nearest(name, fields::names(self.resource).into_iter().chain(known)) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!(
                    "the names here are {}",
                    listed(fields::variables(self.resource))
                ),
            };
        Err(Problem::new(
            node.at,
            format!("unknown name `{}`; {advice}", short(name)),
        ))
    }

    fn choice(&mut self, three: &[Node; 3]) -> Lowered {
        let condition = self.test(&three[0], "? :")?;
        let then = self.value(&three[1])?;
        let otherwise = self.value(&three[2])?;
        let ty = then.ty.clone().join(otherwise.ty.clone());
        Ok(Expr::new(
            ty,
            ExprKind::If(Box::new([condition, then, otherwise])),
        ))
    }

    fn map(&mut self, entries: &[(Node, Node)]) -> Lowered {
        let mut lowered = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            lowered.push((self.value(key)?, self.value(value)?));
        }
        let ty = match lowered.iter().all(|(key, _)| key.ty == Type::Text) {
            true => Type::Map(Box::new(common(lowered.iter().map(|(_, value)| &value.ty)))),
            false => Type::Dyn,
        };
        Ok(Expr::new(ty, ExprKind::Map(lowered)))
    }

    fn binary(&mut self, node: &Node, operator: Operator, pair: &[Node; 2]) -> Lowered {
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
    fn folded(&mut self, node: &Node, expr: Expr) -> Lowered {
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
    if !matches!(other.kind, ExprKind::Field(Field::SummaryStatus)) {
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

fn mismatch(node: &Node, operator: Operator, pair: &[Node; 2], a: &Type, b: &Type) -> Problem {
    let sign = operator.text();
    let what = match (a, b) {
        (Type::Summary, _) | (_, Type::Summary) => {
            "`summary` is a group of fields; name one, such as `summary.status`".to_owned()
        }
        (Type::Time, Type::Text) | (Type::Text, Type::Time) => {
            let (field, text) = if *a == Type::Time { (0, 1) } else { (1, 0) };
            format!(
                "{} is a timestamp; write the other side as `timestamp({})`",
                spell(&pair[field]),
                match &pair[text].kind {
                    Kind::Literal(Literal::Text(text)) => format!("\"{}\"", short(text)),
                    _ => "...".to_owned(),
                }
            )
        }
        (a, b) if a == b => format!("{} is {a}, so it has no `{sign}`", spell(&pair[0])),
        (a, Type::Null) => format!("{} is {a}, so it has no `{sign} null`", spell(&pair[0])),
        (Type::Text, b) if b.is_number() => {
            let number = path(&pair[1]).unwrap_or_else(|| "...".to_owned());
            format!(
                "{} is text; put the number in quotes, `\"{number}\"`",
                spell(&pair[0])
            )
        }
        (a, b) => {
            format!(
                "{} is {a} and cannot be compared with {b} by `{sign}`",
                spell(&pair[0])
            )
        }
    };
    Problem::new(node.at, what)
}

fn constant(literal: &Literal) -> Expr {
    let (ty, value) = match literal {
        Literal::Null => (Type::Null, Value::Null),
        Literal::Bool(value) => (Type::Bool, Value::Bool(*value)),
        Literal::Int(value) => (Type::Int, Value::Int(*value)),
        Literal::Uint(value) => (Type::Uint, Value::Uint(*value)),
        Literal::Double(value) => (Type::Double, Value::Double(*value)),
        Literal::Text(value) => (Type::Text, Value::Text(Shared::own(value.as_str()))),
        Literal::Bytes(value) => (Type::Bytes, Value::Bytes(Shared::own(value.as_slice()))),
    };
    Expr::new(ty, ExprKind::Const(value))
}

/// The type of every element.
fn common<'t>(types: impl Iterator<Item = &'t Type>) -> Type {
    types.cloned().reduce(Type::join).unwrap_or(Type::Dyn)
}

/// The same type, without the spelling of fields.
fn plain(ty: &Type) -> Type {
    if ty.is_dyn() { Type::Dyn } else { ty.clone() }
}

/// A part of the filter as it was written, for errors.
fn spell(node: &Node) -> String {
    path(node).map_or_else(|| "this".to_owned(), |path| format!("`{}`", short(&path)))
}

fn path(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Name(name) => Some(name.clone()),
        Kind::Select(of, field) => Some(format!("{}.{field}", path(of)?)),
        Kind::Index(of, index) => Some(format!("{}[{}]", path(of)?, path(index)?)),
        Kind::Literal(Literal::Text(text)) => Some(format!("\"{text}\"")),
        Kind::Literal(Literal::Int(number)) => Some(number.to_string()),
        Kind::Literal(Literal::Bool(truth)) => Some(truth.to_string()),
        Kind::Literal(Literal::Null) => Some("null".to_owned()),
        Kind::Call {
            of: Some(of), name, ..
        } => Some(format!("{}.{name}()", path(of)?)),
        Kind::Call { of: None, name, .. } => Some(format!("{name}()")),
        _ => None,
    }
}

/// Where the text of a part begins.
fn start(node: &Node) -> usize {
    match &node.kind {
        Kind::Select(of, _) | Kind::Index(of, _) => start(of),
        Kind::Call { of: Some(of), .. } => start(of),
        Kind::Binary(_, pair) => start(&pair[0]),
        Kind::If(three) => start(&three[0]),
        _ => node.at,
    }
}

/// Enough of a text that came from outside to be recognized.
fn short(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(60).collect();
    if chars.next().is_some() {
        head + "..."
    } else {
        head
    }
}

/// `a`, `b` and `c`.
fn listed(names: Vec<&str>) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Whether `expr` is a field of the payload that is kept as text, so that it is never JSON to
/// be searched.
fn is_text_field(expr: &Expr) -> bool {
    column::of(expr).is_some_and(|found| found.kind == column::Kind::Text)
}

/// The function that `.contains` is on `of`.
fn containing(of: &Expr) -> Function {
    match of.ty == Type::Text || is_text_field(of) {
        true => Function::ContainsText,
        false => Function::Contains,
    }
}
