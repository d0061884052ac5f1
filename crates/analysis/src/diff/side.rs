//! One of the two runs that are compared.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::Value;

use super::{Category, Place, flatten::flatten};
use crate::tree::{Node, Tree};

/// Longest path of a task, in bytes; longer ones lose their beginning.
const MAX_PATH: usize = 500;

/// Most bytes of the values of one object; what is more is not compared.
const MAX_BYTES: usize = 16 << 20;

/// Values of one object, and how many bytes they take.
#[derive(Debug, Clone, Default)]
pub struct Values {
    list: Vec<(Category, String, String)>,
    bytes: usize,
    /// There are more values than fit.
    is_cut: bool,
}

impl Values {
    /// What is compared of `object`. What is `below` another run has labels and annotations of
    /// that, which are not compared again.
    pub fn of(object: &Value, below: bool) -> Self {
        let mut values = Self::default();
        let had_all = flatten(object, below, &mut |category, path, value| {
            // Two texts with their capacities, and the category.
            values.bytes += path.len() + value.len() + 64;
            values.list.push((category, path, value));
            values.bytes <= MAX_BYTES
        });
        values.is_cut = !had_all;
        values
    }

    /// About how many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What is compared of one run.
#[derive(Debug, Clone, Default)]
pub struct Side {
    pub(super) values: BTreeMap<Place, String>,
    pub(super) seconds: BTreeMap<Place, f64>,
    /// Runs below it whose values are not there.
    pub(super) left_out: usize,
}

impl Side {
    /// What is compared of the run of `tree`: the `values` of objects by the ids of their nodes, and
    /// how long nodes and steps took.
    pub fn of(tree: &Tree, mut values: HashMap<String, Values>) -> Self {
        let mut side = Self::default();
        let tasks = tasks(tree);
        for (node, task) in tree.nodes.iter().zip(tasks) {
            let task = Arc::from(task);
            let values = values.remove(&node.id);
            let is_whole = values.as_ref().is_some_and(|values| !values.is_cut);
            side.left_out += usize::from(node.record.is_some() && !is_whole);
            side.add(&task, values.unwrap_or_default());
            for (path, seconds) in [("wait", node.wait()), ("took", node.took())] {
                side.took(&task, path, seconds);
            }
            for step in &node.steps {
                side.took(&task, &format!("steps[{}]", step.name), step.took());
            }
        }
        side
    }

    fn add(&mut self, task: &Arc<str>, values: Values) {
        for (category, path, value) in values.list {
            self.values.insert(place(category, task, path), value);
        }
    }

    fn took(&mut self, task: &Arc<str>, path: &str, seconds: Option<f64>) {
        if let Some(seconds) = seconds {
            let place = place(Category::Timing, task, path.to_owned());
            self.seconds.insert(place, seconds);
        }
    }
}

fn place(category: Category, task: &Arc<str>, path: String) -> Place {
    Place {
        category,
        task: Arc::clone(task),
        path,
    }
}

/// What a node is called in each run alike: its task, or its kind if only its object has a name.
fn label(node: &Node) -> &str {
    match node.record.is_some() && node.name == node.object {
        true => &node.kind,
        false => &node.name,
    }
}

/// The path of each node: the names from below the root, as in `test/unit`. Of siblings that share a
/// name, such as those of a matrix, all but the first have a number, in the order of their objects.
fn tasks(tree: &Tree) -> Vec<String> {
    let mut numbers: HashMap<(usize, &str), Vec<(&str, usize)>> = HashMap::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            let siblings = numbers.entry((parent, label(node))).or_default();
            siblings.push((&node.object, at));
        }
    }
    let mut number = vec![0; tree.nodes.len()];
    for siblings in numbers.values_mut() {
        siblings.sort_unstable();
        for (nth, (_, at)) in siblings.iter().enumerate() {
            number[*at] = nth;
        }
    }
    let mut tasks: Vec<String> = Vec::with_capacity(tree.nodes.len());
    for (node, number) in tree.nodes.iter().zip(number) {
        let mut task = match node.parent.map(|parent| tasks[parent].as_str()) {
            None => String::new(),
            Some("") => label(node).to_owned(),
            Some(above) => format!("{above}/{}", label(node)),
        };
        if number > 0 {
            task.push_str(&format!("[{number}]"));
        }
        if let Some(beginning) = task.len().checked_sub(MAX_PATH) {
            let cut = (beginning..).find(|at| task.is_char_boundary(*at));
            task.drain(..cut.unwrap_or_default());
        }
        tasks.push(task);
    }
    tasks
}
