//! A part of a message, named by a mask. What a message carries as bytes is a JSON text, of which
//! parts are taken too.

use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage as _, Value};

use super::{mask::Mask, payload};

/// Takes away from `message` what `mask` does not want.
pub(super) fn cut(message: &mut DynamicMessage, mask: &Mask) {
    if mask.is_whole() {
        return;
    }
    // The fields of a Struct are keys of one map, and are named as such.
    if message.descriptor().full_name() == "google.protobuf.Struct" {
        for (_, value) in message.fields_mut() {
            narrow(value, mask);
        }
        return;
    }
    let unwanted: Vec<_> = message
        .fields()
        .map(|(field, _)| field)
        .filter(|field| mask.of(field.name()).is_none())
        .collect();
    for field in unwanted {
        message.clear_field(&field);
    }
    for (field, value) in message.fields_mut() {
        let Some(mask) = mask.of(field.name()).filter(|mask| !mask.is_whole()) else {
            continue;
        };
        match (value, field.kind()) {
            (Value::Bytes(bytes), Kind::Bytes) => {
                if let Some(part) = payload::part(bytes, mask) {
                    *bytes = part.into();
                }
            }
            (value, _) => narrow(value, mask),
        }
    }
}

fn narrow(value: &mut Value, mask: &Mask) {
    match value {
        Value::Message(message) => cut(message, mask),
        Value::List(items) => items.iter_mut().for_each(|item| narrow(item, mask)),
        Value::Map(entries) => {
            entries.retain(|key, value| {
                let MapKey::String(key) = key else {
                    return true;
                };
                let wanted = mask.of(key);
                if let Some(mask) = wanted.filter(|mask| !mask.is_whole()) {
                    narrow(value, mask);
                }
                wanted.is_some()
            });
        }
        // A path below a plain value asks for the value.
        _ => {}
    }
}
