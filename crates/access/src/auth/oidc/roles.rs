//! The file of roles: what groups and users of an issuer may do.

use serde::Deserialize;

use crate::auth::{
    Access,
    rights::{self, Granted, Rights},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(default)]
    roles: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    users: Vec<String>,
    grants: Vec<Rights>,
}

/// What everybody may do.
pub(super) struct Roles(Vec<Role>);

struct Role {
    groups: Vec<String>,
    users: Vec<String>,
    grants: Vec<Granted>,
}

impl Roles {
    /// Makes sense of the text; the error says where it makes none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let whole: Whole = rights::parse(text)?;
        let roles = whole.roles.into_iter().enumerate().map(|(at, entry)| {
            let number = at + 1;
            if entry.groups.is_empty() && entry.users.is_empty() {
                return Err(format!(
                    "role {number} is bound to no group or user; name one"
                ));
            }
            let grants = entry
                .grants
                .iter()
                .map(Rights::granted)
                .collect::<Result<_, _>>();
            Ok(Role {
                grants: grants.map_err(|why| format!("role {number}: {why}"))?,
                groups: entry.groups,
                users: entry.users,
            })
        });
        Ok(Self(roles.collect::<Result<_, _>>()?))
    }

    /// Whether a role of the user or of one of the groups grants the access.
    pub(super) fn allow(&self, name: &str, groups: &[String], access: &Access) -> bool {
        self.0.iter().any(|role| {
            let is_theirs = role.users.iter().any(|user| user == name)
                || role.groups.iter().any(|group| groups.contains(group));
            is_theirs && role.grants.iter().any(|grant| grant.allows(access))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_makes_no_sense_says_where_and_shows_no_token() {
        let cases = [
            (
                "[[roles]]\ngroups = ['a']\ngrants = []\ntoken = 'hunter2'",
                "line 4: unknown field `token`",
            ),
            (
                "[[roles]]\ngroups = 'hunter2'\ngrants = []",
                "line 2: invalid type",
            ),
            (
                "[[roles]]\ngrants = []",
                "role 1 is bound to no group or user",
            ),
        ];
        for (text, says) in cases {
            let error = Roles::parse(text).err().unwrap();
            assert!(error.contains(says), "`{error}` does not say `{says}`");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
