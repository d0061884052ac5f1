//! What is refused, and what is not there.

use hindsight_proto::ray_v1 as v1;
use hindsight_ray::{Error, Page};
use kubesim::Crd;
use serde_json::json;

use crate::{
    fixtures::{head, now, refused, texts, volumes, worker},
    stage::Stage,
};

pub async fn ray_01_no_operator_is_needed_and_no_pod_is_made(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    let made = stage.create(stage.small("a")).await.unwrap();
    assert_eq!(made.cluster_state, "");
    assert_eq!(clusters.get(ns, "a").await.unwrap(), made);
    assert_eq!(stage.count("Pod").await, 0);
    // Others may need the kind on a real server.
    let Some(sim) = stage.sim() else { return };
    sim.uninstall(&Crd::ray()[1]);
    for outcome in [
        clusters.list(None, &Page::default()).await.map(drop),
        clusters.get(ns, "a").await.map(drop),
        stage.create(stage.small("b")).await.map(drop),
    ] {
        let why = outcome.unwrap_err();
        assert!(
            matches!(&why, Error::Unavailable(text) if text.contains("install")),
            "{why:?}"
        );
    }
}

/// What is changed in a request.
type Change<T> = fn(&mut T);

fn twice(cluster: &mut v1::Cluster) {
    let spec = cluster.cluster_spec.as_mut().unwrap();
    spec.worker_group_spec
        .push(spec.worker_group_spec[0].clone());
}

fn volume(cluster: &mut v1::Cluster) {
    head(cluster).volumes = vec![volumes()[5].clone(), volumes()[5].clone()];
}

const WRONG_CLUSTERS: [(Change<v1::Cluster>, &str); 23] = [
    (
        |it| *it = v1::Cluster::default(),
        "The namespace in the request is different",
    ),
    (
        |it| it.namespace = "dev".into(),
        "The namespace in the request is different",
    ),
    (
        |it| it.name.clear(),
        "Cluster name is empty. Please specify a valid value.",
    ),
    (
        |it| it.user.clear(),
        "User who create the cluster is empty.",
    ),
    (
        |it| it.cluster_spec = None,
        "A ClusterSpec object is required.",
    ),
    (
        |it| it.cluster_spec.as_mut().unwrap().head_group_spec = None,
        "requires HeadGroupSpec",
    ),
    (
        |it| worker(it).group_name.clear(),
        "WorkerNodeSpec 0 group name is empty.",
    ),
    (
        |it| worker(it).min_replicas = 3,
        "WorkerNodeSpec 0 MinReplica > MaxReplicas.",
    ),
    (|it| worker(it).replicas = -1, "negative replicas"),
    (|it| it.environment = 9, "environment"),
    (twice, "is taken by another group"),
    (
        |it| it.user = "zoe@example.org".into(),
        "Cluster user `zoe@example.org` is not a label value",
    ),
    (|it| it.version = "a b".into(), "Cluster version"),
    (|it| it.name = "A".into(), "Cluster name `A`"),
    (|it| it.name = "a".repeat(54), "at most 53"),
    (
        |it| head(it).labels = texts(&[("team", "a b")]),
        "not a label value",
    ),
    (
        |it| worker(it).labels = texts(&[("a b", "c")]),
        "not the key",
    ),
    (
        |it| head(it).labels = texts(&[("ray.io/group", "c")]),
        "reserved for the operator",
    ),
    (
        |it| head(it).image_pull_policy = "always".into(),
        "Please specify Always or IfNotPresent",
    ),
    (
        |it| head(it).service_type = "External".into(),
        "service_type",
    ),
    (volume, "two volumes"),
    (|it| it.version.clear(), "version is empty"),
    (
        |it| head(it).ray_start_params = texts(&[("$a", "b")]),
        "not the name of an argument",
    ),
];

