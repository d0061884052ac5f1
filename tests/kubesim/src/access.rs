//! Who sends a request and whether they may: the policy, then the roles of the cluster.

use http::HeaderMap;

use crate::{
    rbac::{Attributes, MASTERS, User},
    refusal::Refusal,
    shared::Shared,
};

impl Shared {
    /// Whether `user` may do what is asked, and by which rule.
    ///
    /// # Errors
    /// When not, with what is wrong with the roles, or nothing.
    pub(crate) fn authorize(&self, user: &User, asked: &Attributes) -> Result<String, String> {
        if self.policy.rules().allows(user, asked) {
            return Ok("allowed by the simulated policy".into());
        }
        self.world().authorize(user, asked)
    }

    /// Whose request it is; of somebody else, where its headers say so and its sender may.
    ///
    /// # Errors
    /// 401 for a token that is nobody's, 403 for a sender who may not speak for others.
    pub(crate) fn sender(
        &self,
        known: Option<&User>,
        headers: &HeaderMap,
    ) -> Result<User, Refusal> {
        let sender = match known {
            Some(user) => user.clone(),
            None => self.policy.authenticate(headers)?,
        };
        let all = |name: &str| {
            let values = headers.get_all(name).into_iter();
            values
                .filter_map(|value| value.to_str().ok())
                .collect::<Vec<_>>()
        };
        let (users, groups) = (all("impersonate-user"), all("impersonate-group"));
        let Some(name) = users.first() else {
            return Ok(sender);
        };
        let account = name.strip_prefix("system:serviceaccount:");
        let (resource, namespace, short) = match account.and_then(|account| account.split_once(':'))
        {
            Some((namespace, short)) => ("serviceaccounts", namespace, short),
            None => ("users", "", *name),
        };
        let wanted = groups.iter().map(|group| ("groups", "", *group));
        for (resource, namespace, name) in wanted.chain([(resource, namespace, short)]) {
            let asked = Attributes {
                verb: "impersonate".into(),
                resource: resource.into(),
                namespace: namespace.into(),
                name: name.into(),
                ..Attributes::default()
            };
            self.check(&sender, &asked)?;
        }
        if *name == "system:anonymous" {
            return Ok(User::anonymous());
        }
        Ok(User::named(name, &groups))
    }

    /// Checks a request, where requests are checked.
    ///
    /// # Errors
    /// 403 when it is not allowed.
    pub(crate) fn check(&self, user: &User, asked: &Attributes) -> Result<(), Refusal> {
        let free = user.groups.iter().any(|group| group == MASTERS);
        if free || !self.policy.rules().enforced() {
            return Ok(());
        }
        match self.authorize(user, asked) {
            Ok(_) => Ok(()),
            Err(reason) => Err(asked.refuse(user, &reason)),
        }
    }
}
