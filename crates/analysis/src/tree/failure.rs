//! Where the failure of a run began.

use jiff::Timestamp;

use super::{MAX_DEPTH, Node, State, Tree};

impl Tree {
    /// The node that made the run fail: from the root down, of what failed the one that ended first,
    /// and of several attempts the last. `None` if the run did not fail.
    pub fn failed_leaf(&self) -> Option<usize> {
        let root = self.nodes.first()?;
        if !root.state.is_failure() && root.state != State::Cancelled {
            return None;
        }
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                below[parent].push(at);
            }
        }
        let mut leaf = 0;
        for _ in 0..=MAX_DEPTH {
            let ended = |at: &usize| (self.nodes[*at].ended.is_none(), self.nodes[*at].ended, *at);
            let are = |is: fn(&Node) -> bool| {
                let found = below[leaf]
                    .iter()
                    .copied()
                    .filter(|at| is(&self.nodes[*at]));
                found.collect::<Vec<_>>()
            };
            let mut failed = are(|node| node.state.is_failure());
            if failed.is_empty() && self.nodes[leaf].state != State::Failure {
                failed = are(|node| node.state == State::Cancelled);
            }
            let next = match self.nodes[leaf].kind.as_str() {
                "Retry" => failed.into_iter().max_by_key(ended),
                _ => failed.into_iter().min_by_key(ended),
            };
            match next {
                Some(next) => leaf = next,
                None => break,
            }
        }
        Some(leaf)
    }

    /// The names from below the root to a node, as in `test/unit`; empty for the root.
    pub fn path(&self, at: usize) -> String {
        let mut names = Vec::new();
        let mut next = self.nodes.get(at);
        while let Some((node, parent)) = next.and_then(|node| Some((node, node.parent?))) {
            names.push(node.name.as_str());
            next = self.nodes.get(parent);
        }
        names.reverse();
        names.join("/")
    }

    /// When the run began.
    pub fn began(&self) -> Option<Timestamp> {
        let run = self.nodes.first()?;
        run.started.or(run.created)
    }
}
