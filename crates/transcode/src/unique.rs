//! JSON none of whose objects has a key twice. Of two values one program reads the first and another
//! the last, so that what a proxy looks at may not be what is done.

use std::{borrow::Cow, cell::Cell, collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// How many members and elements a body may have: a payload is one text, and of annotations and
/// keys of groups there are fewer.
const MAX_NODES: usize = 20_000;

/// Reads any such JSON; nothing of it is kept.
pub(super) fn check(json: &[u8]) -> serde_json::Result<()> {
    let mut input = serde_json::Deserializer::from_slice(json);
    Unique {
        left: &Cell::new(MAX_NODES),
    }
    .deserialize(&mut input)?;
    input.end()
}

/// Stands for a value; so many members and elements may still come.
#[derive(Clone, Copy)]
struct Unique<'c> {
    left: &'c Cell<usize>,
}

impl Unique<'_> {
    fn count<E: Error>(self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1);
        let left = left.ok_or_else(|| {
            E::custom(format!(
                "there are more than {MAX_NODES} members and elements"
            ))
        })?;
        self.left.set(left);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

#[derive(PartialEq, Eq, Hash, serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            self.count()?;
            map.next_value_seed(self)?;
            if let Some(Key(twice)) = seen.replace(key) {
                return Err(A::Error::custom(format!(
                    "the key `{twice}` is there twice"
                )));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {
            self.count()?;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_object_may_have_a_key_twice() {
        for good in [
            r#"{"a":1,"b":{"a":-1.5,"c":[{"a":true},{"a":null}]}}"#,
            r#"{"$serde_json::private::RawValue":"1","$serde_json::private::Number":"2"}"#,
            "[]",
            "7",
        ] {
            check(good.as_bytes()).unwrap();
        }
        for bad in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"b":{"x":{},"y":2,"x":{}}}]"#,
        ] {
            let error = check(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("is there twice"), "{error}");
        }
    }
    #[test]
    fn a_body_has_a_limited_number_of_members() {
        let list = |items: usize| format!("[{}1]", "1,".repeat(items - 1));
        check(list(MAX_NODES).as_bytes()).unwrap();
        let error = check(list(MAX_NODES + 1).as_bytes()).unwrap_err();
        assert!(
            error.to_string().contains("more than 20000 members"),
            "{error}"
        );
        let members: Vec<String> = (0..=MAX_NODES).map(|n| format!("\"{n}\":0")).collect();
        let nested = format!("{{\"a\":{{{}}}}}", members.join(","));
        check(nested.as_bytes()).unwrap_err();
    }
}
