//! Kubernetes selectors: what they mean in terms of the filter language.
//!
//! As in Kubernetes, what is not there is unequal to everything, so that `a!=b` holds for rows
//! without `a`; that is the difference from `!=` of CEL.

mod fields;
mod labels;

pub(super) use self::{fields::fields, labels::labels};
use super::{
    cost::CostBudget,
    error::{FilterError, Place, Problem},
    expr::Expr,
    limits::MAX_CHARS,
    lower,
    syntax::{Kind, Literal, Node, Operator},
};
use crate::model::Resource;

/// Most requirements of one selector.
const MAX_REQUIREMENTS: usize = 1_000;

/// One requirement after the other, which must all hold, halved so that they nest little.
fn all(mut nodes: Vec<Node>) -> Node {
    if nodes.len() > 1 {
        let right = nodes.split_off(nodes.len() / 2);
        return binary(Operator::And, all(nodes), all(right));
    }
    nodes.pop().unwrap_or(Node {
        at: 0,
        kind: Kind::Literal(Literal::Bool(true)),
    })
}

/// What a selector means, whose requirements are read by `read`; the places of errors are those
/// of `text`.
fn lowered(
    which: &'static str,
    text: &str,
    resource: Resource,
    budget: &mut CostBudget,
    read: impl FnOnce(&mut CostBudget) -> Result<Vec<Node>, Problem>,
) -> Result<Expr, FilterError> {
    let chars = text.chars().count();
    if chars > MAX_CHARS {
        return Err(FilterError::TooLong { chars });
    }
    let nodes = read(budget);
    let expr = nodes.and_then(|nodes| lower::lower(&all(nodes), resource, budget));
    expr.map_err(|problem| match problem.costly {
        true => problem.in_meaning(text),
        false => FilterError::Selector {
            which,
            place: Place::of(text, problem.at),
            what: problem.what,
        },
    })
}

/// Adds a requirement that begins at the byte `at`.
fn add(nodes: &mut Vec<Node>, node: Node, at: usize) -> Result<(), Problem> {
    if nodes.len() == MAX_REQUIREMENTS {
        return Err(Problem::new(
            at,
            format!("more than {MAX_REQUIREMENTS} requirements"),
        ));
    }
    nodes.push(node);
    Ok(())
}

fn binary(operator: Operator, left: Node, right: Node) -> Node {
    Node {
        at: left.at,
        kind: Kind::Binary(operator, Box::new([left, right])),
    }
}

fn not(of: Node) -> Node {
    Node {
        at: of.at,
        kind: Kind::Not(Box::new(of)),
    }
}

fn name(at: usize, name: &str) -> Node {
    Node {
        at,
        kind: Kind::Name(name.to_owned()),
    }
}

fn select(of: Node, field: &str) -> Node {
    Node {
        at: of.at,
        kind: Kind::Select(Box::new(of), field.to_owned()),
    }
}

fn literal(at: usize, literal: Literal) -> Node {
    Node {
        at,
        kind: Kind::Literal(literal),
    }
}

fn text(at: usize, text: &str) -> Node {
    literal(at, Literal::Text(text.to_owned()))
}

fn call(function: &str, of: Node) -> Node {
    Node {
        at: of.at,
        kind: Kind::Call {
            of: None,
            name: function.to_owned(),
            args: vec![of],
        },
    }
}
