//! Rights: what the roles in `deploy/` allow is exactly what the programs were seen to ask of a
//! cluster, nothing less and nothing more.

mod watched;

use std::{collections::BTreeSet, time::Duration};

use kubesim::{Call, Sim};
use serde_json::Value;

use super::{all, name, overlay, render};
use crate::support::{
    Database, TestServer,
    http::{Http, target},
};
use watched::{text, watched};

pub(super) use watched::{cluster, rare};

pub(super) type Right = (String, String, String);

/// How long all of it may take on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The rights of a service account, by the roles that are bound to it.
pub(super) fn granted(objects: &[Value], account: &str) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        for binding in all(objects, kind) {
            let subjects = binding["subjects"].as_array().unwrap();
            if !subjects.iter().any(|subject| subject["name"] == account) {
                continue;
            }
            let of = &binding["roleRef"];
            let role = all(objects, of["kind"].as_str().unwrap())
                .find(|role| of["name"] == name(role))
                .unwrap();
            for rule in role["rules"].as_array().unwrap() {
                let texts = |key: &str| {
                    let texts = rule[key].as_array().unwrap().clone();
                    texts
                        .into_iter()
                        .map(|text| text.as_str().unwrap().to_owned())
                };
                for group in texts("apiGroups") {
                    for resource in texts("resources") {
                        rights.extend(
                            texts("verbs").map(|verb| (group.clone(), resource.clone(), verb)),
                        );
                    }
                }
            }
        }
    }
    rights
}

/// What was asked of the simulated cluster. Discovery is for everybody.
pub(super) fn asked(calls: &[Call]) -> BTreeSet<Right> {
    calls
        .iter()
        .filter(|call| !call.resource.starts_with('/'))
        .map(|call| {
            let resource = match call.subresource.as_str() {
                "" => call.resource.clone(),
                below => format!("{}/{below}", call.resource),
            };
            (call.group.clone(), resource, call.verb.to_owned())
        })
        .collect()
}

/// Rights at the server of ours are asked of the server, not of the cluster.
pub(super) fn of_cluster(rights: BTreeSet<Right>) -> BTreeSet<Right> {
    rights
        .into_iter()
        .filter(|(group, ..)| group != "results.tekton.dev")
        .collect()
}

#[tokio::test]
async fn the_watcher_may_do_what_it_does_and_nothing_else() {
    for (of, deletes) in [("sqlite", false), ("complete", true)] {
        let objects = overlay(of);
        let seen = watched(&objects, deletes).await;
        assert_eq!(
            seen,
            of_cluster(granted(&objects, "hindsight-watcher")),
            "{of}"
        );
        let may_delete = seen.iter().any(|(.., verb)| verb == "delete");
        assert_eq!(may_delete, deletes, "{of}");
        let tells = |right: &Right| right == &(String::new(), "events".into(), "create".into());
        assert!(seen.iter().any(tells), "{of}");
    }
}

/// Of all options at once, each by its component.
#[tokio::test]
async fn every_option_that_needs_rights_has_a_component_that_gives_them() {
    let mut objects = overlay("sqlite");
    for of in [
        "collect",
        "finalizers",
        "store-events",
        "cluster-id",
        "jobs",
        "collect-jobs",
        "logs",
    ] {
        render::add(&render::root().join("components").join(of), &mut objects);
    }
    for object in &objects {
        assert_eq!(
            super::check(object),
            Vec::<String>::new(),
            "{}",
            name(object)
        );
    }
    let seen = watched(&objects, true).await;
    assert_eq!(seen, of_cluster(granted(&objects, "hindsight-watcher")));
}

#[tokio::test]
async fn the_server_may_ask_about_callers_and_nothing_else() {
    let sim = Sim::new();
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    sim.policy().token("zoe", "zoe", &[]).allow(
        "zoe",
        "list",
        "results.tekton.dev",
        "results",
        "ci",
    );
    let more = [
        ("auth", "kubernetes"),
        ("auth_kubeconfig", text(listening.kubeconfig())),
    ];
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &more).await;
    let mut http = Http::one(&server.url).await;
    let headers = [("authorization", "Bearer zoe"), ("impersonate-user", "ann")];
    for (headers, status) in [(&headers[..1], 200), (&headers[..], 403)] {
        let reply = http
            .send("GET", &target("ci/results", &[]), headers, "")
            .await;
        assert_eq!(reply.status, status);
    }
    let seen = asked(sim.calls().all());
    for of in super::OVERLAYS {
        assert_eq!(seen, granted(&overlay(of), "hindsight"), "{of}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_watcher_may_write_at_the_server_and_not_delete() {
    let objects = overlay("complete");
    let rights = granted(&objects, "hindsight-watcher");
    let verbs: BTreeSet<_> = rights
        .iter()
        .filter(|(group, ..)| group == "results.tekton.dev")
        .map(|(_, resource, verb)| (resource.as_str(), verb.as_str()))
        .collect();
    let resources = ["logs", "records", "results"];
    let expected = resources
        .iter()
        .flat_map(|resource| ["create", "get", "list", "update"].map(|verb| (*resource, verb)));
    assert_eq!(verbs, expected.collect());
}

#[tokio::test]
async fn the_component_for_ray_grants_what_its_server_asks() {
    let sim = Sim::new();
    sim.install_all(kubesim::Crd::ray()).namespace("ci");
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let mut objects = overlay("sqlite");
    let before = granted(&objects, "hindsight");
    let is_of_ray = |(group, resource, _): &Right| group == "ray.io" || resource == "configmaps";
    assert!(!before.iter().any(is_of_ray), "{before:?}");
    render::add(&render::root().join("components/ray"), &mut objects);
    let pods = super::pods(&objects);
    let given = super::programs::environment(super::container(pods["hindsight"]));
    let enabled = given["HINDSIGHT_ENABLE_RAY"].as_str();
    let more = [
        ("enable_ray", enabled),
        ("ray_kubeconfig", text(listening.kubeconfig())),
    ];
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &more).await;
    let mut http = Http::one(&server.url).await;
    let clusters = "/apis/v1/namespaces/ci/clusters";
    let templates = "/apis/v1/namespaces/ci/compute_templates";
    let template = r#"{"name": "t", "namespace": "ci", "cpu": 1, "memory": 1}"#;
    let cluster = r#"{"name": "a", "namespace": "ci", "user": "u", "version": "2.9.0", "clusterSpec":
                      {"headGroupSpec": {"computeTemplate": "t"}}}"#;
    for (method, path, body) in [
        ("POST", templates.to_owned(), template),
        ("POST", clusters.to_owned(), cluster),
        ("GET", clusters.to_owned(), ""),
        ("GET", "/apis/v1/clusters".to_owned(), ""),
        ("GET", templates.to_owned(), ""),
        ("DELETE", format!("{clusters}/a"), ""),
        ("DELETE", format!("{templates}/t"), ""),
    ] {
        let reply = http.send(method, &path, &[], body).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    }
    let of_ray: BTreeSet<_> = &granted(&objects, "hindsight") - &before;
    assert_eq!(asked(sim.calls().all()), of_ray);
    server.stop().await;
}
