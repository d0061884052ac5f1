//! The roles that a cluster has from the start.

use serde_json::{Value, json};

use super::MASTERS;
use crate::kinds::RBAC;

/// The roles a cluster has from the start, with their bindings: what everybody may ask.
pub(crate) fn defaults() -> Vec<Value> {
    let paths = |paths: &[&str]| json!([{"verbs": ["get"], "nonResourceURLs": paths}]);
    let info = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let documents = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/openapi",
        "/openapi/*",
    ];
    let own = json!([{
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    }]);
    let all = json!([
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]);
    let known = "system:authenticated";
    let roles = [
        ("cluster-admin", all, &[MASTERS][..]),
        ("system:basic-user", own, &[known]),
        (
            "system:discovery",
            paths(&[&info[..], &documents].concat()),
            &[known],
        ),
        (
            "system:public-info-viewer",
            paths(&info),
            &[known, "system:unauthenticated"],
        ),
    ];
    let objects = roles.into_iter().flat_map(|(name, rules, groups)| {
        let subjects: Vec<Value> = groups
            .iter()
            .map(|name| json!({"kind": "Group", "apiGroup": RBAC, "name": name}))
            .collect();
        let version = format!("{RBAC}/v1");
        [
            json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}),
            json!({
                "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
                "subjects": subjects,
            }),
        ]
    });
    objects.collect()
}