const WRONG_TEMPLATES: [(Change<v1::ComputeTemplate>, &str); 7] = [
    (
        |it| it.extended_resources = [("cpu".to_owned(), 9)].into(),
        "`cpu` is not the name of an extended resource",
    ),
    (|it| it.name.clear(), "Compute template name is empty."),
    (
        |it| it.namespace = "dev".into(),
        "namespace defined in the compute template",
    ),
    (|it| it.cpu = 0, "Cpu amount is zero."),
    (|it| it.memory = 0, "Memory amount is zero."),
    (
        |it| it.memory_unit = "GiB".into(),
        "invalid memory quantity",
    ),
    (
        |it| it.gpu_accelerator = "a b".into(),
        "not the name of an extended resource",
    ),
];

pub async fn ray_10_what_makes_no_sense_is_invalid_and_makes_nothing(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    let changed = |change: Change<v1::Cluster>| {
        let mut cluster = stage.small("a");
        change(&mut cluster);
        cluster
    };
    for (wrong, why) in WRONG_CLUSTERS {
        refused(stage.create(changed(wrong)).await, why);
    }
    refused(
        clusters.create(ns, None, now()).await,
        "A Cluster object is required",
    );
    refused(
        clusters.create("", Some(stage.small("a")), now()).await,
        "Namespace is empty.",
    );
    refused(clusters.get("", "a").await, "Namespace is empty.");
    refused(clusters.get(ns, "").await, "Cluster name is empty.");
    refused(
        clusters.create_template(ns, None).await,
        "ComputeTemplate object is required",
    );
    for (wrong, why) in WRONG_TEMPLATES {
        let mut asked = stage.template("t");
        wrong(&mut asked);
        refused(clusters.create_template(ns, Some(asked)).await, why);
    }
    assert_eq!(
        stage.count("RayCluster").await + stage.count("ConfigMap").await,
        0
    );
}

pub async fn ray_11_missing_and_taken_names_are_told_apart(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    let missing = |outcome: Result<(), Error>| {
        assert!(matches!(outcome, Err(Error::Missing(_))), "{outcome:?}")
    };
    missing(clusters.get(ns, "a").await.map(drop));
    missing(clusters.get(ns, "A b").await.map(drop));
    missing(clusters.delete(ns, "a").await);
    missing(clusters.template(ns, "t").await.map(drop));
    missing(clusters.delete_template(ns, "t").await);
    stage.create(stage.small("a")).await.unwrap();
    let again = stage.create(stage.small("a")).await;
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
    clusters
        .create_template(ns, Some(stage.template("t")))
        .await
        .unwrap();
    let again = clusters
        .create_template(ns, Some(stage.template("t")))
        .await;
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
    let nowhere = v1::Cluster {
        namespace: "none".into(),
        ..stage.small("b")
    };
    missing(
        clusters
            .create("none", Some(nowhere), now())
            .await
            .map(drop),
    );
    let mut unknown = stage.small("b");
    head(&mut unknown).compute_template = "u".into();
    refused(
        stage.create(unknown).await,
        "Cannot get compute template for name 'u'",
    );
    assert_eq!(stage.count("RayCluster").await, 1);
}

pub async fn ray_15_others_clusters_are_not_visible(stage: Stage) {
    let (ns, clusters) = (&stage.ns[..], &stage.clusters);
    let template = json!({"spec": {"containers": [{"name": "ray-head", "image": "ray"}]}});
    let of_kubectl = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "k", "namespace": ns},
        "spec": {"headGroupSpec": {"rayStartParams": {}, "template": template}},
    });
    stage.make(of_kubectl).await;
    stage.create(stage.small("a")).await.unwrap();
    let listed = clusters.list(Some(ns), &Page::default()).await.unwrap();
    assert_eq!(listed.clusters.len(), 1);
    for outcome in [
        clusters.get(ns, "k").await.map(drop),
        clusters.delete(ns, "k").await,
    ] {
        let why = outcome.unwrap_err();
        assert!(
            matches!(&why, Error::Missing(text) if text.contains("not managed by")),
            "{why:?}"
        );
    }
    assert_eq!(stage.count("RayCluster").await, 2);
}
