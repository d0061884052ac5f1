//! `.contains` on what is not text: the JSON of an object or array is searched as text.
//!
//! The text is that of PostgreSQL's jsonb, `{"key": "value", "list": [1, 2]}`, which is what
//! Tekton Results searches; a needle with a colon or a comma is also looked for without blanks.

use serde_json::Value as Json;

use super::{Answer, Judge};
use crate::{error::Miss, value::Value};

impl Judge<'_> {
    pub(super) fn searched(&mut self, of: &Value<'_>, needle: &str) -> Answer<bool> {
        if self.written(of, ", ", ": ")?.contains(needle) {
            return Ok(true);
        }
        Ok(needle.contains([':', ',']) && self.written(of, ",", ":")?.contains(needle))
    }

    fn written(
        &mut self,
        of: &Value<'_>,
        comma: &'static str,
        colon: &'static str,
    ) -> Answer<String> {
        let mut writer = Writer {
            text: String::new(),
            room: self.meter.room(),
            comma,
            colon,
        };
        writer.value(of).ok_or(Miss::Unknown)?;
        self.meter.charge_made(writer.text.len())?;
        // Text that was written before the room was used up is not all of it.
        match writer.is_full() {
            true => Err(Miss::Budget),
            false => Ok(writer.text),
        }
    }
}

struct Writer {
    text: String,
    /// Most bytes that are worth writing.
    room: usize,
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

    fn is_full(&self) -> bool {
        self.text.len() > self.room
    }

    fn json(&mut self, json: &Json) {
        match json {
            _ if self.is_full() => {}
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
            if self.is_full() {
                return;
            }
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
            if self.is_full() {
                return;
            }
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
