//! Who may do what: roles and their bindings, the words of a refusal, access reviews.

use k8s_openapi::api::{
    authorization::v1::SubjectAccessReview,
    rbac::v1::{Role, RoleBinding},
};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use super::{Arena, Difference, GROUP, Verdict, eventually, holds, same};

const RBAC: &str = "rbac.authorization.k8s.io";

/// A user of whom no other case knows.
fn user(arena: &Arena, name: &str) -> String {
    format!("{name}-of-{}", arena.namespace)
}

fn widgets(arena: &Arena) -> String {
    arena.path("widgets")
}

async fn get(arena: &Arena, user: &str, path: &str) -> Result<(u16, Value), Difference> {
    arena.raw_as(user, "GET", path, &Value::Null).await
}

async fn bind(arena: &Arena, user: &str, kind: &str, role: &str) -> Verdict {
    let binding = json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "User", "apiGroup": RBAC, "name": user}],
    });
    let binding: RoleBinding = serde_json::from_value(binding).expect("the binding is well formed");
    let bindings = Api::namespaced(arena.client.clone(), &arena.namespace);
    bindings.create(&PostParams::default(), &binding).await?;
    Ok(())
}

async fn role(arena: &Arena, user: &str, rules: Value) -> Verdict {
    let role = json!({"metadata": {"name": "few"}, "rules": rules});
    let role: Role = serde_json::from_value(role).expect("the role is well formed");
    let roles = Api::namespaced(arena.client.clone(), &arena.namespace);
    roles.create(&PostParams::default(), &role).await?;
    bind(arena, user, "Role", "few").await
}

/// Waits until a new role counts.
async fn allowed(arena: &Arena, user: &str, path: &str) -> Verdict {
    eventually(&format!("{user} may GET {path}"), || async move {
        Ok(get(arena, user, path).await?.0 == 200)
    })
    .await
}

/// A refusal says who may not do what where.
pub async fn what_no_role_allows_is_forbidden(arena: Arena) -> Verdict {
    let (user, namespace) = (user(&arena, "stranger"), &arena.namespace);
    let of = format!("in API group \"{GROUP}\"");
    let place = format!("in the namespace \"{namespace}\"");
    let title = format!("widgets.{GROUP}");
    for (method, path, name, what) in [
        (
            "GET",
            widgets(&arena),
            "",
            format!("cannot list resource \"widgets\" {of} {place}"),
        ),
        (
            "PATCH",
            format!("{}/a/status", widgets(&arena)),
            "a",
            format!("cannot patch resource \"widgets/status\" {of} {place}"),
        ),
        (
            "GET",
            format!("/apis/{GROUP}/v1/widgets?watch=true"),
            "",
            format!("cannot watch resource \"widgets\" {of} at the cluster scope"),
        ),
    ] {
        let (code, answer) = arena.raw_as(&user, method, &path, &json!({})).await?;
        same("the code", code, 403)?;
        let subject = match name {
            "" => title.clone(),
            name => format!("{title} \"{name}\""),
        };
        same(
            "the message",
            answer["message"].as_str(),
            Some(format!("{subject} is forbidden: User \"{user}\" {what}").as_str()),
        )?;
        same("the reason", &answer["reason"], "Forbidden")?;
        let mut details = json!({"group": GROUP, "kind": "widgets"});
        if !name.is_empty() {
            details["name"] = name.into();
        }
        same("the details", &answer["details"], &details)?;
    }
    Ok(())
}

/// A role allows its verbs, on its names, where it is bound.
pub async fn a_role_allows_in_the_namespace_of_its_binding(arena: Arena) -> Verdict {
    let user = user(&arena, "reader");
    arena.widget(json!({"name": "a"})).await?;
    let rules = json!([{
        "apiGroups": [GROUP], "resources": ["widgets"], "resourceNames": ["a"],
        "verbs": ["get", "list"],
    }]);
    role(&arena, &user, rules).await?;
    let widgets = widgets(&arena);
    allowed(&arena, &user, &format!("{widgets}/a")).await?;
    for (path, wanted) in [
        (format!("{widgets}?fieldSelector=metadata.name%3Da"), 200),
        (format!("{widgets}?fieldSelector=metadata.name%3Db"), 403),
        (widgets.clone(), 403),
        (format!("{widgets}/b"), 403),
        (format!("{widgets}/a/status"), 403),
        (
            format!("/apis/{GROUP}/v1/namespaces/default/widgets/a"),
            403,
        ),
        (format!("/apis/{GROUP}/v1/widgets"), 403),
    ] {
        same(&path, get(&arena, &user, &path).await?.0, wanted)?;
    }
    let path = format!("{widgets}/a");
    let (code, _) = arena.raw_as(&user, "DELETE", &path, &Value::Null).await?;
    same("a delete", code, 403)
}

