//! Which token is whose, what users are allowed beside the roles of the cluster, and whether requests
//! are checked at all. What is made of it for one request is in `access`.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use http::{HeaderMap, header};

use crate::{
    rbac::{Attributes, User},
    refusal::Refusal,
};

/// The audience of the server itself.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";

/// The token in kubeconfigs of whoever may do everything.
pub(crate) const ADMIN_TOKEN: &str = "kubesim-admin";

/// Who may do what, and which token is whose.
///
/// Requests are allowed by `Role`, `ClusterRole` and their bindings, which are objects of the cluster
/// as any other, and by [`Policy::allow`]. Access reviews are answered from both, always. Requests to
/// the simulator itself are checked after [`Policy::enforce`].
#[derive(Debug, Default)]
pub struct Policy(Mutex<Rules>);

#[derive(Debug, Default)]
pub(crate) struct Rules {
    enforced: bool,
    tokens: BTreeMap<String, Token>,
    grants: Vec<Grant>,
    pub(crate) token_reviews: u64,
    pub(crate) access_reviews: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    subject: String,
    verb: String,
    group: String,
    resource: String,
    namespace: String,
}

impl Grant {
    fn allows(&self, user: &User, asked: &Attributes) -> bool {
        let fits = |allowed: &str, asked: &str| allowed == "*" || allowed == asked;
        asked.path.is_empty()
            && (self.subject == user.name || user.groups.contains(&self.subject))
            && fits(&self.verb, &asked.verb)
            && fits(&self.group, &asked.group)
            && fits(&self.resource, &asked.combined())
            && fits(&self.namespace, &asked.namespace)
    }
}

impl Policy {
    /// From now on requests are checked: a token nobody has is 401, what is not allowed 403. Requests
    /// without a token are of `system:anonymous`. What `Sim::client` asks stays allowed.
    pub fn enforce(&self) -> &Self {
        self.rules().enforced = true;
        self
    }

    /// From now on `token` authenticates as `user`, a member of `groups` and of `system:authenticated`.
    pub fn token(&self, token: &str, user: &str, groups: &[&str]) -> &Self {
        let known = Token {
            user: User::named(user, groups),
            audiences: vec![AUDIENCE.into()],
            extra: BTreeMap::new(),
        };
        self.rules().tokens.insert(token.into(), known);
        self
    }

    /// From now on a known `token` is for these audiences, and not for the server itself.
    pub fn audiences(&self, token: &str, audiences: &[&str]) -> &Self {
        self.edit(token, |known| {
            known.audiences = audiences.iter().map(|one| (*one).to_owned()).collect();
        })
    }

    /// From now on reviews of a known `token` tell this, too.
    pub fn extra(&self, token: &str, key: &str, values: &[&str]) -> &Self {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        self.edit(token, |known| {
            known.extra.insert(key.into(), values);
        })
    }

    /// From now on `token` authenticates nobody.
    pub fn revoke_token(&self, token: &str) -> &Self {
        self.rules().tokens.remove(token);
        self
    }

    /// Allows a user or group to do `verb` on `resource` (or `resource/subresource`) in `namespace`.
    ///
    /// `*` stands for anything. As with a cluster role binding, only the namespace `*` allows a
    /// request across all namespaces.
    pub fn allow(
        &self,
        subject: &str,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> &Self {
        self.rules()
            .grants
            .push(grant(subject, verb, group, resource, namespace));
        self
    }

    /// Takes back what the same call of `allow` gave.
    pub fn revoke(
        &self,
        subject: &str,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> &Self {
        let taken = grant(subject, verb, group, resource, namespace);
        self.rules().grants.retain(|known| *known != taken);
        self
    }

    /// Forgets every token and every permission given here; the counts stay.
    pub fn clear(&self) {
        let mut rules = self.rules();
        rules.tokens.clear();
        rules.grants.clear();
    }

    /// How many token reviews were answered.
    pub fn token_reviews(&self) -> u64 {
        self.rules().token_reviews
    }

    /// How many subject access reviews were answered.
    pub fn access_reviews(&self) -> u64 {
        self.rules().access_reviews
    }

    /// Whose request it is.
    ///
    /// # Errors
    /// 401 for a token that is nobody's or for somebody else than the server.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<User, Refusal> {
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        let rules = self.rules();
        let known = token.and_then(|token| rules.tokens.get(token));
        match (known, token) {
            (Some(known), _) if known.audiences.iter().any(|one| one == AUDIENCE) => {
                Ok(known.user.clone())
            }
            (_, Some(ADMIN_TOKEN)) => Ok(User::admin()),
            _ if !rules.enforced => Ok(User::admin()),
            (_, None) => Ok(User::anonymous()),
            (_, Some(_)) => Err(Refusal::new(401, "Unauthorized", "Unauthorized")),
        }
    }

    pub(crate) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn edit(&self, token: &str, change: impl FnOnce(&mut Token)) -> &Self {
        if let Some(known) = self.rules().tokens.get_mut(token) {
            change(known);
        }
        self
    }
}

impl Rules {
    pub(crate) fn known(&self, token: &str) -> Option<&Token> {
        self.tokens.get(token)
    }

    /// Whether requests are checked at all.
    pub(crate) fn enforced(&self) -> bool {
        self.enforced
    }

    /// Whether `user` was allowed here to do what is asked.
    pub(crate) fn allows(&self, user: &User, asked: &Attributes) -> bool {
        self.grants.iter().any(|grant| grant.allows(user, asked))
    }
}

fn grant(subject: &str, verb: &str, group: &str, resource: &str, namespace: &str) -> Grant {
    Grant {
        subject: subject.into(),
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        namespace: namespace.into(),
    }
}
