//! SubjectAccessReview: whether a caller may do something.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};

use super::{ReviewQueue, Reviewer};
use crate::auth::{
    Access, Caller, Error,
    cache::{Key, digest},
};
use hindsight_proto::names::ParentPattern;

/// Somebody, as the cluster knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    caller: Arc<Caller>,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
    key: Key,
}

impl Subject {
    pub(super) fn new(
        user: String,
        uid: String,
        groups: Vec<String>,
        extra: BTreeMap<String, Vec<String>>,
    ) -> Self {
        let counted = [groups.len().to_be_bytes(), extra.len().to_be_bytes()];
        let extras = extra.iter().map(|(key, values)| {
            let values = digest(values.iter().map(String::as_bytes));
            digest([key.as_bytes(), &values])
        });
        let extras: Vec<_> = extras.collect();
        let parts = [user.as_bytes(), uid.as_bytes(), &counted[0], &counted[1]];
        let key = digest(
            parts
                .into_iter()
                .chain(groups.iter().map(String::as_bytes))
                .chain(extras.iter().map(<[u8; 32]>::as_slice)),
        );
        Self {
            caller: Arc::new(Caller {
                name: user,
                by: None,
            }),
            uid,
            groups,
            extra,
            key,
        }
    }

    pub(super) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }
}

/// What is asked about, in the words of the cluster. An empty namespace is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) namespace: String,
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    pub(super) subresource: String,
    pub(super) name: String,
    pub(super) verb: &'static str,
}

impl Attributes {
    pub(super) fn of(access: &Access) -> Self {
        Self {
            namespace: namespace(&access.parent).to_owned(),
            group: access.resource.group(),
            resource: access.resource.name(),
            verb: access.verb.name(),
            ..Self::default()
        }
    }

    /// What the answer for `subject` is remembered under.
    pub(super) fn key(&self, subject: &Subject) -> Key {
        digest([
            subject.key.as_slice(),
            self.namespace.as_bytes(),
            self.group.as_bytes(),
            self.resource.as_bytes(),
            self.subresource.as_bytes(),
            self.name.as_bytes(),
            self.verb.as_bytes(),
        ])
    }
}

/// The namespace whose roles decide about a parent. One of several segments may belong to
/// another cluster, about which a namespace of this one says nothing: it takes rights on all.
fn namespace(parent: &ParentPattern) -> &str {
    match parent {
        ParentPattern::Exact(parent) if !parent.as_str().contains('/') => parent.namespace(),
        ParentPattern::Exact(_) | ParentPattern::Any => "",
    }
}

impl Reviewer {
    /// Asks whether `subject` may; `None` if not.
    pub(super) async fn access(
        &self,
        subject: &Subject,
        wanted: &Attributes,
    ) -> Result<Option<()>, Error> {
        let review = review(subject, wanted);
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let ask = Box::pin(async move { api.create(&PostParams::default(), &review).await });
        let status = self
            .in_turn(&ReviewQueue::Known, ask)
            .await?
            .status
            .unwrap_or_default();
        Ok((status.allowed && status.denied != Some(true)).then_some(()))
    }
}

/// The question, as the cluster takes it. What is empty is not said.
fn review(subject: &Subject, wanted: &Attributes) -> SubjectAccessReview {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: some(&subject.caller.name),
            uid: some(&subject.uid),
            groups: Some(subject.groups.clone()),
            extra: Some(subject.extra.clone()),
            resource_attributes: Some(ResourceAttributes {
                namespace: some(&wanted.namespace),
                group: some(wanted.group),
                resource: some(wanted.resource),
                subresource: some(&wanted.subresource),
                name: some(&wanted.name),
                verb: some(wanted.verb),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth::{Guarded, Verb};

    fn subject(groups: &[&str], extra: &[(&str, &[&str])]) -> Subject {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let extra = extra.iter().map(|(key, v)| ((*key).to_owned(), owned(v)));
        Subject::new("zoe".into(), "7".into(), owned(groups), extra.collect())
    }

    #[test]
    fn the_question_says_who_wants_what_where() {
        let wanted = Attributes::of(&Access {
            verb: Verb::Update,
            resource: Guarded::Records,
            parent: "ci".parse().unwrap(),
        });
        let asked = review(&subject(&["dev"], &[("scope", &["a", "b"])]), &wanted);
        let expected = json!({
            "user": "zoe", "uid": "7", "groups": ["dev"], "extra": {"scope": ["a", "b"]},
            "resourceAttributes": {
                "namespace": "ci", "group": "results.tekton.dev", "resource": "records",
                "verb": "update",
            },
        });
        assert_eq!(serde_json::to_value(asked.spec).unwrap(), expected);
    }

    #[test]
    fn all_parents_and_those_of_other_clusters_take_rights_on_all_namespaces() {
        let of = |parent: &str| namespace(&parent.parse().unwrap()).to_owned();
        assert_eq!(of("ci"), "ci");
        assert_eq!(of("-"), "");
        assert_eq!(of("cluster/east/namespace/ci"), "");
        assert_eq!(of("namespace/ci"), "");
    }

    #[test]
    fn answers_for_different_people_or_things_are_kept_apart() {
        let (a, b): (&[&str], &[&str]) = (&["a"], &["b"]);
        let people = [
            subject(&[], &[]),
            subject(&["a"], &[]),
            subject(&["a", "b"], &[]),
            subject(&["ab"], &[]),
            subject(&[], &[("a", b)]),
            subject(&[], &[("a", &["b", "b"])]),
            subject(&[], &[("a", b), ("b", a)]),
        ];
        let things = [
            Attributes::default(),
            Attributes {
                namespace: "ci".into(),
                ..Attributes::default()
            },
            Attributes {
                name: "ci".into(),
                ..Attributes::default()
            },
        ];
        let mut keys: Vec<_> = people
            .iter()
            .flat_map(|person| things.iter().map(|thing| thing.key(person)))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), people.len() * things.len());
    }
}
