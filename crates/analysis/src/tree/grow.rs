//! Puts the parts of a tree together.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    MAX_CYCLES, MAX_DEPENDENCIES, MAX_DEPTH, MAX_NODES, Node, Part, State, Tree, argo::FlowNode,
    part::Reference, pipeline::Waits,
};

/// The nodes and what is below what, as the objects say it: neither one tree nor without circles.
#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    below: Vec<Vec<usize>>,
    /// Pairs of nodes of a workflow of which the second waits for the first.
    next: Vec<(usize, usize)>,
    /// What the tasks of a pipeline wait for, by the place of its run.
    waits: BTreeMap<usize, BTreeMap<String, Waits>>,
    left_out: usize,
    notes: Vec<String>,
}

pub(super) fn grow(root: Part, parts: Vec<Part>, leaves: Vec<Node>) -> Tree {
    let mut graph = Graph::with_capacity(1 + parts.len() + leaves.len());
    let own = root.node.id.clone();
    let parts = parts.into_iter().filter(|part| part.node.id != own);
    let leaves = leaves.into_iter().filter(|leaf| leaf.id != own);
    graph.join(std::iter::once(root).chain(parts), leaves);
    let mut tree = Tree::default();
    let order = graph.walk(&mut tree);
    graph.depend(&order, &mut tree);
    tree.left_out += graph.left_out;
    tree.notes = graph.notes;
    tree
}

impl Graph {
    fn with_capacity(nodes: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(nodes),
            below: Vec::with_capacity(nodes),
            ..Self::default()
        }
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.below.push(Vec::new());
        self.nodes.len() - 1
    }

    /// Adds every part and leaf, and says what is below what. The first part is the root.
    fn join(&mut self, parts: impl Iterator<Item = Part>, leaves: impl Iterator<Item = Node>) {
        let mut rest = Vec::new();
        for mut part in parts {
            let at = self.add(std::mem::take(&mut part.node));
            rest.push((at, part));
        }
        for leaf in leaves {
            self.add(leaf);
        }
        let mut by_id: HashMap<&str, usize> = HashMap::with_capacity(self.nodes.len());
        let mut by_name: HashMap<(String, String), usize> =
            HashMap::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            by_id.entry(&node.id).or_insert(at);
            let name = (node.kind.clone(), node.object.clone());
            by_name.entry(name).or_insert(at);
        }
        for (at, part) in &rest {
            for owner in &part.owners {
                if let Some(owner) = by_id.get(owner.as_str()) {
                    self.below[*owner].push(*at);
                }
            }
        }
        let mut budget = MAX_NODES;
        for (at, part) in rest {
            let wanted = part.children.len() + part.skipped.len() + part.flow.nodes.len();
            if wanted > budget {
                self.left_out += wanted;
                continue;
            }
            budget -= wanted;
            for child in part.children {
                self.refer(at, child, &mut by_name);
            }
            for (task, why) in part.skipped {
                self.skip(at, task, why);
            }
            self.waits.insert(at, part.waits);
            self.left_out += part.flow.left_out;
            self.notes.extend(part.flow.note);
            self.flow(at, part.flow.top, part.flow.nodes);
        }
    }

    /// Puts an object that another one refers to below it, or stands in for it.
    fn refer(
        &mut self,
        parent: usize,
        child: Reference,
        by_name: &mut HashMap<(String, String), usize>,
    ) {
        let key = (child.kind, child.name);
        if let Some(&found) = by_name.get(&key) {
            if !child.task.is_empty() {
                self.nodes[found].name = child.task;
            }
            self.below[parent].push(found);
            return;
        }
        let (kind, object) = key;
        let name = match child.task.as_str() {
            "" => object.clone(),
            task => task.to_owned(),
        };
        let node = Node {
            id: format!("{kind}/{object}"),
            name,
            object: object.clone(),
            kind: kind.clone(),
            reason: "NotStored".to_owned(),
            attempt: 1,
            ..Node::default()
        };
        let at = self.add(node);
        by_name.insert((kind, object), at);
        self.below[parent].push(at);
    }

    fn skip(&mut self, parent: usize, task: String, why: String) {
        let node = Node {
            id: format!("{}/{task}", self.nodes[parent].id),
            name: task,
            kind: "Task".to_owned(),
            state: State::Skipped,
            reason: why,
            ..Node::default()
        };
        let at = self.add(node);
        self.below[parent].push(at);
    }

    /// Adds the nodes of a workflow, of which the one at `top` is the workflow itself.
    fn flow(&mut self, workflow: usize, top: Option<usize>, nodes: Vec<FlowNode>) {
        let first = self.nodes.len();
        let mut places = Vec::with_capacity(nodes.len());
        let mut links = Vec::with_capacity(nodes.len());
        for (at, flow) in nodes.into_iter().enumerate() {
            places.push(match top == Some(at) {
                true => workflow,
                false => self.add(flow.node),
            });
            links.push((flow.inside, flow.next));
        }
        for (at, (inside, next)) in links.into_iter().enumerate() {
            let place = places[at];
            if place != workflow {
                let inside = inside.map_or(workflow, |inside| places[inside]);
                self.below[inside].push(place);
            }
            self.next
                .extend(next.into_iter().map(|next| (place, places[next])));
        }
        self.hold_circles(workflow, first);
    }

    /// Puts nodes from `first` on that are in a circle of their own below the workflow, where the walk
    /// reports the circle.
    fn hold_circles(&mut self, workflow: usize, first: usize) {
        let mut held = vec![false; self.nodes.len()];
        let mut queue = Vec::new();
        for at in std::iter::once(workflow).chain(first..self.nodes.len()) {
            if at != workflow && !held[at] {
                self.below[workflow].push(at);
            }
            queue.push(at);
            while let Some(at) = queue.pop() {
                if !std::mem::replace(&mut held[at], true) {
                    let nodes = self.below[at].iter().copied();
                    queue.extend(nodes.filter(|below| *below >= first));
                }
            }
        }
    }

    /// Walks from the root, each node once, and gives the new place of each that was reached.
    fn walk(&mut self, tree: &mut Tree) -> Vec<Option<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Above,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        let mut order = vec![None; self.nodes.len()];
        tree.nodes.reserve(self.nodes.len());
        let mut stack: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
        let mut enter = Some((0, None, 0));
        let mut ids = HashSet::with_capacity(self.nodes.len());
        loop {
            if let Some((at, parent, depth)) = enter.take() {
                if !ids.insert(self.nodes[at].id.clone()) {
                    self.nodes[at].id.push_str(&format!("#{at}"));
                }
                let node = Node {
                    parent,
                    depth,
                    ..std::mem::take(&mut self.nodes[at])
                };
                marks[at] = Mark::Above;
                order[at] = Some(tree.nodes.len());
                tree.nodes.push(node);
                let mut below = std::mem::take(&mut self.below[at]);
                below.sort_by(|a, b| rank(&self.nodes[*a]).cmp(&rank(&self.nodes[*b])));
                below.dedup();
                stack.push((at, below.into_iter()));
            }
            let depth = u32::try_from(stack.len()).unwrap_or(u32::MAX);
            let Some((above, rest)) = stack.last_mut() else {
                return order;
            };
            let above = *above;
            let Some(at) = rest.next() else {
                marks[above] = Mark::Done;
                stack.pop();
                continue;
            };
            match marks[at] {
                Mark::New if depth > MAX_DEPTH || tree.nodes.len() >= MAX_NODES => {
                    marks[at] = Mark::Done;
                    tree.left_out += 1;
                }
                Mark::New => enter = Some((at, order[above], depth)),
                Mark::Above if tree.cycles.len() < MAX_CYCLES => {
                    let name = |at: usize| {
                        let node = order[at].and_then(|at| tree.nodes.get(at));
                        node.map_or("", |node| node.id.as_str())
                    };
                    let circle = format!("{} > {}", name(above), name(at));
                    tree.cycles.push(circle);
                }
                Mark::Above | Mark::Done => {}
            }
        }
    }

    /// Says which nodes wait for which siblings.
    fn depend(&mut self, order: &[Option<usize>], tree: &mut Tree) {
        let mut room = MAX_DEPENDENCIES;
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes.len()];
        for (at, node) in tree.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                below[parent].push(at);
            }
        }
        for (run, waits) in &self.waits {
            if let Some(run) = order[*run].filter(|_| !waits.is_empty()) {
                tasks(&below[run], waits, tree, &mut room);
            }
        }
        for (first, second) in &self.next {
            let (Some(first), Some(second)) = (order[*first], order[*second]) else {
                continue;
            };
            if room > 0 && siblings(first, second, tree) {
                room -= 1;
            }
        }
        for node in &mut tree.nodes {
            node.depends_on.sort_unstable();
            node.depends_on.dedup();
        }
        if room == 0 {
            let most = format!("only {MAX_DEPENDENCIES} dependencies are told");
            self.notes.push(most);
        }
    }
}

