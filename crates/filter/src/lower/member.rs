//! Fields and elements: `a.b`, `a["b"]`, `a[0]`, `has(a.b)`.

use super::{Lowered, Lowering, listed, short, spell, told::path};
use crate::{
    error::Problem,
    expr::{Expr, ExprKind},
    fields,
    syntax::{Kind, Node},
    types::{Group, Type},
    value::Value,
};

impl Lowering<'_> {
    pub(super) fn select(&mut self, node: &Node, of: &Node, field: &str) -> Lowered {
        if let Some(constant) = self.dotted(node) {
            return Ok(constant);
        }
        let expr = self.expr(of)?;
        match &expr.ty {
            Type::Group(group) => {
                let field = group_field(*group, node, field)?;
                Ok(Expr::new(field.ty(), ExprKind::Field(field)))
            }
            Type::Map(values) => {
                let ty = values.as_ref().clone();
                Ok(Expr::new(
                    ty,
                    ExprKind::Member(Box::new(expr), field.to_owned()),
                ))
            }
            Type::Dyn => Ok(Expr::new(
                Type::Dyn,
                ExprKind::Member(Box::new(expr), field.to_owned()),
            )),
            Type::Object => {
                let key = object_key(&expr, field);
                Ok(Expr::new(
                    Type::Object,
                    ExprKind::Member(Box::new(expr), key),
                ))
            }
            ty => {
                let what = format!(
                    "{} is {ty}, so it has no field `{}`",
                    spell(of),
                    short(field)
                );
                Err(Problem::new(node.at, what))
            }
        }
    }

    /// A constant whose name has dots in it.
    fn dotted(&self, node: &Node) -> Option<Expr> {
        let mut root = node;
        while let Kind::Select(of, _) = &root.kind {
            root = of;
        }
        let Kind::Name(name) = &root.kind else {
            return None;
        };
        if self.scope.iter().any(|(known, _)| known == name) {
            return None;
        }
        let (ty, kind) = fields::name(self.resource, &path(node)?)?;
        Some(Expr::new(ty, kind))
    }

    pub(super) fn index(&mut self, node: &Node, of: &Node, index: &Node) -> Lowered {
        let expr = self.expr(of)?;
        let at = self.value(index)?;
        if let (Type::Group(group), Some(Value::Text(name))) = (&expr.ty, at.constant()) {
            let field = group_field(*group, node, name)?;
            return Ok(Expr::new(field.ty(), ExprKind::Field(field)));
        }
        let is_position = at.ty.is_number() || at.ty.is_dyn();
        let is_key = at.ty.may_be(&Type::Text);
        let (ty, fits) = match &expr.ty {
            Type::List(of) => (of.as_ref().clone(), is_position),
            Type::Map(of) => (of.as_ref().clone(), is_key),
            ty if ty.is_dyn() => (ty.clone(), is_position || is_key || expr_is_map(&expr)),
            ty => {
                let what = format!("{} is {ty}, so it has no elements", spell(of));
                return Err(Problem::new(node.at, what));
            }
        };
        if !fits {
            let wanted = match expr.ty {
                Type::List(_) => "a number",
                Type::Map(_) => "text",
                _ => "a number or text",
            };
            let what = format!("{} is chosen from by {wanted}, not by {}", spell(of), at.ty);
            return Err(Problem::new(index.at, what));
        }
        let kind = match at.constant() {
            Some(Value::Text(key)) => ExprKind::Member(Box::new(expr), key.to_string()),
            _ => ExprKind::Index(Box::new(expr), Box::new(at)),
        };
        Ok(Expr::new(ty, kind))
    }

    pub(super) fn has(&mut self, node: &Node, args: &[Node]) -> Lowered {
        let wanted = "`has` wants one field, as in `has(data.status.startTime)`";
        let [arg] = args else {
            return Err(Problem::new(node.at, wanted));
        };
        let (of, key, selected) = match &arg.kind {
            Kind::Select(of, field) => (of, field.clone(), true),
            Kind::Index(of, index) => {
                let index = self.value(index)?;
                let Some(Value::Text(key)) = index.constant() else {
                    return Err(Problem::new(arg.at, wanted));
                };
                (of, key.to_string(), false)
            }
            _ => return Err(Problem::new(arg.at, wanted)),
        };
        let expr = self.expr(of)?;
        let kind = match &expr.ty {
            Type::Group(group) => ExprKind::HasField(group_field(*group, arg, &key)?),
            Type::Object if selected => {
                let key = object_key(&expr, &key);
                ExprKind::Has(Box::new(expr), key)
            }
            Type::Map(_) | Type::Dyn | Type::Object => ExprKind::Has(Box::new(expr), key),
            ty => {
                let what = format!(
                    "{} is {ty}, so it has no field `{}`",
                    spell(of),
                    short(&key)
                );
                return Err(Problem::new(arg.at, what));
            }
        };
        Ok(Expr::new(Type::Bool, kind))
    }
}

/// A map literal whose keys are not all text has no type of its own.
fn expr_is_map(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Map(_) | ExprKind::Const(Value::Map(_)))
}

fn object_key(of: &Expr, field: &str) -> String {
    let parent = match &of.kind {
        ExprKind::Member(_, parent) => Some(parent.as_str()),
        _ => None,
    };
    fields::camel_case(parent, field)
}

fn group_field(group: Group, node: &Node, name: &str) -> Result<crate::expr::Field, Problem> {
    group.field(name).ok_or_else(|| {
        let advice = match fields::nearest(name, group.names()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("its fields are {}", listed(group.names().collect())),
        };
        let (group, name) = (group.name(), short(name));
        let what = format!("`{group}` has no field `{name}`; {advice}");
        Problem::new(node.at, what)
    })
}
