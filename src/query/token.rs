//! Page tokens: a place in a list, sealed so that it is good for that list only.
//!
//! A token holds the last row's id and its values of the order's keys, encrypted: they tell how much
//! everybody writes, and what is in rows. The list it belongs to (method, parent, filter, order) is
//! authenticated with it, under a key that all replicas share. It is opaque and may change form from
//! version to version; an old one is then refused, never misread.

use std::sync::Arc;

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    hmac,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use hindsight_filter::order::{KeyValue, MAX_KEYS, Order, Position};

const VERSION: u8 = 3;
/// What the key of tokens is made for, of a secret that may have other uses.
const PURPOSE: &[u8] = b"hindsight page tokens";
/// Longer than any token, in bytes: a few annotations, in base64.
const MOST: usize = 4 << 20;

/// Why a token is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is not a token at all.
    #[error("the page token is malformed; send `next_page_token` of the previous page unchanged")]
    Malformed,
    /// It was sealed for another list, or under another key.
    #[error(
        "the page token belongs to another list: parent, filter and order_by must be the same \
         as on the page before"
    )]
    Foreign,
}

/// The list that a token belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// Name of the listing method; a token of another method is foreign.
    pub method: &'a str,
    /// The parent or pattern, as text.
    pub parent: &'a str,
    /// Trimmed text of the filter, or what stands for several selector texts.
    pub filter: &'a str,
    /// Order of the list, which a position in it depends on.
    pub order: &'a Order,
}

impl<'a> Binding<'a> {
    /// That of a list that takes no filter.
    #[must_use]
    pub fn unfiltered(method: &'a str, parent: &'a str, order: &'a Order) -> Self {
        Self {
            method,
            parent,
            filter: "",
            order,
        }
    }
}

/// Seals and opens tokens.
#[derive(Clone)]
pub struct Tokens {
    key: Arc<RandomizedNonceKey>,
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
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let key = hmac::sign(&secret, PURPOSE);
        let key = RandomizedNonceKey::new(&AES_256_GCM_SIV, key.as_ref());
        Self {
            key: Arc::new(key.expect("a digest of SHA-256 has the length of a key")),
        }
    }

    /// The token for the rows after `position`.
    #[must_use]
    pub fn seal(&self, position: &Position, binding: &Binding<'_>) -> String {
        let mut body = position.id.to_be_bytes().to_vec();
        for key in &position.keys {
            match key {
                None => body.push(0),
                Some(KeyValue::Int(number)) => {
                    body.push(1);
                    body.extend(number.to_be_bytes());
                }
                Some(KeyValue::Text(text)) => {
                    body.push(2);
                    body.extend((text.len() as u64).to_be_bytes());
                    body.extend(text.as_bytes());
                }
            }
        }
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(context(binding)), &mut body)
            .expect("the system has random numbers");
        let mut token = vec![VERSION];
        token.extend(nonce.as_ref());
        token.extend(body);
        URL_SAFE_NO_PAD.encode(token)
    }

    /// The place that `token` stands for.
    ///
    /// # Errors
    /// If it is no token, or not of this list.
    pub fn open(&self, token: &str, binding: &Binding<'_>) -> Result<Position, TokenError> {
        if token.len() > MOST {
            return Err(TokenError::Malformed);
        }
        let mut bytes = URL_SAFE_NO_PAD
            .decode(token)
            .map_err(|_e| TokenError::Malformed)?;
        let (nonce, body) = match bytes.split_first_mut() {
            Some((&mut VERSION, rest)) => rest.split_first_chunk_mut::<NONCE_LEN>(),
            _ => None,
        }
        .ok_or(TokenError::Malformed)?;
        let body = self
            .key
            .open_in_place(Nonce::from(&*nonce), Aad::from(context(binding)), body)
            .map_err(|_e| TokenError::Foreign)?;
        position(body).ok_or(TokenError::Malformed)
    }

    /// The token for what follows the row of this number, in a list that has one order and no filter.
    #[must_use]
    pub fn seal_row(&self, row: i64, method: &str, parent: &str) -> String {
        let (id, keys) = (row, Vec::new());
        let order = Order::newest_first();
        let binding = Binding::unfiltered(method, parent, &order);
        self.seal(&Position { keys, id }, &binding)
    }

    /// The number of the row that such a token stands for; below all rows without a token.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_row(&self, token: &str, method: &str, parent: &str) -> Result<i64, TokenError> {
        if token.is_empty() {
            return Ok(i64::MIN);
        }
        let order = Order::newest_first();
        let opened = self.open(token, &Binding::unfiltered(method, parent, &order));
        opened.map(|position| position.id)
    }
}

/// What a token is authenticated with: the list it belongs to.
fn context(binding: &Binding<'_>) -> Vec<u8> {
    let order = binding.order.to_string();
    let mut context = vec![VERSION];
    for part in [binding.method, binding.parent, binding.filter, &order] {
        // Lengths go in too, so that two lists never run together into the same bytes.
        context.extend((part.len() as u64).to_be_bytes());
        context.extend(part.as_bytes());
    }
    context
}

