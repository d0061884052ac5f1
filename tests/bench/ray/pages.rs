//! A history of deleted clusters, and what is asked of it. The tests play it with few clusters and no bounds.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use hindsight_filter::model::{Etag, Payload, Record, RecordName, RunResult};
use hindsight_proto::ray_v1::{
    Cluster, GetClusterRequest, ListAllClustersRequest, ListClustersRequest,
    cluster_service_client::ClusterServiceClient,
};
use hindsight_run::{SummaryPolicy, View, upload};
use hindsight_storage::{Batch, Change, resolve};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tonic::transport::Channel;

const NAMESPACES: usize = 4;
const USERS: usize = 20;
const EVENTS: usize = 6;
const PAGE: i32 = 50;
/// Clusters of a batch.
const BATCH: usize = 100;
/// Minutes between two clusters, so that 10,000 are made in ten weeks, and how many are made while one is there.
const MINUTES: i64 = 10;
const LIFE: usize = 10;

/// The times of the calls of one question, and the clusters that each gave at most.
#[derive(Debug)]
pub struct Asked {
    pub case: &'static str,
    pub times: Vec<Duration>,
    pub rows: usize,
}

impl Asked {
    fn new(case: &'static str) -> Self {
        Self {
            case,
            times: Vec::new(),
            rows: 0,
        }
    }
}

type ClusterClient = ClusterServiceClient<Channel>;

fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

