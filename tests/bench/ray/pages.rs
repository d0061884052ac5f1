//! A history of deleted clusters, and what is asked of it. The tests play it with few clusters and no bounds.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use hindsight_client::Client;
use hindsight_proto::ray_v1::{
    Cluster, GetClusterRequest, ListAllClustersRequest, ListClustersRequest,
    cluster_service_client::ClusterServiceClient,
};
use hindsight_run::{Grouping, Upload, View, upload};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tonic::transport::Channel;

const NAMESPACES: usize = 4;
const USERS: usize = 20;
const EVENTS: usize = 6;
const PAGE: i32 = 50;
/// Writes at the same time.
const WRITERS: usize = 16;

/// The times of the calls of one question, and the clusters that each gave at most.
#[derive(Debug)]
pub struct Asked {
    pub case: &'static str,
    pub times: Vec<Duration>,
    pub rows: usize,
}

fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

fn time(number: usize) -> Timestamp {
    let seconds = i64::try_from(number).unwrap() * 60;
    Timestamp::constant(1_772_000_000, 0) + SignedDuration::from_secs(seconds)
}

/// A group as the service writes it, so that payloads have their size.
fn group(name: &str) -> Value {
    json!({
        "rayStartParams": {"dashboard-host": "0.0.0.0", "metrics-export-port": "8080"},
        "template": {
            "metadata": {"annotations": {"ray.io/compute-template": "t", "ray.io/compute-image": "rayproject/ray:2.46.0"}},
            "spec": {"containers": [{
                "name": name, "image": "rayproject/ray:2.46.0", "imagePullPolicy": "IfNotPresent",
                "env": [
                    {"name": "MY_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "A", "value": "1"}, {"name": "B", "value": "2"},
                ],
                "ports": [{"name": "redis", "containerPort": 6379}, {"name": "dashboard", "containerPort": 8265}],
                "resources": {"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {"cpu": "2", "memory": "4Gi"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": false}],
            }], "volumes": [{"name": "data", "hostPath": {"path": "/data", "type": "Directory"}}]},
        },
    })
}

fn cluster(number: usize) -> Value {
    let mut workers = group("ray-worker");
    let counts = json!({"groupName": "w", "replicas": 1, "minReplicas": 1, "maxReplicas": 3});
    let counts = counts.as_object().unwrap().clone();
    workers.as_object_mut().unwrap().extend(counts);
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {
            "name": format!("train-{:05}", number / NAMESPACES), "namespace": namespace(number),
            "uid": format!("00000000-0000-4000-8000-{number:012}"), "resourceVersion": "7",
            "creationTimestamp": time(number).to_string(), "deletionTimestamp": time(number + 100).to_string(),
            "labels": {
                "app.kubernetes.io/managed-by": "kuberay-apiserver", "app.kubernetes.io/name": "kuberay",
                "ray.io/cluster-name": format!("train-{:05}", number / NAMESPACES), "ray.io/environment": "DEV",
                "ray.io/user": format!("user-{}", number % USERS), "ray.io/version": "2.46.0",
            },
        },
        "spec": {"rayVersion": "2.46.0", "headGroupSpec": group("ray-head"), "workerGroupSpecs": [workers]},
        "status": {"state": "ready", "endpoints": {"dashboard": "8265", "client": "10001"}},
    })
}

fn events(of: &Value) -> Value {
    let metadata = &of["metadata"];
    let event = |number: usize| {
        json!({
            "metadata": {"name": format!("e{number}"), "namespace": metadata["namespace"],
                "creationTimestamp": metadata["creationTimestamp"]},
            "involvedObject": {"kind": "RayCluster", "name": metadata["name"], "uid": metadata["uid"]},
            "reason": "CreatedWorkerPod", "message": "Created worker Pod", "type": "Normal", "count": 1,
            "firstTimestamp": metadata["creationTimestamp"], "lastTimestamp": metadata["creationTimestamp"],
        })
    };
    json!({"metadata": {"resourceVersion": "9"}, "items": (0..EVENTS).map(event).collect::<Vec<_>>()})
}

/// Stores so many deleted clusters, and the events of each.
pub async fn fill(client: &Client, clusters: usize) {
    let batched = client.batched();
    let writes = stream::iter(0..clusters).map(|number| {
        let batched = batched.clone();
        async move {
            let object = cluster(number);
            let run = upload(&View::new(&object), None, &Default::default()).unwrap();
            let list = Upload {
                grouping: Grouping {
                    record: run
                        .grouping
                        .record
                        .result()
                        .record(&format!("{}-events", run.grouping.record.id()))
                        .unwrap(),
                    is_root: false,
                    notes: Vec::new(),
                },
                data_type: "results.tekton.dev/v1.EventList".to_owned(),
                annotations: Default::default(),
                summary: None,
            };
            let of_cluster = events(&object).to_string();
            batched.store(&run, object.to_string()).await.unwrap();
            batched.store(&list, of_cluster).await.unwrap();
        }
    });
    writes.buffer_unordered(WRITERS).collect::<()>().await;
}