/// By what siblings are ordered: by their start, those that have none last.
fn rank(node: &Node) -> (bool, Option<jiff::Timestamp>, &str, &str) {
    let start = node.started.or(node.created);
    (start.is_none(), start, &node.name, &node.object)
}

/// Says what the tasks `below` a run wait for.
fn tasks(below: &[usize], waits: &BTreeMap<String, Waits>, tree: &mut Tree, room: &mut usize) {
    let mut by_task: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for &at in below {
        let name = tree.nodes[at].name.clone();
        by_task.entry(name).or_default().push(at);
    }
    for (task, places) in &by_task {
        let Some(waits) = waits.get(task) else {
            continue;
        };
        for &place in places {
            tree.nodes[place].finally = waits.finally;
            for before in waits.for_tasks.iter().filter_map(|task| by_task.get(task)) {
                let fits = before.len().min(*room);
                *room -= fits;
                let before = before.iter().take(fits).filter(|before| **before != place);
                tree.nodes[place].depends_on.extend(before);
            }
        }
    }
}

/// Says that the second of two nodes waits for the first, or for what the first is inside of where
/// that is a sibling; false if they have nothing in common.
fn siblings(first: usize, second: usize, tree: &mut Tree) -> bool {
    let wanted = tree.nodes[second].parent;
    let mut at = first;
    loop {
        let parent = tree.nodes[at].parent;
        if parent == wanted && at != second {
            tree.nodes[second].depends_on.push(at);
            return true;
        }
        match parent {
            Some(above) => at = above,
            None => return false,
        }
    }
}
