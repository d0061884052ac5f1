//! What a server says about itself.

use kube::discovery::{Discovery, Scope, verbs};
use serde_json::Value;

use super::{Arena, Difference, GROUP, Verdict, holds, same};

/// Discovery finds kinds with their scope, verbs and subresources.
pub async fn discovery_finds_the_kinds(arena: Arena) -> Verdict {
    let found = Discovery::new(arena.client.clone()).run().await?;
    look(&found)?;
    for (group, kind) in [
        ("", "Pod"),
        ("batch", "Job"),
        ("coordination.k8s.io", "Lease"),
        ("authentication.k8s.io", "TokenReview"),
        ("authorization.k8s.io", "SubjectAccessReview"),
    ] {
        let known = found
            .get(group)
            .and_then(|group| group.recommended_kind(kind));
        holds(&format!("{kind} of `{group}` is served"), known.is_some())?;
    }
    Ok(())
}

/// The aggregated form of discovery tells the same.
pub async fn aggregated_discovery_finds_the_kinds(arena: Arena) -> Verdict {
    look(
        &Discovery::new(arena.client.clone())
            .run_aggregated()
            .await?,
    )
}

fn look(found: &Discovery) -> Verdict {
    let missing = |what: &str| Difference::Missing { what: what.into() };
    let group = found
        .get(GROUP)
        .ok_or_else(|| missing("the group of the contract"))?;
    same(
        "the preferred version",
        group.preferred_version_or_latest(),
        "v1",
    )?;
    let (resource, capabilities) = group
        .recommended_kind("Widget")
        .ok_or_else(|| missing("the kind Widget"))?;
    same("the plural", resource.plural.as_str(), "widgets")?;
    same("the scope", capabilities.scope.clone(), Scope::Namespaced)?;
    for verb in [
        verbs::LIST,
        verbs::WATCH,
        verbs::PATCH,
        verbs::DELETE,
        verbs::DELETE_COLLECTION,
    ] {
        holds(verb, capabilities.supports_operation(verb))?;
    }
    let parts: Vec<&str> = capabilities
        .subresources
        .iter()
        .map(|(resource, _)| resource.plural.as_str())
        .collect();
    holds(
        "the status subresource",
        parts.iter().any(|part| part.ends_with("status")),
    )?;
    let (_, plain) = group
        .recommended_kind("Gadget")
        .ok_or_else(|| missing("the kind Gadget"))?;
    holds("no subresource", plain.subresources.is_empty())?;
    let core = found.get("").ok_or_else(|| missing("the core group"))?;
    let (_, namespaces) = core
        .recommended_kind("Namespace")
        .ok_or_else(|| missing("Namespace"))?;
    same("namespaces have none", namespaces.scope, Scope::Cluster)
}

/// Groups and kinds that are not installed are not found.
pub async fn unknown_kinds_are_not_found(arena: Arena) -> Verdict {
    for path in [
        "/apis/nobody.example.dev",
        "/apis/nobody.example.dev/v1",
        "/apis/nobody.example.dev/v1/things",
        &format!("/apis/{GROUP}/v1/gizmos"),
        &format!("/apis/{GROUP}/v2/widgets"),
        "/nothing",
    ] {
        let (code, _) = arena
            .raw("GET", path, "application/json", &Value::Null)
            .await?;
        same(path, code, 404)?;
    }
    Ok(())
}

/// A server tells its version and that it is well.
pub async fn a_server_tells_its_version(arena: Arena) -> Verdict {
    let version = arena.client.apiserver_version().await?;
    same("major", version.major.as_str(), "1")?;
    let (code, _) = arena.raw("GET", "/readyz", "*/*", &Value::Null).await?;
    same("readyz", code, 200)
}
