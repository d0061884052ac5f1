//! Page tokens: a place in a list, sealed so that it is good for that list only.
//!
//! A token holds no text: the list it belongs to (method, parent, filter, order) goes into its
//! seal, an HMAC-SHA256 under a key that all replicas share. It is opaque and may change form
//! from version to version; an old one is then refused, never misread.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::model::{Order, OrderField, Position};

const VERSION: u8 = 1;
const SEAL: usize = 16;
const BODY: usize = 1 + 1 + 8 + 8;

/// Why a token is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is not a token at all.
    #[error("the page token is malformed; send `next_page_token` of the previous page unchanged")]
    Malformed,
    /// It was sealed for another list, or by somebody else.
    #[error(
        "the page token belongs to another list: parent, filter and order_by must be the same \
         as on the page before"
    )]
    Foreign,
}

/// The list that a token belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// The method.
    pub method: &'a str,
    /// The parent or pattern, as text.
    pub parent: &'a str,
    /// The filter, trimmed.
    pub filter: &'a str,
    /// The order.
    pub order: Order,
}

/// Seals and opens tokens.
#[derive(Clone)]
pub struct Tokens {
    key: Hmac<Sha256>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens(***)")
    }
}

impl Tokens {
    /// Tokens under `secret`, which all replicas must share.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self {
            key: Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"),
        }
    }

    /// The token for the rows after `position`.
    #[must_use]
    pub fn seal(&self, position: Position, binding: &Binding<'_>) -> String {
        let mut token = Vec::with_capacity(BODY + SEAL);
        token.push(VERSION);
        token.push(u8::from(position.key.is_some()));
        token.extend(position.key.unwrap_or_default().to_be_bytes());
        token.extend(position.id.to_be_bytes());
        let seal = self.mac(&token, binding).finalize().into_bytes();
        token.extend(&seal[..SEAL]);
        URL_SAFE_NO_PAD.encode(token)
    }

    /// The place that `token` stands for.
    ///
    /// # Errors
    /// If it is no token, or not of this list.
    pub fn open(&self, token: &str, binding: &Binding<'_>) -> Result<Position, TokenError> {
        let bytes = URL_SAFE_NO_PAD
            .decode(token)
            .map_err(|_e| TokenError::Malformed)?;
        let (body, seal) = bytes.split_at_checked(BODY).ok_or(TokenError::Malformed)?;
        if seal.len() != SEAL || body[0] != VERSION || body[1] > 1 {
            return Err(TokenError::Malformed);
        }
        self.mac(body, binding)
            .verify_truncated_left(seal)
            .map_err(|_e| TokenError::Foreign)?;
        let number = |at: usize| {
            i64::from_be_bytes(
                body[at..at + 8]
                    .try_into()
                    .expect("the body has its length"),
            )
        };
        Ok(Position {
            key: (body[1] == 1).then(|| number(2)),
            id: number(10),
        })
    }

    fn mac(&self, body: &[u8], binding: &Binding<'_>) -> Hmac<Sha256> {
        let mut mac = self.key.clone();
        mac.update(body);
        let order: &[u8] = match binding.order.field {
            OrderField::CreateTime => b"c",
            OrderField::UpdateTime => b"u",
            OrderField::SummaryStartTime => b"s",
            OrderField::SummaryEndTime => b"e",
        };
        for part in [
            binding.method.as_bytes(),
            binding.parent.as_bytes(),
            binding.filter.as_bytes(),
            order,
            &[u8::from(binding.order.descending)],
        ] {
            // Lengths go in too, so that two lists never run together into the same bytes.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Binding<'static> = Binding {
        method: "ListRecords",
        parent: "a/results/-",
        filter: "name == 'x'",
        order: Order::NEWEST_FIRST,
    };

    #[test]
    fn a_token_opens_to_the_place_it_was_sealed_for() {
        let tokens = Tokens::new(b"key");
        for position in [
            Position {
                key: Some(-7),
                id: i64::MAX,
            },
            Position { key: None, id: 0 },
            Position {
                key: Some(i64::MIN),
                id: 1,
            },
        ] {
            let token = tokens.seal(position, &LIST);
            assert_eq!(tokens.open(&token, &LIST), Ok(position));
        }
    }

    #[test]
    fn a_token_is_good_for_its_own_list_only() {
        let tokens = Tokens::new(b"key");
        let token = tokens.seal(
            Position {
                key: Some(1),
                id: 2,
            },
            &LIST,
        );
        let oldest = Order {
            descending: false,
            ..Order::NEWEST_FIRST
        };
        for other in [
            Binding {
                method: "ListResults",
                ..LIST
            },
            Binding {
                parent: "b/results/-",
                ..LIST
            },
            Binding { filter: "", ..LIST },
            Binding {
                order: oldest,
                ..LIST
            },
            Binding {
                parent: "a/results/-n",
                filter: "ame == 'x'",
                ..LIST
            },
        ] {
            assert_eq!(tokens.open(&token, &other), Err(TokenError::Foreign));
        }
        assert_eq!(
            Tokens::new(b"other").open(&token, &LIST),
            Err(TokenError::Foreign)
        );
    }

    #[test]
    fn no_bit_of_a_token_can_be_changed() {
        let tokens = Tokens::new(b"key");
        let sealed = tokens.seal(
            Position {
                key: Some(1),
                id: 2,
            },
            &LIST,
        );
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bent = bytes.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(
                tokens.open(&URL_SAFE_NO_PAD.encode(bent), &LIST).is_err(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn what_is_no_token_is_malformed() {
        let tokens = Tokens::new(b"key");
        for text in ["x", "AAAA", "====", "\u{1F600}", &"A".repeat(1000)] {
            assert_eq!(
                tokens.open(text, &LIST),
                Err(TokenError::Malformed),
                "{text}"
            );
        }
    }
}
