//! Parts of labels: the JSON that a column holds is searched.

use super::Writer;
use crate::{
    codec::text::{SAME, words},
    sql::statement::Bind,
};
use hindsight_filter::columns::is_part_of_labels;
use hindsight_filter::condition::{Is, Test};

/// Whether the JSON of labels has `part` only in what keys and values are, not between them or in
/// how a word among the keys is written.
pub(super) fn is_sought_in_labels(part: &str) -> bool {
    let mut codes = words::all().map(|(code, _)| words::key_json(&code));
    is_part_of_labels(part) && !codes.any(|code| code.contains(part))
}

impl Writer<'_> {
    /// Appends a test of all labels, whose JSON is searched.
    pub(super) fn labels_test(&mut self, test: &Test) {
        let odd = words::key_json(SAME);
        match &test.is {
            Is::Contains(part) => {
                self.out.push("(labels IS NOT NULL AND ");
                self.labels_have(&odd, false);
                self.out
                    .push(if test.negated { " AND NOT (" } else { " AND (" });
                self.labels_have(part, true);
                for (code, _) in words::all().filter(|(_, word)| word.contains(part.as_str())) {
                    self.out.push(" OR ");
                    self.labels_have(&words::key_json(&code), true);
                }
                self.out.push("))");
            }
            _ if test.negated => {
                self.out.push("(labels IS NULL OR ");
                self.labels_have(&odd, true);
                self.out.push(")");
            }
            _ => {
                self.out.push("(labels IS NOT NULL AND ");
                self.labels_have(&odd, false);
                self.out.push(")");
            }
        }
    }

    /// Appends whether the JSON of labels has a text in it.
    fn labels_have(&mut self, text: &str, has: bool) {
        self.out.push(self.dialect.position()).push("labels");
        self.out.push(self.dialect.json_as_text()).push(", ");
        self.out.bind(Bind::Text(Some(text.to_owned())));
        self.out.push(if has { ") > 0" } else { ") = 0" });
    }
}
