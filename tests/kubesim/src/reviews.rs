//! Answers to token and access reviews. Who may do what is decided in `policy` and `rbac`.

use serde_json::{Value, json};

use crate::{
    policy::AUDIENCE,
    rbac::{Attributes, User},
    refusal::Refusal,
    shared::Shared,
};

impl Shared {
    /// Answers a review of the kind with this plural, which `user` asks for.
    ///
    /// # Errors
    /// 400 or 422 when the question is incomplete.
    pub(crate) fn review(
        &self,
        plural: &str,
        user: &User,
        review: Value,
    ) -> Result<Value, Refusal> {
        match plural {
            "tokenreviews" => self.review_token(review),
            "selfsubjectaccessreviews" => {
                self.review_access(user, "SelfSubjectAccessReview", review)
            }
            _ => {
                let groups = review["spec"]["groups"].as_array();
                let groups = groups.into_iter().flatten().filter_map(Value::as_str);
                let subject = User {
                    name: review["spec"]["user"].as_str().unwrap_or_default().into(),
                    groups: groups.map(str::to_owned).collect(),
                };
                if subject == User::default() {
                    return Err(invalid(
                        "SubjectAccessReview",
                        "spec.user: Invalid value: \"\": at least one of user or group must be specified",
                    ));
                }
                self.review_access(&subject, "SubjectAccessReview", review)
            }
        }
    }

    fn review_token(&self, mut review: Value) -> Result<Value, Refusal> {
        let token = review["spec"]["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            return Err(Refusal::bad_request(
                "token is required for TokenReview in authentication",
            ));
        }
        let asked = review["spec"]["audiences"].as_array();
        let asked = asked.into_iter().flatten().filter_map(Value::as_str);
        let mut asked: Vec<&str> = asked.collect();
        if asked.is_empty() {
            asked.push(AUDIENCE);
        }
        let mut rules = self.policy.rules();
        rules.token_reviews += 1;
        let known = rules.known(token).map(|known| {
            let both = known
                .audiences
                .iter()
                .filter(|one| asked.contains(&one.as_str()));
            (known, both.collect::<Vec<_>>())
        });
        let status = match known {
            None => json!({"user": {}, "error": "[invalid bearer token]"}),
            Some((known, both)) if both.is_empty() => {
                let (has, wants) = (known.audiences.join(" "), asked.join(" "));
                let why = format!(
                    "token audiences [{has}] is invalid for the target audiences [{wants}]"
                );
                json!({"user": {}, "error": format!("[invalid bearer token, {why}]")})
            }
            Some((known, both)) => {
                let User { name, groups } = &known.user;
                let uid = format!("uid-of-{name}");
                let mut user = json!({"username": name, "uid": uid, "groups": groups});
                if !known.extra.is_empty() {
                    user["extra"] = json!(known.extra);
                }
                json!({"authenticated": true, "user": user, "audiences": both})
            }
        };
        review["status"] = status;
        Ok(review)
    }

    fn review_access(&self, user: &User, kind: &str, mut review: Value) -> Result<Value, Refusal> {
        let (resource, other) = (
            &review["spec"]["resourceAttributes"],
            &review["spec"]["nonResourceAttributes"],
        );
        let attributes = match (resource.is_object(), other.is_object()) {
            (true, false) => resource,
            (false, true) => other,
            _ => {
                let why = "spec.resourceAttributes: Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified";
                return Err(invalid(kind, why));
            }
        };
        let asked: Attributes = serde_json::from_value(attributes.clone()).map_err(|error| {
            Refusal::bad_request(format!("the attributes of the review: {error}"))
        })?;
        self.policy.rules().access_reviews += 1;
        review["status"] = match self.authorize(user, &asked) {
            Ok(reason) => json!({"allowed": true, "reason": reason}),
            Err(reason) if reason.is_empty() => json!({"allowed": false}),
            Err(reason) => json!({"allowed": false, "reason": reason}),
        };
        Ok(review)
    }
}

fn invalid(kind: &str, why: &str) -> Refusal {
    let message = format!("{kind}.authorization.k8s.io \"\" is invalid: {why}");
    Refusal::new(422, "Invalid", message)
}
