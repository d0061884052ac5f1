//! Messages as they are encoded, field by field.

use prost::encoding::{WireType, decode_key, decode_varint};

/// Why bytes are not a message of the type that is expected.
#[derive(Debug, thiserror::Error)]
pub(super) enum Malformed {
    #[error(transparent)]
    Bytes(#[from] prost::DecodeError),
    #[error("a field is longer than the message")]
    Length,
    #[error("fields in groups are not supported")]
    Group,
    #[error("a field is encoded as no value of its type is")]
    Type,
    #[error("a text is not UTF-8")]
    Text,
}

/// The value of one field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Takes a value from the beginning of `bytes`.
    pub(super) fn take(kind: WireType, bytes: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match kind {
            WireType::Varint => Self::Varint(decode_varint(bytes)?),
            WireType::ThirtyTwoBit => Self::Fixed32(u32::from_le_bytes(array(bytes)?)),
            WireType::SixtyFourBit => Self::Fixed64(u64::from_le_bytes(array(bytes)?)),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(bytes)?);
                let length = length.map_err(|_above| Malformed::Length)?;
                let (value, rest) = bytes.split_at_checked(length).ok_or(Malformed::Length)?;
                *bytes = rest;
                Self::Bytes(value)
            }
            WireType::StartGroup | WireType::EndGroup => return Err(Malformed::Group),
        })
    }

    /// Whether it is what a field without presence has when it is not there.
    pub(super) fn is_zero(self) -> bool {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => value == 0,
            Self::Fixed32(value) => value == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }

    pub(super) fn varint(self) -> Result<u64, Malformed> {
        match self {
            Self::Varint(value) => Ok(value),
            _ => Err(Malformed::Type),
        }
    }

    pub(super) fn fixed32(self) -> Result<u32, Malformed> {
        match self {
            Self::Fixed32(value) => Ok(value),
            _ => Err(Malformed::Type),
        }
    }

    pub(super) fn fixed64(self) -> Result<u64, Malformed> {
        match self {
            Self::Fixed64(value) => Ok(value),
            _ => Err(Malformed::Type),
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed::Type),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_bytes| Malformed::Text)
    }
}

fn array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (value, rest) = bytes.split_first_chunk().ok_or(Malformed::Length)?;
    *bytes = rest;
    Ok(*value)
}

/// The fields of a message in the order of their numbers, those of one number as they follow each other.
pub(super) fn fields(mut bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, Malformed> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (number, kind) = decode_key(&mut bytes)?;
        all.push((number, Value::take(kind, &mut bytes)?));
    }
    if !all.is_sorted_by_key(|(number, _)| number) {
        all.sort_by_key(|(number, _)| *number);
    }
    Ok(all)
}
