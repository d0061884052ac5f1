//! Impersonation: the rights that a caller needs for it, and the identity that it gives.
//!
//! The rules are those of the Kubernetes API server. Unlike Tekton Results, the caller's groups
//! count when it is asked whether they may impersonate.

use std::sync::Arc;

use super::access_review::{Attributes, Subject};
use crate::auth::{ActingFor, Error};

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// How many groups and extra values may be named; each is a question to the API server.
const MOST: usize = 32;

/// Somebody a caller wants to be.
#[derive(Debug)]
pub(super) struct Impersonation {
    needed: Vec<Attributes>,
    subject: Arc<Subject>,
}

impl Impersonation {
    /// Makes sense of what was said.
    ///
    /// # Errors
    /// If it makes none.
    pub(super) fn read(acting: &ActingFor) -> Result<Self, Error> {
        if acting.unreadable {
            return Err(Error::Impersonation("a value cannot be read"));
        }
        let Some(user) = acting.user.as_deref() else {
            return Err(Error::Impersonation("they name no user"));
        };
        let values: usize = acting.extra.values().map(Vec::len).sum();
        if acting.groups.len() + values > MOST {
            return Err(Error::Impersonation("they name too many groups and extras"));
        }
        Ok(Self {
            needed: needed(user, acting),
            subject: Arc::new(Subject::new(
                user.to_owned(),
                acting.uid.clone().unwrap_or_default(),
                groups(user, &acting.groups),
                acting.extra.clone(),
            )),
        })
    }

    /// What the caller must be allowed to do, all of it.
    pub(super) fn needed(&self) -> &[Attributes] {
        &self.needed
    }

    /// Who they are then.
    pub(super) fn subject(&self) -> &Arc<Subject> {
        &self.subject
    }
}

fn needed(user: &str, acting: &ActingFor) -> Vec<Attributes> {
    let on = |group, resource, name: &str| Attributes {
        group,
        resource,
        name: name.to_owned(),
        verb: "impersonate",
        ..Attributes::default()
    };
    let mut needed = vec![match service_account(user) {
        Some((namespace, name)) => Attributes {
            namespace: namespace.to_owned(),
            ..on("", "serviceaccounts", name)
        },
        None => on("", "users", user),
    }];
    needed.extend(acting.groups.iter().map(|group| on("", "groups", group)));
    needed.extend(acting.uid.iter().map(|uid| on(AUTHENTICATION, "uids", uid)));
    for (key, values) in &acting.extra {
        needed.extend(values.iter().map(|value| Attributes {
            subresource: key.clone(),
            ..on(AUTHENTICATION, "userextras", value)
        }));
    }
    needed
}

/// Groups of an impersonated user for whom `named` were asked.
fn groups(user: &str, named: &[String]) -> Vec<String> {
    let mut groups = named.to_vec();
    if let (Some((namespace, _)), true) = (service_account(user), named.is_empty()) {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let has = |group: &str| groups.iter().any(|known| known == group);
    let added = match user {
        "system:anonymous" => UNAUTHENTICATED,
        _ if has(UNAUTHENTICATED) => return groups,
        _ => AUTHENTICATED,
    };
    if !has(added) {
        groups.push(added.to_owned());
    }
    groups
}

/// Namespace and name of a service account, if `user` is one.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let whole = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    whole.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_from_the_name_where_none_are_asked_for() {
        let cases: [(&str, &[&str], &[&str]); 7] = [
            ("ann", &[], &[AUTHENTICATED]),
            ("ann", &["dev"], &["dev", AUTHENTICATED]),
            ("ann", &[AUTHENTICATED], &[AUTHENTICATED]),
            ("ann", &[UNAUTHENTICATED], &[UNAUTHENTICATED]),
            ("system:anonymous", &[], &[UNAUTHENTICATED]),
            (
                "system:serviceaccount:ci:robot",
                &[],
                &[
                    "system:serviceaccounts",
                    "system:serviceaccounts:ci",
                    AUTHENTICATED,
                ],
            ),
            (
                "system:serviceaccount:ci:robot",
                &["dev"],
                &["dev", AUTHENTICATED],
            ),
        ];
        for (user, named, expected) in cases {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(groups(user, &named), expected, "{user} {named:?}");
        }
    }

    #[test]
    fn only_a_whole_name_is_a_service_account() {
        assert_eq!(
            service_account("system:serviceaccount:ci:robot"),
            Some(("ci", "robot"))
        );
        for user in [
            "ann",
            "system:serviceaccount:ci",
            "system:serviceaccount:ci:",
            "system:serviceaccount::a",
            "system:serviceaccount:a:b:c",
        ] {
            assert_eq!(service_account(user), None, "{user}");
        }
    }
}