fn name(cluster: &Cluster) -> String {
    format!("{}/{}", cluster.namespace, cluster.name)
}

/// That a cluster is told with all that is stored of it.
#[track_caller]
fn is_whole(cluster: &Cluster) {
    assert_eq!(cluster.events.len(), EVENTS);
    assert!(seconds(&cluster.deleted_at) > seconds(&cluster.created_at));
    let spec = cluster.cluster_spec.as_ref().unwrap();
    assert_eq!(spec.worker_group_spec[0].max_replicas, 3);
    assert_eq!(cluster.cluster_state, "ready");
}

/// Asks a server for pages of such a history, `times` of each kind, and looks at every answer.
pub async fn ask(channel: Channel, clusters: usize, times: usize) -> Vec<Asked> {
    let mut client = ClusterServiceClient::new(channel);
    let of_one = clusters.div_ceil(NAMESPACES);
    let mut all = Vec::new();
    for (case, sort_by, filter, share) in [
        ("by namespace and name", "", "", 1),
        (
            "by the time of deletion, newest first",
            "deleted_at desc",
            "",
            1,
        ),
        (
            "of one user, by the time of creation",
            "created_at",
            "data.metadata.labels['ray.io/user'] == 'user-4'",
            USERS / NAMESPACES,
        ),
    ] {
        let mut asked = Asked {
            case,
            times: Vec::new(),
            rows: 0,
        };
        let mut seen = BTreeSet::new();
        let mut request = ListClustersRequest {
            namespace: namespace(0),
            include_deleted: true,
            page_size: PAGE,
            sort_by: sort_by.to_owned(),
            filter: filter.to_owned(),
            ..Default::default()
        };
        let mut last: Option<Cluster> = None;
        while asked.times.len() < times {
            let began = Instant::now();
            let page = client
                .list_cluster(request.clone())
                .await
                .unwrap()
                .into_inner();
            asked.times.push(began.elapsed());
            asked.rows = asked.rows.max(page.clusters.len());
            for cluster in page.clusters {
                is_whole(&cluster);
                assert_eq!(cluster.namespace, namespace(0));
                if let Some(last) = &last {
                    let is_in_order = match sort_by {
                        "deleted_at desc" => {
                            seconds(&last.deleted_at) > seconds(&cluster.deleted_at)
                        }
                        "created_at" => seconds(&last.created_at) < seconds(&cluster.created_at),
                        _ => last.name < cluster.name,
                    };
                    assert!(is_in_order, "{} before {}", last.name, cluster.name);
                }
                assert!(
                    seen.insert(cluster.name.clone()),
                    "{} is told twice",
                    cluster.name
                );
                last = Some(cluster);
            }
            if page.next_page_token.is_empty() {
                assert_eq!(
                    seen.len(),
                    of_one.div_ceil(share),
                    "{case}: every cluster once"
                );
                seen.clear();
                last = None;
            }
            request.page_token = page.next_page_token;
        }
        all.push(asked);
    }
    let mut everywhere = Asked {
        case: "first page of all namespaces",
        times: Vec::new(),
        rows: 0,
    };
    let mut one = Asked {
        case: "one deleted cluster",
        times: Vec::new(),
        rows: 1,
    };
    for number in 0..times {
        let request = ListAllClustersRequest {
            include_deleted: true,
            page_size: PAGE,
            ..Default::default()
        };
        let began = Instant::now();
        let page = client
            .list_all_clusters(request)
            .await
            .unwrap()
            .into_inner();
        everywhere.times.push(began.elapsed());
        everywhere.rows = page.clusters.len();
        let names: Vec<_> = page.clusters.iter().map(name).collect();
        assert!(
            names.is_sorted() && names.len() == clusters.min(50),
            "{names:?}"
        );
        let number = number * 7 % clusters;
        let wanted = format!("train-{:05}", number / NAMESPACES);
        let request = GetClusterRequest {
            name: wanted.clone(),
            namespace: namespace(number),
            include_deleted: true,
        };
        let began = Instant::now();
        let found = client.get_cluster(request).await.unwrap().into_inner();
        one.times.push(began.elapsed());
        is_whole(&found);
        assert_eq!(found.name, wanted);
    }
    all.extend([everywhere, one]);
    all
}

fn seconds(time: &Option<prost_types::Timestamp>) -> i64 {
    time.as_ref().map_or(0, |time| time.seconds)
}
