//! Token and access reviews, answered by a policy that a test writes. Requests to the simulator
//! itself are never checked against it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::refusal::Refusal;

/// Who may do what, and which token is whose.
#[derive(Debug, Default)]
pub struct Policy(Mutex<Rules>);

#[derive(Debug, Default)]
struct Rules {
    tokens: Vec<Token>,
    grants: Vec<Grant>,
    token_reviews: u64,
    access_reviews: u64,
}

#[derive(Debug, Clone)]
struct Token {
    text: String,
    user: String,
    groups: Vec<String>,
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
    fn allows(&self, subjects: &[&str], attributes: &Value) -> bool {
        let text = |field: &str| attributes[field].as_str().unwrap_or_default();
        let fits = |allowed: &str, asked: &str| allowed == "*" || allowed == asked;
        let resource = match text("subresource") {
            "" => text("resource").to_owned(),
            subresource => format!("{}/{subresource}", text("resource")),
        };
        subjects.contains(&self.subject.as_str())
            && fits(&self.verb, text("verb"))
            && fits(&self.group, text("group"))
            && fits(&self.resource, &resource)
            && fits(&self.namespace, text("namespace"))
    }
}

impl Policy {
    /// From now on `token` authenticates as `user`, a member of `groups` and of `system:authenticated`.
    pub fn token(&self, token: &str, user: &str, groups: &[&str]) -> &Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let mut rules = self.rules();
        rules.tokens.retain(|known| known.text != token);
        rules.tokens.push(Token {
            text: token.into(),
            user: user.into(),
            groups,
        });
        drop(rules);
        self
    }

    /// From now on `token` authenticates nobody.
    pub fn revoke_token(&self, token: &str) -> &Self {
        self.rules().tokens.retain(|known| known.text != token);
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

    /// Forgets every token and every permission; the counts stay.
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

    /// Answers a `TokenReview`.
    ///
    /// # Errors
    /// 400 without a token.
    pub(crate) fn review_token(&self, mut review: Value) -> Result<Value, Refusal> {
        let token = review["spec"]["token"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if token.is_empty() {
            return Err(Refusal::bad_request(
                "token is required for TokenReview in authentication",
            ));
        }
        let mut rules = self.rules();
        rules.token_reviews += 1;
        let found = rules.tokens.iter().find(|known| known.text == token);
        review["status"] = match found {
            None => json!({"user": {}, "error": "[invalid bearer token]"}),
            Some(found) => {
                let mut groups = found.groups.clone();
                groups.push("system:authenticated".into());
                let mut status = json!({
                    "authenticated": true,
                    "user": {"username": found.user, "uid": format!("uid-of-{}", found.user), "groups": groups},
                });
                if let Some(audiences) = review["spec"].get("audiences") {
                    status["audiences"] = audiences.clone();
                }
                status
            }
        };
        Ok(review)
    }

    /// Answers a `SubjectAccessReview`.
    ///
    /// # Errors
    /// 422 without a subject, or without exactly one kind of attributes.
    pub(crate) fn review_access(&self, mut review: Value) -> Result<Value, Refusal> {
        let spec = review["spec"].clone();
        let user = spec["user"].as_str().unwrap_or_default();
        let groups = spec["groups"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let subjects: Vec<&str> = std::iter::once(user)
            .chain(groups.iter().filter_map(Value::as_str))
            .filter(|subject| !subject.is_empty())
            .collect();
        if subjects.is_empty() {
            return Err(invalid(
                "spec.user: Invalid value: \"\": at least one of user or group must be specified",
            ));
        }
        let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        if resource.is_object() == other.is_object() {
            return Err(invalid(
                "spec.resourceAttributes: Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified",
            ));
        }
        let mut rules = self.rules();
        rules.access_reviews += 1;
        let allowed = subjects.contains(&"system:masters")
            || resource.is_object()
                && rules
                    .grants
                    .iter()
                    .any(|grant| grant.allows(&subjects, resource));
        review["status"] = if allowed {
            json!({"allowed": true, "reason": "allowed by the simulated policy"})
        } else {
            json!({"allowed": false})
        };
        Ok(review)
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

fn invalid(why: &str) -> Refusal {
    let message = format!("SubjectAccessReview.authorization.k8s.io \"\" is invalid: {why}");
    Refusal::new(422, "Invalid", message)
}
