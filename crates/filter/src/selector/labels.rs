//! Label selectors: `app=shop,tier!=test,env in (a, b),!keep`.

use hindsight_run::selector::{Requirement, Selector, Test};

use super::{add, binary, call, literal, lowered, name, not, select, text};
use crate::{
    cost::CostBudget,
    error::{FilterError, Problem},
    expr::Expr,
    model::Resource,
    syntax::{Kind, Literal, Node, Operator},
};

/// What a label selector means on records: their `metadata.labels` are looked at.
pub(crate) fn labels(
    text: &str,
    resource: Resource,
    budget: &mut CostBudget,
) -> Result<Expr, FilterError> {
    lowered("label selector", text, resource, budget, |budget| {
        if resource == Resource::Results {
            let what = "results have no labels; select records, or write a filter on \
                        `annotations[\"key\"]`";
            return Err(Problem::new(0, what));
        }
        // A value and the comma after it.
        budget.read(2 * text.matches(',').count() + 1, 0)?;
        let selector = text.parse::<Selector>();
        let selector = selector.map_err(|bad| Problem::new(bad.at, bad.what))?;
        let mut nodes = Vec::new();
        for requirement in &selector.0 {
            add(&mut nodes, node(requirement), requirement.at)?;
        }
        Ok(nodes)
    })
}

fn node(requirement: &Requirement) -> Node {
    let at = requirement.at;
    let label = || {
        let labels = select(select(name(at, "data"), "metadata"), "labels");
        let key = text(at, &requirement.key);
        Node {
            at,
            kind: Kind::Index(Box::new(labels), Box::new(key)),
        }
    };
    let exists = || call("has", label());
    let within = |values: &[String]| {
        let list = Kind::List(values.iter().map(|value| text(at, value)).collect());
        binary(Operator::In, label(), Node { at, kind: list })
    };
    let number = |operator, bound| {
        let bound = literal(at, Literal::Int(bound));
        binary(operator, call("int", label()), bound)
    };
    match &requirement.test {
        Test::Exists => exists(),
        Test::Absent => not(exists()),
        Test::In(values) => match &values[..] {
            [value] => binary(Operator::Equal, label(), text(at, value)),
            values => within(values),
        },
        Test::NotIn(values) => {
            let outside = match &values[..] {
                [value] => binary(Operator::NotEqual, label(), text(at, value)),
                values => not(within(values)),
            };
            binary(Operator::Or, not(exists()), outside)
        }
        Test::Above(bound) => number(Operator::Greater, *bound),
        Test::Below(bound) => number(Operator::Less, *bound),
    }
}

#[cfg(test)]
mod tests;
