//! The graph of steps and their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use crate::spec::Step;

/// The steps with those first that others depend on; of steps that could be next, the first by name. Steps
/// of a circle, and those behind one, come last.
#[must_use]
pub fn in_order(steps: &BTreeMap<String, Step>) -> Vec<&str> {
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    let mut behind: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, step) in steps {
        let before: BTreeSet<&str> = known(steps, step).collect();
        missing.insert(name, before.len());
        for dependency in before {
            behind.entry(dependency).or_default().push(name);
        }
    }
    let ready = missing.iter().filter(|(_, count)| **count == 0);
    let mut ready: BTreeSet<&str> = ready.map(|(name, _)| *name).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(name) = ready.pop_first() {
        order.push(name);
        missing.remove(name);
        for next in behind.get(name).into_iter().flatten() {
            if let Some(count) = missing.get_mut(next) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(next);
                }
            }
        }
    }
    order.extend(missing.into_keys());
    order
}

/// The steps of a circle of dependencies, if there is one; each depends on the next, and the last on the
/// first. It begins with the first by name.
#[must_use]
pub fn cycle(steps: &BTreeMap<String, Step>) -> Option<Vec<&str>> {
    let mut left: BTreeSet<&str> = steps.keys().map(String::as_str).collect();
    // Of steps on which no other of them depends, and of those that depend on none of them, none is in a
    // circle. What is left after both has each step lead on to another.
    let order = in_order(steps);
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for name in order {
        if known(steps, &steps[name]).all(|dependency| done.contains(dependency)) {
            done.insert(name);
            left.remove(name);
        }
    }
    let mut path = vec![*left.first()?];
    let mut places = BTreeMap::from([(path[0], 0)]);
    loop {
        let last = path[path.len() - 1];
        let next = known(steps, &steps[last]).find(|dependency| left.contains(dependency))?;
        if let Some(start) = places.get(next) {
            let mut circle = path.split_off(*start);
            let first = circle.iter().enumerate().min_by_key(|(_, name)| **name);
            let first = first.map_or(0, |(at, _)| at);
            circle.rotate_left(first);
            return Some(circle);
        }
        places.insert(next, path.len());
        path.push(next);
    }
}

/// The dependencies of a step that are steps; those of an external object have no meaning.
fn known<'s>(steps: &'s BTreeMap<String, Step>, step: &'s Step) -> impl Iterator<Item = &'s str> {
    let dependencies = match step.external_ref {
        Some(_) => &[],
        None => step.dependencies.as_slice(),
    };
    dependencies
        .iter()
        .filter_map(|name| Some(steps.get_key_value(name)?.0.as_str()))
}
