//! What is made of clusters and templates, and read of them.

use hindsight_proto::{ray_v1 as v1, ray_v1alpha2 as alpha};
use hindsight_ray::{Error, Page, alpha as convert};
use serde_json::{Value, json};

use crate::fixtures::{full, head, now, refused, sim, small, stored, template, texts, worker};

#[tokio::test]
async fn ray_07_and_14_every_field_of_version_1_comes_back() {
    let (_sim, clusters) = sim();
    clusters
        .create_template("ci", Some(template("t")))
        .await
        .unwrap();
    clusters.create("ci", Some(full("a")), now()).await.unwrap();
    let mut found = clusters.get("ci", "a").await.unwrap();
    assert!(found.created_at.take().is_some());
    let created = found.annotations.remove("ray.io/creation-timestamp");
    assert_eq!(created.as_deref(), Some("2026-03-01T10:00:00Z"));
    assert_eq!(found, full("a"));
}

#[tokio::test]
async fn ray_05_to_07_and_14_every_field_of_version_1alpha2_comes_back() {
    let (_sim, clusters) = sim();
    clusters
        .create_template("ci", Some(template("t")))
        .await
        .unwrap();
    let mut asked = convert::answered(full("a"));
    // Variables of groups are not of this version.
    asked.envs = texts(&[("A", "1"), ("B", "")]);
    let made = clusters
        .create("ci", Some(convert::asked(asked.clone())), now())
        .await
        .unwrap();
    assert_eq!(made.namespace, "ci");
    let mut found = convert::answered(clusters.get("ci", "a").await.unwrap());
    found.created_at = None;
    assert_eq!(found, asked);
    let spec = asked.cluster_spec.unwrap();
    assert_eq!(spec.head_group_spec.unwrap().volumes.len(), 2);
    let group = &spec.worker_group_spec[0];
    assert_eq!(
        (group.replicas, group.min_replicas, group.max_replicas),
        (2, 1, 3)
    );
}

#[tokio::test]
async fn ray_08_events_of_both_forms_are_those_about_this_object() {
    let (sim, clusters) = sim();
    clusters
        .create("ci", Some(small("a")), now())
        .await
        .unwrap();
    let uid = stored(&sim, "a")["metadata"]["uid"].clone();
    let about =
        |kind: &str, uid: &Value| json!({"kind": kind, "name": "a", "namespace": "ci", "uid": uid});
    let event = |name: &str, about: Value, more: Value| {
        let mut event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "ci"},
            "involvedObject": about, "reason": "CreatedHeadPod", "message": "made", "type": "Normal",
        });
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        sim.create(event).unwrap();
    };
    let modern = json!({
        "eventTime": "2026-03-01T11:00:00.000000Z", "reportingComponent": "ray", "reportingInstance": "r",
        "action": "Create", "series": {"count": 5, "lastObservedTime": "2026-03-01T12:00:00.000000Z"},
    });
    event("modern", about("RayCluster", &uid), modern);
    let core = json!({
        "firstTimestamp": "2026-03-01T10:00:00Z", "lastTimestamp": "2026-03-01T10:30:00Z", "count": 3,
    });
    event("core", about("RayCluster", &uid), core);
    event("pod", about("Pod", &uid), json!({}));
    event("before", about("RayCluster", &"another".into()), json!({}));
    let found = clusters.get("ci", "a").await.unwrap().events;
    let ids: Vec<_> = found.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, ["core", "modern"]);
    let seconds =
        |time: &Option<prost_types::Timestamp>| time.as_ref().unwrap().seconds - now().as_second();
    let (core, modern) = (&found[0], &found[1]);
    assert_eq!((core.name.as_str(), core.count), ("a-core", 3));
    assert_eq!(
        (
            seconds(&core.first_timestamp),
            seconds(&core.last_timestamp)
        ),
        (0, 1800)
    );
    assert_eq!(
        (
            seconds(&modern.first_timestamp),
            seconds(&modern.last_timestamp)
        ),
        (3600, 7200)
    );
    assert_eq!(
        (
            modern.count,
            modern.reason.as_str(),
            modern.message.as_str()
        ),
        (5, "CreatedHeadPod", "made")
    );
    assert!(core.created_at.is_some() && core.r#type == "Normal");
    let listed = clusters
        .list(None, &Page::default())
        .await
        .unwrap()
        .clusters;
    assert_eq!(listed[0].events, found);
}

