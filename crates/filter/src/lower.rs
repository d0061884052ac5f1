//! From syntax to meaning: names are looked up, types are checked, constants are worked out.
//!
//! Everything that can be known to be wrong before a row is seen is refused here, with the
//! place and a remedy. What depends on the row is left to be unknown there.

mod binary;
mod call;
mod macros;
mod member;
mod told;

use super::{
    cost::CostBudget,
    error::Problem,
    expr::{Expr, ExprKind, Function},
    fields,
    split::column,
    syntax::{Kind, Literal, Node},
    types::Type,
    value::{Shared, Value},
};
use crate::model::Resource;
use told::{listed, plain, short, spell, start};

type Lowered = Result<Expr, Problem>;
/// Variables and their types, in the order of their numbers.
type Scope = Vec<(String, Type)>;

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
    let resource = Some(resource);
    let mut lowering = Lowering {
        resource,
        budget,
        scope: Vec::new(),
    };
    lowering.expr(tree)
}

/// Gives `tree` its meaning over the variables in `scope`, whatever it is.
pub(super) fn over(tree: &Node, scope: Scope, budget: &mut CostBudget) -> Lowered {
    let mut lowering = Lowering {
        resource: None,
        budget,
        scope,
    };
    lowering.value(tree)
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
    /// What rows are of; none if there are only variables.
    resource: Option<Resource>,
    /// What working out constants and compiling patterns is charged to.
    budget: &'b mut CostBudget,
    /// The variables, those of the macros around last and outermost first.
    scope: Scope,
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
        if let Type::Group(group) = expr.ty {
            return Err(Problem::new(node.at, told::group_named(group)));
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
        let other = match self.resource {
            Some(Resource::Results) => Some(("results", Resource::Records, "records")),
            Some(Resource::Records) => Some(("records", Resource::Results, "results")),
            None => None,
        };
        let in_scope = self.scope.iter().map(|(name, _)| name.as_str());
        let (variables, names) = match self.resource {
            Some(resource) => (fields::variables(resource), fields::names(resource)),
            None => (in_scope.clone().collect(), Vec::new()),
        };
        if let Some((here, other, there)) = other
            && fields::name(Some(other), name).is_some()
        {
            let names = listed(variables);
            let what = format!("`{name}` is a variable of {there}; those of {here} are {names}");
            return Err(Problem::new(node.at, what));
        }
        let advice = match fields::nearest(name, names.into_iter().chain(in_scope)) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("the names here are {}", listed(variables)),
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

/// The function that `.contains` is on `of`.
fn containing(of: &Expr) -> Function {
    match of.ty == Type::Text || is_text_field(of) {
        true => Function::ContainsText,
        false => Function::Contains,
    }
}

/// Whether `expr` is a field of the payload that is kept as text, so that it is never JSON to
/// be searched.
fn is_text_field(expr: &Expr) -> bool {
    column::of(expr).is_some_and(|found| found.kind == column::Kind::Text)
}
