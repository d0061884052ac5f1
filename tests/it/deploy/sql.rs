//! SQL on several machines: what is installed of it. That its program takes what the pods are told is a test of the
//! program, which is in a workspace of its own.

use std::collections::BTreeSet;

use super::{
    all, check, container, name, pods,
    render::{render, root},
};

#[test]
fn sql_on_several_machines_is_bound_to_as_little_as_it_needs() {
    let objects = render(&root().join("sql"));
    for object in &objects {
        assert_eq!(check(object), Vec::<String>::new(), "{}", name(object));
        assert_eq!(object["metadata"]["namespace"], "hindsight");
    }
    let pods = pods(&objects);
    let wanted = ["executor", "scheduler", "server"].map(|part| format!("hindsight-sql-{part}"));
    assert_eq!(pods.keys().collect::<Vec<_>>(), wanted.each_ref());
    for (what, pod) in &pods {
        let spec = &pod["spec"];
        assert_eq!(spec["automountServiceAccountToken"], false, "{what}");
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{what}");
        let container = container(pod);
        let own = &container["securityContext"];
        assert_eq!(own["readOnlyRootFilesystem"], true, "{what}");
        assert_eq!(own["allowPrivilegeEscalation"], false, "{what}");
        assert_eq!(own["capabilities"]["drop"][0], "ALL", "{what}");
        assert!(container["resources"]["limits"]["memory"].is_string());
        assert_eq!(container["command"][0], "/usr/bin/hindsight-sql-cluster");
        let names = |list: &serde_json::Value| -> BTreeSet<String> {
            let items = list.as_array().into_iter().flatten();
            items.map(|item| item["name"].to_string()).collect()
        };
        let (volumes, mounts) = (names(&spec["volumes"]), names(&container["volumeMounts"]));
        assert_eq!(volumes, mounts, "{what}");
        let args = container["args"].as_array().unwrap();
        let flag = |flag: &str| {
            let args = args.iter().filter_map(|arg| arg.as_str());
            args.filter_map(|arg| arg.strip_prefix(flag))
                .next()
                .map(str::to_owned)
        };
        // Who connects from another machine has a certificate of the cluster.
        let ca = flag("--cluster-ca=").unwrap();
        assert!(ca.starts_with(container["volumeMounts"][0]["mountPath"].as_str().unwrap()));
        let port = container["ports"][0]["containerPort"].to_string();
        assert_eq!(flag("--listen=").unwrap(), format!("0.0.0.0:{port}"));
        let labels = &pod["metadata"]["labels"];
        let chooses =
            |policy: &&serde_json::Value| policy["spec"]["podSelector"]["matchLabels"] == *labels;
        let policies: Vec<_> = all(&objects, "NetworkPolicy").filter(chooses).collect();
        assert_eq!(policies.len(), 1, "{what}");
        let may_enter = &policies[0]["spec"]["ingress"][0];
        assert_eq!(may_enter["ports"][0]["port"], container["ports"][0]["name"]);
    }
    for service in all(&objects, "Service") {
        let chosen = pods
            .values()
            .filter(|pod| pod["metadata"]["labels"] == service["spec"]["selector"]);
        let chosen: Vec<_> = chosen.collect();
        assert_eq!(chosen.len(), 1, "{}", name(service));
        let port = &service["spec"]["ports"][0]["targetPort"];
        assert_eq!(container(chosen[0])["ports"][0]["name"], *port);
    }
    let executors = all(&objects, "Deployment").find(|object| name(object) == wanted[0]);
    let replicas = executors.unwrap()["spec"]["replicas"].as_u64().unwrap();
    let threads = |of: &str| {
        let args = container(pods[of])["args"].as_array().unwrap();
        let said = args
            .iter()
            .filter_map(|arg| arg.as_str()?.strip_prefix("--threads="));
        said.map(|text| text.parse::<u64>().unwrap())
            .next()
            .unwrap()
    };
    assert_eq!(threads(&wanted[2]), replicas * threads(&wanted[0]));
}
