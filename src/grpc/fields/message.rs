//! A part of a message, named by a mask. What a message carries as bytes is a JSON text, of which
//! parts are taken too.

use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage as _, Value};

use super::{
    mask::Mask,
    payload::{self, Unwritten},
};

/// What is named of JSON texts takes more bytes than there is room for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Takes away from `message` what `mask` does not want. Parts of JSON texts take from `room`, in bytes.
pub(super) fn cut(
    message: &mut DynamicMessage,
    mask: &Mask,
    room: &mut usize,
) -> Result<(), TooLarge> {
    if mask.is_whole() {
        return Ok(());
    }
    // The fields of a Struct are keys of one map, and are named as such.
    if message.descriptor().full_name() == "google.protobuf.Struct" {
        for (_, value) in message.fields_mut() {
            narrow(value, mask, room)?;
        }
        return Ok(());
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
            (Value::Bytes(bytes), Kind::Bytes) => match payload::part(bytes, mask, *room) {
                Ok(part) => {
                    *room -= part.len();
                    *bytes = part.into();
                }
                Err(Unwritten::NotJson) => {}
                Err(Unwritten::TooLarge) => return Err(TooLarge),
            },
            (value, _) => narrow(value, mask, room)?,
        }
    }
    Ok(())
}

fn narrow(value: &mut Value, mask: &Mask, room: &mut usize) -> Result<(), TooLarge> {
    match value {
        Value::Message(message) => cut(message, mask, room),
        Value::List(items) => items
            .iter_mut()
            .try_for_each(|item| narrow(item, mask, room)),
        Value::Map(entries) => {
            entries.retain(|key, _| match key {
                MapKey::String(key) => mask.of(key).is_some(),
                _ => true,
            });
            entries.iter_mut().try_for_each(|(key, value)| {
                let MapKey::String(key) = key else {
                    return Ok(());
                };
                match mask.of(key).filter(|mask| !mask.is_whole()) {
                    Some(mask) => narrow(value, mask, room),
                    None => Ok(()),
                }
            })
        }
        // A path below a plain value asks for the value.
        _ => Ok(()),
    }
}
