//! What is made of clusters and templates, and read of them.

use hindsight_proto::{ray_v1 as v1, ray_v1alpha2 as alpha};
use hindsight_ray::{Error, Page, alpha as convert};
use serde_json::{Value, json};

use crate::{
    fixtures::{head, now, refused, texts, worker},
    stage::Stage,
};

pub async fn ray_07_and_14_every_field_of_version_1_comes_back(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    clusters
        .create_template(ns, Some(stage.template("t")))
        .await
        .unwrap();
    stage.create(stage.full("a")).await.unwrap();
    let mut found = clusters.get(ns, "a").await.unwrap();
    assert!(found.created_at.take().is_some());
    let created = found.annotations.remove("ray.io/creation-timestamp");
    assert_eq!(created.as_deref(), Some("2026-03-01T10:00:00Z"));
    assert_eq!(found, stage.full("a"));
}

pub async fn ray_05_to_07_and_14_every_field_of_version_1alpha2_comes_back(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    clusters
        .create_template(ns, Some(stage.template("t")))
        .await
        .unwrap();
    let mut asked = convert::from_v1(stage.full("a"));
    // Variables of groups are not of this version.
    asked.envs = texts(&[("A", "1"), ("B", "")]);
    let made = stage
        .create(convert::to_v1(asked.clone()).unwrap())
        .await
        .unwrap();
    assert_eq!(made.namespace, ns);
    let mut found = convert::from_v1(clusters.get(ns, "a").await.unwrap());
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

pub async fn ray_08_events_of_both_forms_are_those_about_this_object(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    stage.create(stage.small("a")).await.unwrap();
    let uid = stage.stored("RayCluster", "a").await["metadata"]["uid"].clone();
    let about =
        |kind: &str, uid: &Value| json!({"kind": kind, "name": "a", "namespace": ns, "uid": uid});
    let event = async |name: &str, about: Value, more: Value| {
        let mut event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": ns},
            "involvedObject": about, "reason": "CreatedHeadPod", "message": "made", "type": "Normal",
        });
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        stage.make(event).await;
    };
    let modern = json!({
        "eventTime": "2026-03-01T11:00:00.000000Z", "reportingComponent": "ray", "reportingInstance": "r",
        "action": "Create", "series": {"count": 5, "lastObservedTime": "2026-03-01T12:00:00.000000Z"},
    });
    event("modern", about("RayCluster", &uid), modern).await;
    let core = json!({
        "firstTimestamp": "2026-03-01T10:00:00Z", "lastTimestamp": "2026-03-01T10:30:00Z", "count": 3,
    });
    event("core", about("RayCluster", &uid), core).await;
    event("pod", about("Pod", &uid), json!({})).await;
    event("before", about("RayCluster", &"another".into()), json!({})).await;
    let found = clusters.get(ns, "a").await.unwrap().events;
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
    let listed = listed.iter().find(|cluster| cluster.namespace == ns);
    assert_eq!(listed.unwrap().events, found);
}

pub async fn ray_09_outputs_are_those_of_the_object(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    let given = v1::Cluster {
        cluster_state: "ready".into(),
        service_endpoint: texts(&[("dashboard", "1")]),
        deleted_at: Some(prost_types::Timestamp::default()),
        created_at: Some(prost_types::Timestamp::default()),
        ..stage.small("a")
    };
    let made = stage.create(given).await.unwrap();
    assert!(
        made.cluster_state.is_empty()
            && made.service_endpoint.is_empty()
            && made.deleted_at.is_none()
    );
    assert!(made.created_at.as_ref().unwrap().seconds > 0);
    let status = json!({"status": {"state": "ready", "endpoints": {"dashboard": "8265"}}});
    stage.merge("a", status).await;
    let held = json!({"metadata": {"finalizers": ["ray.io/held"]}});
    stage.merge("a", held).await;
    let found = clusters.get(ns, "a").await.unwrap();
    assert_eq!(
        (
            found.cluster_state.as_str(),
            &found.service_endpoint["dashboard"][..]
        ),
        ("ready", "8265")
    );
    clusters.delete(ns, "a").await.unwrap();
    assert!(clusters.get(ns, "a").await.unwrap().deleted_at.is_some());
    stage
        .merge("a", json!({"metadata": {"finalizers": null}}))
        .await;
}