/// The place that is written in a token.
fn position(body: &[u8]) -> Option<Position> {
    let (id, mut rest) = body.split_first_chunk()?;
    let mut keys = Vec::new();
    while let Some((&form, after)) = rest.split_first() {
        let (key, after) = match form {
            0 => (None, after),
            1 => {
                let (number, after) = after.split_first_chunk()?;
                (Some(KeyValue::Int(i64::from_be_bytes(*number))), after)
            }
            2 => {
                let (size, after) = after.split_first_chunk()?;
                let size = usize::try_from(u64::from_be_bytes(*size)).ok()?;
                let (text, after) = after.split_at_checked(size)?;
                let text = std::str::from_utf8(text).ok()?;
                (Some(KeyValue::Text(text.to_owned())), after)
            }
            _ => return None,
        };
        keys.push(key);
        rest = after;
    }
    let id = i64::from_be_bytes(*id);
    (keys.len() <= MAX_KEYS).then_some(Position { keys, id })
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use hindsight_filter::condition::Column;

    static NEWEST_FIRST: LazyLock<Order> = LazyLock::new(Order::newest_first);
    static OLDEST_FIRST: LazyLock<Order> = LazyLock::new(|| Order::by(Column::CreateTime, false));

    fn place(keys: &[Option<KeyValue>], id: i64) -> Position {
        Position {
            keys: keys.to_vec(),
            id,
        }
    }

    fn first() -> Position {
        place(&[Some(KeyValue::Int(1))], 2)
    }

    fn list() -> Binding<'static> {
        Binding {
            method: "ListRecords",
            parent: "a/results/-",
            filter: "name == 'x'",
            order: &NEWEST_FIRST,
        }
    }

    #[test]
    fn a_token_opens_to_the_place_it_was_sealed_for() {
        let tokens = Tokens::new(b"key");
        let text = |text: &str| Some(KeyValue::Text(text.to_owned()));
        let number = |number| Some(KeyValue::Int(number));
        for position in [
            place(&[number(-7)], i64::MAX),
            place(&[None], 0),
            place(&[], 1),
            place(&[number(i64::MIN), None, text(""), text("é\0")], 1),
            place(&[text(&"x".repeat(2_000)), number(i64::MAX)], -1),
        ] {
            let token = tokens.seal(&position, &list());
            assert_eq!(tokens.open(&token, &list()), Ok(position));
        }
    }

    #[test]
    fn a_token_is_good_for_its_own_list_only() {
        let tokens = Tokens::new(b"key");
        let token = tokens.seal(&first(), &list());
        for other in [
            Binding {
                method: "ListResults",
                ..list()
            },
            Binding {
                parent: "b/results/-",
                ..list()
            },
            Binding {
                filter: "",
                ..list()
            },
            Binding {
                order: &OLDEST_FIRST,
                ..list()
            },
            Binding {
                parent: "a/results/-n",
                filter: "ame == 'x'",
                ..list()
            },
        ] {
            assert_eq!(tokens.open(&token, &other), Err(TokenError::Foreign));
        }
        assert_eq!(
            Tokens::new(b"other").open(&token, &list()),
            Err(TokenError::Foreign)
        );
    }

    #[test]
    fn a_token_of_a_row_is_good_for_its_own_list_only() {
        let tokens = Tokens::new(b"key");
        let token = tokens.seal_row(7, "ListHolds", "a");
        assert_eq!(tokens.open_row(&token, "ListHolds", "a"), Ok(7));
        for (method, parent) in [("ListHolds", "-"), ("ListLogs", "a")] {
            let opened = tokens.open_row(&token, method, parent);
            assert_eq!(opened, Err(TokenError::Foreign));
        }
    }

    #[test]
    fn no_bit_of_a_token_can_be_changed() {
        let tokens = Tokens::new(b"key");
        let sealed = tokens.seal(&first(), &list());
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bent = bytes.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(
                tokens.open(&URL_SAFE_NO_PAD.encode(bent), &list()).is_err(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_token_shows_nothing_of_its_row_and_two_of_one_row_differ() {
        let tokens = Tokens::new(b"key");
        let text = KeyValue::Text("a name of somebody".to_owned());
        let at = place(&[Some(text)], 0x1122_3344_5566_7788);
        let [one, two] = [(); 2].map(|()| tokens.seal(&at, &list()));
        assert_ne!(one, two);
        let bytes = URL_SAFE_NO_PAD.decode(&one).unwrap();
        for part in [&at.id.to_be_bytes()[4..], b"name", b"body"] {
            assert!(!bytes.windows(4).any(|four| four == part), "{part:?}");
        }
    }

    #[test]
    fn what_is_no_token_is_malformed() {
        let tokens = Tokens::new(b"key");
        for text in ["x", "AAAA", "====", "\u{1F600}", &"A".repeat(1000)] {
            assert_eq!(
                tokens.open(text, &list()),
                Err(TokenError::Malformed),
                "{text}"
            );
        }
    }
}
