//! The controller of workflows: what is installed of it, with and without its webhook.

use hindsight_config::Sources;
use hindsight_controller::config::{Launch, PROGRAM};
use serde_json::Value;

use super::{
    all, arguments, check, container, environment, is_bound, name, overlay, pods,
    render::{add, render, root},
};

/// The objects without the webhook, and with it.
fn both() -> [Vec<Value>; 2] {
    let without = render(&root().join("workflow"));
    let mut with = without.clone();
    add(&root().join("components/workflow-webhook"), &mut with);
    [without, with]
}

fn launch(pod: &Value) -> Launch {
    let flags = arguments(container(pod)).into_iter().map(|argument| {
        let argument = argument.strip_prefix("--").unwrap();
        let (name, text) = argument.split_once('=').unwrap_or((argument, "true"));
        (name.replace('-', "_"), text.to_owned())
    });
    let sources = Sources {
        flags: flags.collect(),
        env: environment(container(pod)),
        file: None,
    };
    Launch::load(&PROGRAM, &sources).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn the_controller_takes_what_its_pod_is_told() {
    for (objects, has_webhook) in both().iter().zip([false, true]) {
        let pods = pods(objects);
        assert_eq!(pods.keys().collect::<Vec<_>>(), [&"hindsight-workflow"]);
        let pod = pods["hindsight-workflow"];
        is_bound(pod, "hindsight-workflow");
        let container = container(pod);
        assert_eq!(container["command"][0], "/usr/bin/hindsight-workflow");
        let config = launch(pod).config;
        assert!(config.lease.is_some(), "there are two");
        let waits = pod["spec"]["terminationGracePeriodSeconds"].as_u64();
        assert!(waits.unwrap() > config.shutdown_grace.as_secs());
        let port = |name: &str| {
            let ports = container["ports"].as_array().unwrap();
            let port = ports.iter().find(|port| port["name"] == name)?;
            u16::try_from(port["containerPort"].as_u64()?).ok()
        };
        assert_eq!(
            config.metrics_listen.map(|addr| addr.port()),
            port("metrics")
        );
        let webhook = config.webhook.as_ref();
        assert_eq!(
            webhook.map(|webhook| webhook.listen.port()),
            port("webhook")
        );
        assert_eq!(webhook.is_some(), has_webhook);
        for file in webhook
            .iter()
            .flat_map(|webhook| [&webhook.cert, &webhook.key])
        {
            let mount = &container["volumeMounts"][0];
            let below = file
                .strip_prefix(mount["mountPath"].as_str().unwrap())
                .unwrap();
            let volume = &pod["spec"]["volumes"][0];
            assert_eq!(mount["name"], volume["name"]);
            let items = volume["secret"]["items"].as_array().unwrap();
            assert!(
                items
                    .iter()
                    .any(|item| item["path"] == below.to_str().unwrap())
            );
        }
    }
}

#[test]
fn its_objects_are_ones_that_the_api_server_takes_beside_any_overlay() {
    for of in super::ALL_OVERLAYS {
        for own in both() {
            let mut objects = overlay(of);
            objects.extend(own);
            let mut seen = std::collections::BTreeSet::new();
            for object in &objects {
                assert!(
                    seen.insert((object["kind"].to_string(), name(object))),
                    "{object}"
                );
                assert_eq!(check(object), Vec::<String>::new(), "{}", name(object));
            }
        }
    }
}

#[test]
fn what_it_refers_to_is_there() {
    let [_, objects] = both();
    let pods = pods(&objects);
    let labels = pods["hindsight-workflow"]["metadata"]["labels"]
        .as_object()
        .unwrap();
    let is_it = |selector: &Value| {
        let mut wanted = selector.as_object().unwrap().iter();
        wanted.all(|(key, value)| labels.get(key) == Some(value))
    };
    let one = |kind| {
        let [object] = all(&objects, kind).collect::<Vec<_>>().try_into().unwrap();
        object
    };
    let service: &Value = one("Service");
    assert!(is_it(&service["spec"]["selector"]));
    assert!(is_it(
        &one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    ));
    assert!(is_it(
        &one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    ));
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "webhook");
    let called = &one("ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"];
    assert_eq!(called["name"], service["metadata"]["name"]);
    assert_eq!(called["namespace"], service["metadata"]["namespace"]);
    assert_eq!(called["port"], service["spec"]["ports"][0]["port"]);
    let account = &pods["hindsight-workflow"]["spec"]["serviceAccountName"];
    assert_eq!(one("ServiceAccount")["metadata"]["name"], *account);
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        let binding = one(kind);
        assert_eq!(binding["subjects"][0]["name"], *account);
        let role = one(binding["roleRef"]["kind"].as_str().unwrap());
        assert_eq!(role["metadata"]["name"], binding["roleRef"]["name"]);
    }
}
