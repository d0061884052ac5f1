//! The store of Kubeflow pipelines as objects, and its webhooks: what is installed of them.

use std::collections::BTreeSet;

use kubesim::Sim;
use serde_json::{Value, json};

use super::{
    all, check, container, name, overlay, pods,
    programs::server_config,
    render::{add, root},
    rights::{asked, granted},
};
use crate::support::{Database, TestServer, http::Http};

/// The objects of an overlay with the component, and without it.
fn both(of: &str) -> [Vec<Value>; 2] {
    let without = overlay(of);
    let mut with = without.clone();
    add(&root().join("components/pipelines"), &mut with);
    [with, without]
}

#[test]
fn the_server_takes_what_its_pod_is_told() {
    for of in super::ALL_OVERLAYS {
        let [objects, _] = both(of);
        let mut seen = BTreeSet::new();
        for object in &objects {
            assert!(
                seen.insert((object["kind"].to_string(), name(object))),
                "{of}: {object}"
            );
            if object["kind"] != "CustomResourceDefinition" {
                assert_eq!(
                    check(object),
                    Vec::<String>::new(),
                    "{of}: {}",
                    name(object)
                );
            }
        }
    }
    let [objects, _] = both("sqlite");
    let config = server_config(&objects);
    assert!(config.enable_pipelines);
    let pods = pods(&objects);
    let pod = pods["hindsight"];
    let container = container(pod);
    let ports = container["ports"].as_array().unwrap();
    let port = ports.iter().find(|port| port["name"] == "webhook").unwrap();
    let listen = config.pipelines_webhook_listen.unwrap();
    assert_eq!(port["containerPort"], json!(listen.port()));
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mount = mounts
        .iter()
        .find(|mount| mount["name"] == "pipelines-tls")
        .unwrap();
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let volume = volumes
        .iter()
        .find(|volume| volume["name"] == mount["name"])
        .unwrap();
    let items = volume["secret"]["items"].as_array().unwrap();
    for file in [config.pipelines_webhook_cert, config.pipelines_webhook_key] {
        let file = file.unwrap();
        let below = file
            .strip_prefix(mount["mountPath"].as_str().unwrap())
            .unwrap();
        assert!(
            items
                .iter()
                .any(|item| item["path"] == below.to_str().unwrap())
        );
    }
}

#[test]
fn kfp_10_the_webhooks_call_the_server_through_its_service_and_policy() {
    let [objects, _] = both("sqlite");
    let services: Vec<_> = all(&objects, "Service").collect();
    let service = services
        .iter()
        .find(|service| name(service) == "hindsight-pipelines")
        .unwrap();
    for (kind, path) in [
        (
            "MutatingWebhookConfiguration",
            hindsight_kfp::webhooks::MUTATE,
        ),
        (
            "ValidatingWebhookConfiguration",
            hindsight_kfp::webhooks::VALIDATE,
        ),
    ] {
        let [configuration] = all(&objects, kind).collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(
            name(configuration),
            "pipelineversions.pipelines.kubeflow.org"
        );
        let [webhook] = configuration["webhooks"].as_array().unwrap().as_slice() else {
            panic!("{kind} has one webhook");
        };
        let called = &webhook["clientConfig"]["service"];
        assert_eq!(
            *called,
            json!({"namespace": "hindsight", "name": name(service), "path": path, "port": service["spec"]["ports"][0]["port"]})
        );
        assert_eq!(
            webhook["rules"],
            json!([{
                "apiGroups": ["pipelines.kubeflow.org"], "apiVersions": ["v2beta1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["pipelineversions"], "scope": "Namespaced",
            }])
        );
        assert_eq!(
            (&webhook["sideEffects"], &webhook["failurePolicy"]),
            (&json!("None"), &json!("Fail"))
        );
    }
    let target = &service["spec"]["ports"][0]["targetPort"];
    let policies: Vec<_> = all(&objects, "NetworkPolicy").collect();
    let policy = policies
        .iter()
        .find(|policy| name(policy) == "hindsight")
        .unwrap();
    let ways = policy["spec"]["ingress"].as_array().unwrap();
    let open = ways.iter().filter(|way| way["from"].is_null());
    let ports = open.flat_map(|way| way["ports"].as_array().unwrap());
    let ports: Vec<_> = ports.map(|port| &port["port"]).collect();
    assert_eq!(ports, [target]);
    // What the policy lets in without the component it lets in with it.
    let [_, without] = both("sqlite");
    let policies: Vec<_> = all(&without, "NetworkPolicy").collect();
    let before = policies
        .iter()
        .find(|policy| name(policy) == "hindsight")
        .unwrap();
    for way in before["spec"]["ingress"].as_array().unwrap() {
        assert!(ways.contains(way), "{way}");
    }
}

#[tokio::test]
async fn kfp_32_the_component_grants_what_its_server_asks() {
    let sim = Sim::new();
    sim.install_all(kubesim::Crd::kubeflow())
        .namespace("kubeflow");
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let [objects, without] = both("sqlite");
    let database = Database::sqlite();
    let more = [
        ("enable_pipelines", "true"),
        ("pipelines_store", "kubernetes"),
        (
            "pipelines_kubeconfig",
            listening.kubeconfig().to_str().unwrap(),
        ),
    ];
    let server = TestServer::start_with(&database, &more).await;
    let mut http = Http::one(&server.url).await;
    let pipelines = "/apis/v2beta1/pipelines";
    http.send("GET", pipelines, &[], "").await.ok();
    let made = http
        .send("POST", pipelines, &[], r#"{"name": "p"}"#)
        .await
        .ok();
    let id = made["pipeline_id"].as_str().unwrap();
    let spec =
        r#"{"pipelineInfo":{"name":"p"},"root":{"executorLabel":"e"},"schemaVersion":"2.1.0"}"#;
    let form = format!(
        "--abc\r\nContent-Disposition: form-data; name=\"uploadfile\"; filename=\"p.json\"\r\n\r\n{spec}\r\n--abc--\r\n"
    );
    let kind = [("content-type", "multipart/form-data; boundary=abc")];
    let upload = format!("{pipelines}/upload_version?name=v&pipelineid={id}");
    http.send("POST", &upload, &kind, form).await.ok();
    let change = r#"{"display_name": "P"}"#;
    http.send("PATCH", &format!("{pipelines}/{id}"), &[], change)
        .await
        .ok();
    http.send("GET", &format!("{pipelines}/{id}/versions"), &[], "")
        .await
        .ok();
    let versions = sim.list("pipelines.kubeflow.org", "pipelineversions");
    let version = versions[0]["metadata"]["uid"].as_str().unwrap();
    let version = format!("{pipelines}/{id}/versions/{version}");
    http.send("PATCH", &version, &[], change).await.ok();
    http.send("DELETE", &format!("{pipelines}/{id}?cascade=true"), &[], "")
        .await
        .ok();

    let mut more = &granted(&objects, "hindsight") - &granted(&without, "hindsight");
    // Asked by the API server, of whoever creates a version whose owner reference blocks deletions.
    let finalizers = (
        "pipelines.kubeflow.org".to_owned(),
        "pipelines/finalizers".to_owned(),
        "update".to_owned(),
    );
    assert!(more.remove(&finalizers));
    assert_eq!(asked(sim.calls().all()), more);
    server.stop().await;
}
