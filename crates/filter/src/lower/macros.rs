//! The macros that go over elements.

use super::{Lowered, Lowering, spell};
use crate::{
    error::Problem,
    expr::{Expr, ExprKind, Macro, MacroKind},
    syntax::{Kind, Node},
    types::Type,
};

/// The macro that is called so, if it is one.
pub(super) fn kind(name: &str) -> Option<MacroKind> {
    Some(match name {
        "exists" => MacroKind::Exists,
        "all" => MacroKind::All,
        "exists_one" | "existsOne" => MacroKind::ExistsOne,
        "filter" => MacroKind::Filter,
        "map" => MacroKind::Map,
        _ => return None,
    })
}

impl Lowering<'_> {
    pub(super) fn macro_over(
        &mut self,
        node: &Node,
        kind: MacroKind,
        of: &Node,
        args: &[Node],
    ) -> Lowered {
        let (variables, bodies) = match (kind, args) {
            (MacroKind::Map, [variable, test, make]) => (vec![variable], vec![test, make]),
            (MacroKind::Exists | MacroKind::All | MacroKind::ExistsOne, [first, second, test]) => {
                (vec![first, second], vec![test])
            }
            (_, [variable, body]) => (vec![variable], vec![body]),
            _ => {
                let what = "this wants a variable and what to ask of it, as in \
                            `.exists(c, c.reason == \"Failed\")`";
                return Err(Problem::new(node.at, what));
            }
        };
        let range = self.value(of)?;
        let types = element_types(&range.ty, variables.len()).ok_or_else(|| {
            let what = format!("{} is {}, so it has no elements", spell(of), range.ty);
            Problem::new(node.at, what)
        })?;
        let slot = self.scope.len();
        for (variable, ty) in variables.iter().zip(types) {
            let Kind::Name(name) = &variable.kind else {
                let what = "a variable is one name, as in `.exists(c, ...)`";
                self.scope.truncate(slot);
                return Err(Problem::new(variable.at, what));
            };
            self.scope.push((name.clone(), ty));
        }
        let lowered = self.bodies(kind, &bodies);
        let element = self.scope.get(slot).map_or(Type::Dyn, |(_, ty)| ty.clone());
        self.scope.truncate(slot);
        let (test, make) = lowered?;
        let ty = match (kind, &make) {
            (MacroKind::Map, Some(make)) => Type::List(Box::new(make.ty.clone())),
            (MacroKind::Filter, _) => Type::List(Box::new(element)),
            _ => Type::Bool,
        };
        let variables = variables.len();
        let of = Macro {
            of: kind,
            range,
            slot,
            variables,
            test,
            make,
        };
        Ok(Expr::new(ty, ExprKind::Macro(Box::new(of))))
    }

    fn bodies(
        &mut self,
        kind: MacroKind,
        bodies: &[&Node],
    ) -> Result<(Option<Expr>, Option<Expr>), Problem> {
        Ok(match (kind, bodies) {
            (MacroKind::Map, [make]) => (None, Some(self.value(make)?)),
            (MacroKind::Map, [test, make, ..]) => {
                (Some(self.test(test, "map")?), Some(self.value(make)?))
            }
            (_, [test, ..]) => (Some(self.test(test, "this")?), None),
            (_, []) => (None, None),
        })
    }
}

/// The types of the variables: elements of lists or keys of maps; of two, the index or key
/// comes first.
fn element_types(range: &Type, variables: usize) -> Option<Vec<Type>> {
    let two = variables == 2;
    Some(match range {
        Type::List(of) if two => vec![Type::Int, of.as_ref().clone()],
        Type::List(of) => vec![of.as_ref().clone()],
        Type::Map(of) => vec![Type::Text, of.as_ref().clone()],
        ty if ty.is_dyn() && two => vec![Type::Dyn, ty.clone()],
        ty if ty.is_dyn() => vec![ty.clone()],
        _ => return None,
    })
}
