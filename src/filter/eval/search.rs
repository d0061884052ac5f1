//! `.contains` on what is not text: the JSON of an object or array is searched as text.
//!
//! The text is that of PostgreSQL's jsonb, `{"key": "value", "list": [1, 2]}`, which is what
//! Tekton Results searches; a needle with a colon or a comma is also looked for without blanks.

use serde_json::Value as Json;

use super::{Answer, Judge, Miss};
use crate::filter::value::Value;

impl Judge<'_> {
    pub(super) fn searched(&mut self, of: &Value<'_>, needle: &str) -> Answer<bool> {
        let mut spaced = Writer {
            text: String::new(),
            comma: ", ",
            colon: ": ",
        };
        spaced.value(of).ok_or(Miss::Unknown)?;
        self.charge_bulk(spaced.text.len())?;
        if spaced.text.contains(needle) {
            return Ok(true);
        }
        if !needle.contains([':', ',']) {
            return Ok(false);
        }
        let mut dense = Writer {
            text: String::new(),
            comma: ",",
            colon: ":",
        };
        dense.value(of).ok_or(Miss::Unknown)?;
        self.charge_bulk(dense.text.len())?;
        Ok(dense.text.contains(needle))
    }
}

struct Writer {
    text: String,
    comma: &'static str,
    colon: &'static str,
}

impl Writer {
    fn value(&mut self, value: &Value<'_>) -> Option<()> {
        match value {
            Value::Array(items) => self.array(items),
            Value::Object(members) => {
                self.object(members.iter().map(|(key, value)| (key.as_str(), value)));
            }
            Value::Texts(texts) => {
                self.text.push('{');
                for (number, (key, value)) in texts.iter().enumerate() {
                    self.key(number, key);
                    self.string(value);
                }
                self.text.push('}');
            }
            _ => return None,
        }
        Some(())
    }

    fn json(&mut self, json: &Json) {
        match json {
            Json::Array(items) => self.array(items),
            Json::Object(members) => {
                self.object(members.iter().map(|(key, value)| (key.as_str(), value)));
            }
            Json::String(text) => self.string(text),
            scalar => self.text.push_str(&scalar.to_string()),
        }
    }

    fn array(&mut self, items: &[Json]) {
        self.text.push('[');
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                self.text.push_str(self.comma);
            }
            self.json(item);
        }
        self.text.push(']');
    }

    fn object<'j>(&mut self, members: impl Iterator<Item = (&'j str, &'j Json)>) {
        self.text.push('{');
        for (number, (key, value)) in members.enumerate() {
            self.key(number, key);
            self.json(value);
        }
        self.text.push('}');
    }

    fn key(&mut self, number: usize, key: &str) {
        if number > 0 {
            self.text.push_str(self.comma);
        }
        self.string(key);
        self.text.push_str(self.colon);
    }

    fn string(&mut self, text: &str) {
        self.text.push_str(&Json::from(text).to_string());
    }
}
