//! The file of users, as text and as what follows from it.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;

use crate::auth::{
    Access, Caller,
    rights::{self, Granted, Rights},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(default)]
    users: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: Vec<String>,
    #[serde(default)]
    grants: Vec<Rights>,
}

/// Users by the digests of their tokens.
pub(super) struct Table {
    users: Vec<User>,
    by_token: HashMap<[u8; 32], usize>,
}

/// What one user may do.
pub(super) struct User {
    caller: Arc<Caller>,
    grants: Vec<Granted>,
}

impl Table {
    /// Makes sense of the text; the error says where it makes none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let whole: Whole = rights::parse(text)?;
        let mut table = Self {
            users: Vec::new(),
            by_token: HashMap::new(),
        };
        for entry in whole.users {
            let at = table.users.len();
            for text in &entry.sha256 {
                let digest = hash(text).ok_or_else(|| {
                    format!(
                        "user `{}`: a sha256 is not 64 hexadecimal digits; `hindsight token` \
                         makes a token and prints its own",
                        entry.name
                    )
                })?;
                if table.by_token.insert(digest, at).is_some() {
                    return Err(format!("user `{}`: a sha256 is there twice", entry.name));
                }
            }
            let grants = entry
                .grants
                .iter()
                .map(Rights::granted)
                .collect::<Result<_, _>>();
            let grants = grants.map_err(|why| format!("user `{}`: {why}", entry.name))?;
            let caller = Caller {
                name: entry.name,
                by: None,
            };
            table.users.push(User {
                caller: Arc::new(caller),
                grants,
            });
        }
        Ok(table)
    }

    pub(super) fn user(&self, token: &[u8; 32]) -> Option<&User> {
        self.by_token.get(token).map(|at| &self.users[*at])
    }

    /// How many there are.
    pub(super) fn users(&self) -> usize {
        self.users.len()
    }
}

impl User {
    pub(super) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    pub(super) fn may(&self, access: &Access) -> bool {
        self.grants.iter().any(|grant| grant.allows(access))
    }
}

/// The 32 bytes that 64 hexadecimal digits are.
fn hash(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