fn time(number: usize) -> Timestamp {
    let seconds = i64::try_from(number).unwrap() * MINUTES * 60;
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
            "creationTimestamp": time(number).to_string(), "deletionTimestamp": time(number + LIFE).to_string(),
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

/// Fills a new database with so many deleted clusters and the events of each, stored when they were made and changed when they
/// were deleted.
pub async fn fill(url: &str, clusters: usize) {
    let options = resolve::Options {
        schema: resolve::Schema::Migrate,
        ..resolve::Options::default()
    };
    let opened = resolve::open(url, &options).await.unwrap();
    let all: Vec<usize> = (0..clusters).collect();
    for some in all.chunks(BATCH) {
        let changes = some.iter().flat_map(|number| rows(*number)).collect();
        opened.store.commit(&Batch { changes }).await.unwrap();
    }
    opened.maintenance.close().await;
}

/// The result of a cluster, the cluster and its events.
fn rows(number: usize) -> [Change; 3] {
    let object = cluster(number);
    let run = upload(&View::new(&object), None, &SummaryPolicy::default()).unwrap();
    let name = run.grouping.record;
    let (made, deleted) = (time(number), time(number + LIFE));
    let etag = |at| Etag::new(&name.to_string(), at);
    let result = RunResult {
        name: name.result().clone(),
        uid: format!("result-{number}"),
        etag: etag(made),
        create_time: made,
        update_time: made,
        annotations: run.annotations,
        summary: None,
    };
    let record = |name: RecordName, data_type: String, object: &Value| {
        Change::InsertRecord(Record {
            uid: name.id().to_owned(),
            etag: etag(deleted),
            name,
            create_time: made,
            update_time: deleted,
            data: Some(Payload::new(data_type, object.to_string().into())),
        })
    };
    let of_events = name.result().record(&format!("{}-events", name.id()));
    let of_events = record(
        of_events.unwrap(),
        "results.tekton.dev/v1.EventList".to_owned(),
        &events(&object),
    );
    let of_cluster = record(name.clone(), run.data_type, &object);
    [Change::InsertResult(result), of_cluster, of_events]
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

/// A question that is asked page by page.
struct Question {
    case: &'static str,
    sort_by: &'static str,
    filter: &'static str,
    /// Of so many clusters of a namespace one matches.
    share: usize,
}

const QUESTIONS: [Question; 4] = [
    Question {
        case: "newest first",
        sort_by: "",
        filter: "",
        share: 1,
    },
    Question {
        case: "by name",
        sort_by: "name",
        filter: "",
        share: 1,
    },
    Question {
        case: "by the time of deletion, newest first",
        sort_by: "deleted_at desc",
        filter: "",
        share: 1,
    },
    Question {
        case: "of one user, by the time of creation",
        sort_by: "created_at",
        filter: "data.metadata.labels['ray.io/user'] == 'user-4'",
        share: USERS / NAMESPACES,
    },
];

impl Question {
    /// Whether two clusters may follow each other.
    fn is_in_order(&self, first: &Cluster, second: &Cluster) -> bool {
        match self.sort_by {
            "deleted_at desc" => seconds(&first.deleted_at) > seconds(&second.deleted_at),
            "created_at" => seconds(&first.created_at) < seconds(&second.created_at),
            "name" => first.name < second.name,
            _ => seconds(&first.created_at) > seconds(&second.created_at),
        }
    }

    /// Asks for `times` pages of one namespace, again from the first after the last.
    async fn ask(&self, client: &mut ClusterClient, clusters: usize, times: usize) -> Asked {
        let mut asked = Asked::new(self.case);
        let mut seen: Vec<Cluster> = Vec::new();
        let mut request = ListClustersRequest {
            namespace: namespace(0),
            include_deleted: true,
            page_size: PAGE,
            sort_by: self.sort_by.to_owned(),
            filter: self.filter.to_owned(),
            ..Default::default()
        };
        while asked.times.len() < times {
            let began = Instant::now();
            let page = client.list_cluster(request.clone()).await.unwrap();
            asked.times.push(began.elapsed());
            let page = page.into_inner();
            asked.rows = asked.rows.max(page.clusters.len());
            seen.extend(page.clusters);
            if page.next_page_token.is_empty() {
                self.check(&seen, clusters);
                seen.clear();
            }
            request.page_token = page.next_page_token;
        }
        asked
    }

    /// That these are all clusters of the namespace that match, each once and whole, in order.
    #[track_caller]
    fn check(&self, seen: &[Cluster], clusters: usize) {
        let expected = clusters.div_ceil(NAMESPACES).div_ceil(self.share);
        let names: BTreeSet<_> = seen.iter().map(|cluster| &cluster.name).collect();
        assert_eq!(
            (seen.len(), names.len()),
            (expected, expected),
            "{}",
            self.case
        );
        for pair in seen.windows(2) {
            assert!(self.is_in_order(&pair[0], &pair[1]), "{}", pair[0].name);
        }
        for cluster in seen {
            is_whole(cluster);
            assert_eq!(cluster.namespace, namespace(0));
        }
    }
}

/// Asks a server about such a history, `times` of each kind, and looks at every answer.
pub async fn ask(channel: Channel, clusters: usize, times: usize) -> Vec<Asked> {
    let mut client = ClusterServiceClient::new(channel);
    let mut all = Vec::new();
    for question in QUESTIONS {
        all.push(question.ask(&mut client, clusters, times).await);
    }
    let mut everywhere = Asked::new("first page of all namespaces");
    let mut one = Asked::new("one deleted cluster");
    for number in 0..times {
        let request = ListAllClustersRequest {
            include_deleted: true,
            page_size: PAGE,
            ..Default::default()
        };
        let began = Instant::now();
        let page = client.list_all_clusters(request).await.unwrap();
        everywhere.times.push(began.elapsed());
        let page = page.into_inner().clusters;
        let names: BTreeSet<_> = page.iter().map(name).collect();
        assert_eq!(
            (page.len(), names.len()),
            (clusters.min(50), clusters.min(50))
        );
        everywhere.rows = names.len();
        let number = number * 7 % clusters;
        let wanted = format!("train-{:05}", number / NAMESPACES);
        let request = GetClusterRequest {
            name: wanted.clone(),
            namespace: namespace(number),
            include_deleted: true,
        };
        let began = Instant::now();
        let found = client.get_cluster(request).await.unwrap();
        one.times.push(began.elapsed());
        let found = found.into_inner();
        is_whole(&found);
        assert_eq!(found.name, wanted);
        one.rows = 1;
    }
    all.extend([everywhere, one]);
    all
}

fn seconds(time: &Option<prost_types::Timestamp>) -> i64 {
    time.as_ref().map_or(0, |time| time.seconds)
}
