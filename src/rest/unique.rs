//! JSON none of whose objects has a key twice. Of two values one program reads the first and another
//! the last, so that what a proxy looks at may not be what is done.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Stands for any such JSON; nothing of it is kept.
#[derive(Debug)]
pub(super) struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Self)
    }
}

#[derive(PartialEq, Eq, Hash, serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            map.next_value::<Self>()?;
            if let Some(Key(twice)) = seen.replace(key) {
                return Err(A::Error::custom(format!(
                    "the key `{twice}` is there twice"
                )));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
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
            serde_json::from_str::<Unique>(good).unwrap();
        }
        for bad in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"b":{"x":{},"y":2,"x":{}}}]"#,
        ] {
            let error = serde_json::from_str::<Unique>(bad).unwrap_err().to_string();
            assert!(error.contains("is there twice"), "{error}");
        }
    }
}