/// A namespace is inside of itself, and nothing else is.
pub async fn a_cluster_role_bound_in_a_namespace_ends_there(arena: Arena) -> Verdict {
    let (user, namespace) = (user(&arena, "owner"), &arena.namespace);
    bind(&arena, &user, "ClusterRole", "cluster-admin").await?;
    allowed(&arena, &user, &widgets(&arena)).await?;
    for (path, wanted) in [
        (format!("/api/v1/namespaces/{namespace}"), 200),
        ("/api/v1/namespaces/default".into(), 403),
        ("/api/v1/namespaces".into(), 403),
        (format!("/apis/{GROUP}/v1/widgets"), 403),
    ] {
        same(&path, get(&arena, &user, &path).await?.0, wanted)?;
    }
    Ok(())
}

/// A binding to a role that is not there allows nothing, and the refusal says so.
pub async fn a_missing_role_is_told_in_the_refusal(arena: Arena) -> Verdict {
    let (arena, user) = (&arena, &user(&arena, "lost"));
    bind(arena, user, "Role", "nowhere").await?;
    let end = "RBAC: role.rbac.authorization.k8s.io \"nowhere\" not found";
    eventually("the refusal names the role", || async move {
        let (code, answer) = get(arena, user, &widgets(arena)).await?;
        let message = answer["message"].as_str().unwrap_or_default();
        Ok(code == 403 && message.ends_with(end))
    })
    .await
}

/// Reviews say what would become of a request.
pub async fn reviews_answer_as_requests_do(arena: Arena) -> Verdict {
    let (user, namespace) = (user(&arena, "asker"), &arena.namespace);
    let rules = json!([{"apiGroups": [GROUP], "resources": ["*/status"], "verbs": ["get"]}]);
    role(&arena, &user, rules).await?;
    let (own, asked) = (&user, &arena);
    let review = |verb: &str, subresource: &str| {
        json!({
            "verb": verb, "group": GROUP, "resource": "widgets", "subresource": subresource,
            "namespace": namespace,
        })
    };
    let subject = |attributes: Value| async move {
        let spec = json!({"user": own, "resourceAttributes": attributes});
        let review: SubjectAccessReview =
            serde_json::from_value(json!({"metadata": {}, "spec": spec}))
                .expect("the review is well formed");
        let reviews: Api<SubjectAccessReview> = Api::all(asked.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok::<_, Difference>(answer.status.unwrap_or_default())
    };
    eventually("the role counts", || async {
        Ok(subject(review("get", "status")).await?.allowed)
    })
    .await?;
    let reason = format!(
        "RBAC: allowed by RoleBinding \"few/{namespace}\" of Role \"few\" to User \"{user}\""
    );
    let answer = subject(review("get", "status")).await?;
    same("the reason", answer.reason, Some(reason))?;
    for (verb, subresource) in [("get", ""), ("list", "status"), ("patch", "status")] {
        let answer = subject(review(verb, subresource)).await?;
        holds(verb, !answer.allowed && answer.denied != Some(true))?;
    }
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (subresource, wanted) in [("status", true), ("", false)] {
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": review("get", subresource)},
        });
        let (code, answer) = arena.raw_as(&user, "POST", path, &body).await?;
        same("the code", code, 201)?;
        same("its own review", &answer["status"]["allowed"], wanted)?;
    }
    Ok(())
}

/// Discovery is for whoever authenticated, health and version for everybody.
pub async fn documents_are_for_who_is_known(arena: Arena) -> Verdict {
    let user = user(&arena, "stranger");
    for path in ["/api", "/apis", "/apis/batch", "/version", "/readyz"] {
        same(path, get(&arena, &user, path).await?.0, 200)?;
    }
    let nobody = "system:anonymous";
    same("the version", get(&arena, nobody, "/version").await?.0, 200)?;
    let (code, answer) = get(&arena, nobody, "/apis").await?;
    same("the code", code, 403)?;
    let why = "forbidden: User \"system:anonymous\" cannot get path \"/apis\"";
    same("the message", &answer["message"], why)?;
    let (code, _) = get(&arena, &user, "/nothing/there").await?;
    same(
        "what is not there is forbidden before it is missing",
        code,
        403,
    )
}

/// A request for another user takes the right to speak for that user.
pub async fn users_are_impersonated_by_who_may(arena: Arena) -> Verdict {
    let account = format!("system:serviceaccount:{}:robot", arena.namespace);
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (code, answer) = get(&arena, &account, &widgets(&arena)).await?;
    same("the code", code, 403)?;
    let message = answer["message"].as_str().unwrap_or_default();
    holds(
        "the account is refused by its name",
        message.contains(&account),
    )?;
    let group = format!("system:serviceaccounts:{}", arena.namespace);
    let binding = json!({
        "metadata": {"name": "all"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "apiGroup": RBAC, "name": group}],
    });
    let binding: RoleBinding = serde_json::from_value(binding).expect("the binding is well formed");
    let bindings = Api::namespaced(arena.client.clone(), &arena.namespace);
    bindings.create(&PostParams::default(), &binding).await?;
    allowed(&arena, &account, &widgets(&arena)).await?;
    same(
        "a review",
        arena.raw_as(&account, "GET", path, &Value::Null).await?.0,
        403,
    )
}