#[tokio::test]
async fn ray_09_outputs_are_those_of_the_object() {
    let (sim, clusters) = sim();
    let given = v1::Cluster {
        cluster_state: "ready".into(),
        service_endpoint: texts(&[("dashboard", "1")]),
        deleted_at: Some(prost_types::Timestamp::default()),
        created_at: Some(prost_types::Timestamp::default()),
        ..small("a")
    };
    let made = clusters.create("ci", Some(given), now()).await.unwrap();
    assert!(
        made.cluster_state.is_empty()
            && made.service_endpoint.is_empty()
            && made.deleted_at.is_none()
    );
    assert!(made.created_at.as_ref().unwrap().seconds > 0);
    let status = json!({"status": {"state": "ready", "endpoints": {"dashboard": "8265"}}});
    sim.merge("ray.io", "rayclusters", "ci", "a", status, "operator")
        .unwrap();
    let held = json!({"metadata": {"finalizers": ["ray.io/held"]}});
    sim.merge("ray.io", "rayclusters", "ci", "a", held, "operator")
        .unwrap();
    let found = clusters.get("ci", "a").await.unwrap();
    assert_eq!(
        (
            found.cluster_state.as_str(),
            &found.service_endpoint["dashboard"][..]
        ),
        ("ready", "8265")
    );
    clusters.delete("ci", "a").await.unwrap();
    assert!(clusters.get("ci", "a").await.unwrap().deleted_at.is_some());
}

#[tokio::test]
async fn ray_12_the_object_is_what_the_operator_expects() {
    let (sim, clusters) = sim();
    clusters
        .create_template("ci", Some(template("t")))
        .await
        .unwrap();
    let mut asked = small("a");
    head(&mut asked).compute_template = "t".into();
    asked.envs = Some(v1::EnvironmentVariables {
        values: texts(&[("A", "1")]),
        ..Default::default()
    });
    clusters.create("ci", Some(asked), now()).await.unwrap();
    let object = stored(&sim, "a");
    assert_eq!(object["apiVersion"], "ray.io/v1");
    let labels = json!({
        "ray.io/cluster-name": "a", "ray.io/user": "zoe", "ray.io/version": "2.9.0", "ray.io/environment": "DEV",
        "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/managed-by": "kuberay-apiserver",
    });
    assert_eq!(object["metadata"]["labels"], labels);
    assert_eq!(object["spec"]["rayVersion"], "2.9.0");
    let head = &object["spec"]["headGroupSpec"]["template"];
    let annotations = json!({"ray.io/compute-template": "t", "ray.io/compute-image": ""});
    assert_eq!(head["metadata"]["annotations"], annotations);
    let container = &head["spec"]["containers"][0];
    assert_eq!(
        (&container["name"], &container["image"]),
        (&json!("ray-head"), &json!("rayproject/ray:2.9.0"))
    );
    let ports: Vec<_> = container["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| &port["containerPort"])
        .collect();
    assert_eq!(ports, [6379, 10001, 8265, 8080]);
    let env = json!([
        {"name": "MY_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "A", "value": "1"},
    ]);
    assert_eq!(container["env"], env);
    let amounts = json!({"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1", "x.io/fast": "3"});
    assert_eq!(
        container["resources"],
        json!({"limits": amounts, "requests": amounts})
    );
    let tolerated = json!([{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]);
    assert_eq!(head["spec"]["tolerations"], tolerated);
    let group = &object["spec"]["workerGroupSpecs"][0];
    assert_eq!(
        (&group["minReplicas"], &group["maxReplicas"]),
        (&json!(2), &json!(2))
    );
    let container = &group["template"]["spec"]["containers"][0];
    assert_eq!(container["name"], "ray-worker");
    assert_eq!(
        container["lifecycle"]["preStop"]["exec"]["command"],
        json!(["/bin/sh", "-c", "ray stop"])
    );
    assert!(
        container["env"]
            .as_array()
            .unwrap()
            .contains(&json!({"name": "A", "value": "1"}))
    );
}

#[tokio::test]
async fn ray_13_templates_are_optional_and_config_maps_with_their_label() {
    let (sim, clusters) = sim();
    clusters
        .create("ci", Some(small("plain")), now())
        .await
        .unwrap();
    let container =
        &stored(&sim, "plain")["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0];
    assert!(container.get("resources").is_none());
    clusters
        .create_template("ci", Some(template("t")))
        .await
        .unwrap();
    assert_eq!(clusters.template("ci", "t").await.unwrap(), template("t"));
    let map = sim.get("", "configmaps", "ci", "t").unwrap();
    assert_eq!(
        map["metadata"]["labels"]["ray.io/config-type"],
        "compute-template"
    );
    assert_eq!(
        (&map["data"]["cpu"], &map["data"]["memory_unit"]),
        (&json!("2"), &json!("Gi"))
    );
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign", "namespace": "ci"},
        "data": {"cpu": "1", "memory": "1", "password": "p"},
    });
    sim.create(foreign).unwrap();
    for outcome in [
        clusters.template("ci", "foreign").await.map(drop),
        clusters.delete_template("ci", "foreign").await,
    ] {
        assert!(matches!(outcome, Err(Error::Missing(_))), "{outcome:?}");
    }
    let mut asked = small("a");
    worker(&mut asked).compute_template = "foreign".into();
    refused(
        clusters.create("ci", Some(asked), now()).await,
        "Cannot get compute template",
    );
    let old = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "old", "namespace": "dev", "labels": {"ray.io/config-type": "compute-template"}},
        "data": {"cpu": "1", "memory": "8", "gpu": "0"},
    });
    sim.create(old).unwrap();
    assert_eq!(
        clusters.template("dev", "old").await.unwrap().memory_unit,
        "Gi"
    );
    let all = clusters.templates(None).await.unwrap();
    let names: Vec<_> = all.iter().map(|template| template.name.as_str()).collect();
    assert_eq!(names, ["t", "old"]);
    assert_eq!(clusters.templates(Some("ci")).await.unwrap().len(), 1);
    clusters.delete_template("ci", "t").await.unwrap();
    let of_alpha = alpha::ComputeTemplate {
        name: "u".into(),
        namespace: "ci".into(),
        cpu: 1,
        memory: 2,
        gpu: 3,
        gpu_accelerator: "amd.com/gpu".into(),
    };
    let made = clusters
        .create_template("ci", Some(convert::template_asked(of_alpha.clone())))
        .await
        .unwrap();
    assert_eq!(convert::template_answered(made), of_alpha);
    assert!(sim.get("", "configmaps", "ci", "foreign").is_some());
}

