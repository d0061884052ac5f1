//! Clusters by the names that operators give them. Rows know the id of a cluster; a filter may name it
//! where it compares `run.cluster`.

use std::collections::BTreeMap;

use super::{
    Filter,
    expr::{Comparison, Expr, ExprKind, Field},
    value::{Shared, Value},
};

/// Ids of clusters by name.
pub type ClusterNames = BTreeMap<String, String>;

impl Filter {
    /// The same filter, with ids in the place of names in `run.cluster == name`, `!=` and `in`.
    #[must_use]
    pub fn with_clusters(mut self, names: &ClusterNames) -> Self {
        if !names.is_empty() {
            resolve(&mut self.expr, names);
        }
        self
    }
}

fn resolve(expr: &mut Expr, names: &ClusterNames) {
    match &mut expr.kind {
        ExprKind::Compare(Comparison::Equal | Comparison::NotEqual, pair) | ExprKind::In(pair) => {
            let [a, b] = &mut **pair;
            if is_cluster(a) {
                name(b, names);
            } else if is_cluster(b) {
                name(a, names);
            } else {
                resolve(a, names);
                resolve(b, names);
            }
        }
        ExprKind::And(pair) | ExprKind::Or(pair) => {
            pair.iter_mut().for_each(|part| resolve(part, names));
        }
        ExprKind::If(parts) => parts.iter_mut().for_each(|part| resolve(part, names)),
        ExprKind::Not(of) => resolve(of, names),
        _ => {}
    }
}

fn is_cluster(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Field(Field::RunCluster))
}

/// Replaces names in what a cluster is compared with.
fn name(expr: &mut Expr, names: &ClusterNames) {
    match &mut expr.kind {
        ExprKind::Const(value) => *value = named(value, names),
        ExprKind::List(items) => items.iter_mut().for_each(|item| name(item, names)),
        _ => {}
    }
}

fn named(value: &Value<'static>, names: &ClusterNames) -> Value<'static> {
    match value {
        Value::Text(text) => match names.get(&**text) {
            Some(id) => Value::Text(Shared::own(id.as_str())),
            None => value.clone(),
        },
        Value::List(items) => Value::List(items.iter().map(|item| named(item, names)).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        condition::{Ability, Column, Condition, Is, Value as Asked},
        model::Resource,
    };

    fn condition(text: &str) -> Condition {
        let names = ClusterNames::from([("production".to_owned(), "6c2a".to_owned())]);
        let filter = Filter::compile(text, Resource::Records).unwrap();
        let filter = filter.with_clusters(&names);
        assert_eq!(filter.text(), text);
        let split = filter.split(&|_| Ability::Exact);
        assert!(!split.residual);
        split.condition
    }

    #[test]
    fn a_cluster_is_found_by_its_name_and_by_its_id() {
        for text in ["run.cluster == 'production'", "'6c2a' == run.cluster"] {
            let Condition::Test(test) = condition(text) else {
                panic!("{text}")
            };
            assert_eq!(test.column, Column::Cluster);
            assert_eq!(test.is, Is::Equal(Asked::Text("6c2a".to_owned())), "{text}");
        }
    }

    #[test]
    fn names_are_found_in_lists_and_below_other_tests() {
        for text in [
            "data.kind == 'a' && !(run.cluster in ['production', 'east'])",
            "true ? run.cluster in ['production', 'east'] : false",
        ] {
            let said = format!("{:?}", condition(text));
            assert!(said.contains("6c2a") && said.contains("east"), "{said}");
            assert!(!said.contains("production"), "{said}");
        }
    }

    #[test]
    fn only_clusters_have_these_names() {
        let said = format!("{:?}", condition("run.pipeline == 'production'"));
        assert!(said.contains("production"), "{said}");
    }
}
