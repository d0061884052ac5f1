//! Page tokens: where a list goes on, and by which filter and order. What they say is checked as that of a request is.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{
    MAX_FILTER, Position, Predicate, Scope, Sort,
    field::{Field, Listable},
};
use crate::error::Error;

/// Longest token that is read: what is in it may be written in more bytes than it came in.
const MAX_TOKEN: usize = 8 * MAX_FILTER;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Token {
    pub(super) scope: Scope,
    pub(super) predicates: Vec<Predicate>,
    pub(super) sort: Sort,
    pub(super) after: Position,
}

/// In letters that need no escapes in a query.
pub(super) fn write(token: &Token) -> String {
    let json = serde_json::to_vec(token).expect("texts and numbers are JSON");
    URL_SAFE_NO_PAD.encode(json)
}

pub(super) fn read(text: &str, of: Listable) -> Result<Token, Error> {
    let invalid = || Error::invalid("Invalid page token");
    if text.len() > MAX_TOKEN {
        return Err(invalid());
    }
    let json = URL_SAFE_NO_PAD.decode(text).ok();
    let token: Option<Token> = json.and_then(|json| serde_json::from_slice(&json).ok());
    let token = token.ok_or_else(invalid)?;
    let makes_sense = token.predicates.iter().all(|predicate| predicate.is_of(of))
        && !matches!(token.sort.field, Field::Tag(_))
        && token.sort.field.is_of(of)
        && token.sort.has(&token.after.key);
    match makes_sense {
        true => Ok(token),
        false => Err(invalid()),
    }
}