#[tokio::test]
async fn ray_16_a_delete_takes_the_cluster_and_no_job() {
    let (sim, clusters) = sim();
    for name in ["a", "b"] {
        clusters
            .create("ci", Some(small(name)), now())
            .await
            .unwrap();
    }
    let job = json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "a", "namespace": "ci"},
        "spec": {"clusterSelector": {"ray.io/cluster": "a"}},
    });
    sim.create(job).unwrap();
    clusters.delete("ci", "a").await.unwrap();
    assert_eq!(
        (
            sim.count("ray.io", "rayclusters"),
            sim.count("ray.io", "rayjobs")
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn ray_17_lists_have_pages() {
    let (_sim, clusters) = sim();
    for name in ["a", "b", "c"] {
        clusters
            .create("ci", Some(small(name)), now())
            .await
            .unwrap();
    }
    let mut page = Page {
        limit: 2,
        token: String::new(),
    };
    let first = clusters.list(Some("ci"), &page).await.unwrap();
    page.token = first.next;
    let second = clusters.list(Some("ci"), &page).await.unwrap();
    let names: Vec<_> = first
        .clusters
        .iter()
        .chain(&second.clusters)
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!((names, second.next.as_str()), (vec!["a", "b", "c"], ""));
    page.token = "garbage".into();
    refused(clusters.list(Some("ci"), &page).await, "");
    refused(
        clusters
            .list(
                None,
                &Page {
                    limit: -1,
                    ..Page::default()
                },
            )
            .await,
        "limit",
    );
    assert_eq!(
        clusters
            .list(None, &Page::default())
            .await
            .unwrap()
            .clusters
            .len(),
        3
    );
}

#[tokio::test]
async fn objects_that_others_changed_are_read_with_defaults() {
    let (sim, clusters) = sim();
    let odd = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "odd", "namespace": "ci", "labels": {
            "app.kubernetes.io/managed-by": "kuberay-apiserver", "ray.io/environment": "MOON",
        }},
        "spec": {"workerGroupSpecs": [{"groupName": "w", "template": 5}], "headGroupSpec": {"rayStartParams": {"n": 1}}},
    });
    sim.create(odd).unwrap();
    let found = clusters.get("ci", "odd").await.unwrap();
    let spec = found.cluster_spec.unwrap();
    let group = &spec.worker_group_spec[0];
    assert_eq!(
        (group.replicas, group.min_replicas, group.max_replicas),
        (0, 0, i32::MAX)
    );
    assert_eq!(spec.head_group_spec.unwrap().ray_start_params["n"], "1");
    assert_eq!(found.environment, 0);
}
