//! What is in a message beside its payload, told from its bytes as they come.
//!
//! A repeated field of two bytes takes some thirty in memory once it is decoded; the bytes of a
//! payload stay what they are. So of all but the payload there may be little. A payload is
//! what `record.data.value` is: the one large field of the one large field of the one large field. Lines of
//! logs are less deep.

use tonic::Status;

/// How many bytes a message may have beside its payload.
const BESIDE_PAYLOAD: usize = 1 << 20;
/// From here on a field is large: it may be a payload, or have one in it.
const LARGE: usize = 64 << 10;
/// How deep the payload of a record is.
const DEPTH: usize = 3;
/// A number has at most so many bytes.
const VARINT: u32 = 10;

/// A message that is read. It holds no part of it.
#[derive(Debug, Default)]
pub(super) struct Outline {
    position: usize,
    beside: usize,
    /// Where the fields end that are large and not the payload.
    ends: Vec<usize>,
    next: Next,
    number: u64,
    digits: u32,
    /// How many levels less deep than in a record the payload is.
    shallow: usize,
}

#[derive(Debug, Default, Clone, Copy)]
enum Next {
    #[default]
    Key,
    Number,
    Length,
    Skip(usize),
}

impl Outline {
    /// That of a message whose payload is so many levels deep.
    pub(super) fn of(depth: usize) -> Self {
        Self {
            shallow: DEPTH.saturating_sub(depth),
            ..Self::default()
        }
    }

    /// Reads on. What is no message is not refused here.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Status> {
        while let Some(&first) = bytes.first() {
            let taken = match &mut self.next {
                Next::Skip(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    if *left == 0 {
                        self.next = Next::Key;
                    }
                    taken
                }
                Next::Key | Next::Number | Next::Length => {
                    self.count(1)?;
                    self.digit(first)?;
                    1
                }
            };
            self.position += taken;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    fn digit(&mut self, byte: u8) -> Result<(), Status> {
        if matches!(self.next, Next::Key) && self.digits == 0 {
            let position = self.position;
            self.ends.retain(|end| *end > position);
        }
        self.number |= u64::from(byte & 0x7f) << (7 * self.digits).min(63);
        self.digits += 1;
        if byte & 0x80 != 0 && self.digits < VARINT {
            return Ok(());
        }
        let number = std::mem::take(&mut self.number);
        self.digits = 0;
        self.next = match (self.next, number & 7) {
            (Next::Key, 0) => Next::Number,
            (Next::Key, 1) => self.skip(8)?,
            (Next::Key, 2) => Next::Length,
            (Next::Key, 5) => self.skip(4)?,
            (Next::Length, _) => {
                let length = usize::try_from(number).unwrap_or(usize::MAX);
                match length > LARGE {
                    true if self.ends.len() + 1 + self.shallow < DEPTH => {
                        self.ends
                            .push(self.position.saturating_add(1).saturating_add(length));
                        Next::Key
                    }
                    true => Next::Skip(length),
                    false => self.skip(length)?,
                }
            }
            _ => Next::Key,
        };
        Ok(())
    }

    fn skip(&mut self, bytes: usize) -> Result<Next, Status> {
        self.count(bytes)?;
        Ok(match bytes {
            0 => Next::Key,
            bytes => Next::Skip(bytes),
        })
    }

    fn count(&mut self, bytes: usize) -> Result<(), Status> {
        self.beside = self.beside.saturating_add(bytes);
        if self.beside <= BESIDE_PAYLOAD {
            return Ok(());
        }
        Err(Status::resource_exhausted(format!(
            "the request has more than {BESIDE_PAYLOAD} bytes beside the payload of a record; \
             send fewer names, masks or annotations"
        )))
    }
}

#[cfg(test)]
mod tests {
    use hindsight_proto::v1alpha2::{Any, CreateRecordRequest, Record, UpdateRecordRequest};
    use prost_reflect::prost::Message as _;
    use prost_types::FieldMask;

    use super::*;

    fn record(payload: usize) -> Record {
        Record {
            name: "a/results/b/records/c".to_owned(),
            data: Some(Any {
                r#type: "tekton.dev/v1.TaskRun".to_owned(),
                value: vec![0xff; payload].into(),
            }),
            ..Record::default()
        }
    }

    /// In parts of some sizes; the first is a byte.
    fn read(message: &[u8]) -> Result<(), Status> {
        let mut outline = Outline::default();
        let (mut rest, mut part) = (message, 1);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(part.min(rest.len()));
            outline.read(now)?;
            (rest, part) = (later, part * 3 % 70_001);
        }
        Ok(())
    }

    #[test]
    fn a_payload_may_be_as_large_as_a_message() {
        for payload in [0, 1, 60_000, 70_000, 1 << 20, (1 << 20) + 1, 31 << 20] {
            let create = CreateRecordRequest {
                parent: "a/results/b".to_owned(),
                record: Some(record(payload)),
            };
            read(&create.encode_to_vec()).unwrap();
            let update = UpdateRecordRequest {
                record: Some(record(payload)),
                update_mask: Some(FieldMask {
                    paths: vec!["data".to_owned()],
                }),
                etag: "x".repeat(1000),
            };
            read(&update.encode_to_vec()).unwrap();
        }
    }

    #[test]
    fn what_is_beside_the_payload_is_little() {
        let paths = |count: usize, path: &str| UpdateRecordRequest {
            record: Some(record(2 << 20)),
            update_mask: Some(FieldMask {
                paths: vec![path.to_owned(); count],
            }),
            etag: String::new(),
        };
        read(&paths(500_000, "").encode_to_vec()).unwrap();
        for many in [
            paths(600_000, ""),
            paths(16 << 20, ""),
            paths(100_000, "0123456789"),
        ] {
            let refused = read(&many.encode_to_vec()).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        }
        // Whatever it is: bytes that are no message, and lengths without an end.
        for rubbish in [
            vec![0x08; 2 << 20],
            vec![0xff; 2 << 20],
            vec![0x0b; 2 << 20],
        ] {
            read(&rubbish).unwrap_err();
        }
        read(&[
            0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ])
        .unwrap();
    }
}