pub async fn ray_12_the_object_is_what_the_operator_expects(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    clusters
        .create_template(ns, Some(stage.template("t")))
        .await
        .unwrap();
    let mut asked = stage.small("a");
    head(&mut asked).compute_template = "t".into();
    asked.envs = Some(v1::EnvironmentVariables {
        values: texts(&[("A", "1")]),
        ..Default::default()
    });
    let own = [
        ("ray.io/ft-enabled", "true"),
        ("ray.io/enable-serve-service", "true"),
    ];
    asked.annotations = texts(&own);
    stage.create(asked).await.unwrap();
    let object = stage.stored("RayCluster", "a").await;
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
    assert_eq!(ports, [6379, 10001, 8265, 8080, 52365, 8000]);
    assert_eq!(
        object["metadata"]["annotations"]["ray.io/ft-enabled"],
        "true"
    );
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

pub async fn ray_13_templates_are_optional_and_config_maps_with_their_label(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    stage.create(stage.small("plain")).await.unwrap();
    let container = &stage.stored("RayCluster", "plain").await["spec"]["headGroupSpec"]["template"]
        ["spec"]["containers"][0];
    assert!(container.get("resources").is_none());
    clusters
        .create_template(ns, Some(stage.template("t")))
        .await
        .unwrap();
    assert_eq!(
        clusters.template(ns, "t").await.unwrap(),
        stage.template("t")
    );
    let map = stage.stored("ConfigMap", "t").await;
    assert_eq!(
        map["metadata"]["labels"]["ray.io/config-type"],
        "compute-template"
    );
    assert_eq!(
        (&map["data"]["cpu"], &map["data"]["memory_unit"]),
        (&json!("2"), &json!("Gi"))
    );
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign", "namespace": ns},
        "data": {"cpu": "1", "memory": "1", "password": "p"},
    });
    stage.make(foreign).await;
    for outcome in [
        clusters.template(ns, "foreign").await.map(drop),
        clusters.delete_template(ns, "foreign").await,
    ] {
        assert!(matches!(outcome, Err(Error::Missing(_))), "{outcome:?}");
    }
    let mut asked = stage.small("a");
    worker(&mut asked).compute_template = "foreign".into();
    refused(stage.create(asked).await, "Cannot get compute template");
    let old = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "old", "namespace": stage.other, "labels": {"ray.io/config-type": "compute-template"}},
        "data": {"cpu": "1", "memory": "8", "gpu": "0"},
    });
    stage.make(old).await;
    assert_eq!(
        clusters
            .template(&stage.other, "old")
            .await
            .unwrap()
            .memory_unit,
        "Gi"
    );
    let all = clusters.templates(None).await.unwrap();
    let ours = all
        .iter()
        .filter(|one| [ns, &stage.other].contains(&&one.namespace[..]));
    let mut names: Vec<_> = ours.map(|template| template.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["old", "t"]);
    assert_eq!(clusters.templates(Some(ns)).await.unwrap().len(), 1);
    clusters.delete_template(ns, "t").await.unwrap();
    let of_alpha = alpha::ComputeTemplate {
        name: "u".into(),
        namespace: ns.into(),
        cpu: 1,
        memory: 2,
        gpu: 3,
        gpu_accelerator: "amd.com/gpu".into(),
    };
    let made = clusters
        .create_template(ns, Some(convert::template_to_v1(of_alpha.clone())))
        .await
        .unwrap();
    assert_eq!(convert::template_from_v1(made), of_alpha);
    assert_eq!(
        stage.stored("ConfigMap", "foreign").await["data"]["password"],
        "p"
    );
}

pub async fn ray_16_a_delete_takes_the_cluster_and_no_job(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    for name in ["a", "b"] {
        stage.create(stage.small(name)).await.unwrap();
    }
    let job = json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "a", "namespace": ns},
        "spec": {"clusterSelector": {"ray.io/cluster": "a"}},
    });
    stage.make(job).await;
    clusters.delete(ns, "a").await.unwrap();
    assert_eq!(
        (stage.count("RayCluster").await, stage.count("RayJob").await),
        (1, 1)
    );
}

pub async fn ray_17_lists_have_pages(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    for name in ["a", "b", "c"] {
        stage.create(stage.small(name)).await.unwrap();
    }
    let mut page = Page {
        limit: 2,
        token: String::new(),
    };
    let first = clusters.list(Some(ns), &page).await.unwrap();
    page.token = first.next;
    let second = clusters.list(Some(ns), &page).await.unwrap();
    let names: Vec<_> = first
        .clusters
        .iter()
        .chain(&second.clusters)
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!((names, second.next.as_str()), (vec!["a", "b", "c"], ""));
    page.token = "garbage".into();
    refused(clusters.list(Some(ns), &page).await, "");
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
    let everywhere = clusters.list(None, &Page::default()).await.unwrap();
    let ours = everywhere
        .clusters
        .iter()
        .filter(|cluster| cluster.namespace == ns);
    assert_eq!(ours.count(), 3);
}

pub async fn objects_that_others_changed_are_read_with_defaults(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    let odd = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "odd", "namespace": ns, "labels": {
            "app.kubernetes.io/managed-by": "kuberay-apiserver", "ray.io/environment": "MOON",
        }},
        "spec": {"workerGroupSpecs": [{"groupName": "w", "template": 5}], "headGroupSpec": {"rayStartParams": {"n": 1}}},
    });
    // The definition of the kind refuses it.
    if stage.sim().is_none() {
        return;
    }
    stage.make(odd).await;
    let found = clusters.get(ns, "odd").await.unwrap();
    let spec = found.cluster_spec.unwrap();
    let group = &spec.worker_group_spec[0];
    assert_eq!(
        (group.replicas, group.min_replicas, group.max_replicas),
        (0, 0, i32::MAX)
    );
    assert_eq!(spec.head_group_spec.unwrap().ray_start_params["n"], "1");
    assert_eq!(found.environment, 0);
}
