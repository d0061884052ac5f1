//! Calls of others: lists and creates at a pace, each timed.

use std::time::{Duration, Instant};

use hindsight_proto::v1alpha2 as pb;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{figures::Times, fresh::client};

/// A call begins so long after the one before it.
const LIST: Duration = Duration::from_millis(50);
const CREATE: Duration = Duration::from_millis(100);
/// What clients ask for most: the newest runs of everything, of a kind, and with a label.
const FILTERS: [&str; 3] = [
    "",
    r#"data_type == "tekton.dev/v1.PipelineRun""#,
    r#"data.metadata.labels["tier"] == "silver""#,
];

/// How long calls took.
#[derive(Debug, Default)]
pub struct Taken {
    pub lists: Times,
    pub creates: Times,
}

#[derive(Debug)]
pub struct Load {
    stop: CancellationToken,
    lists: JoinHandle<Times>,
    creates: JoinHandle<Times>,
}

impl Load {
    pub fn start(url: &str) -> Self {
        let stop = CancellationToken::new();
        Self {
            lists: tokio::spawn(lists(url.to_owned(), stop.clone())),
            creates: tokio::spawn(creates(url.to_owned(), stop.clone())),
            stop,
        }
    }

    pub async fn stop(self) -> Taken {
        self.stop.cancel();
        Taken {
            lists: self.lists.await.unwrap(),
            creates: self.creates.await.unwrap(),
        }
    }
}

async fn lists(url: String, stop: CancellationToken) -> Times {
    let (rpc, mut times) = (client(&url, None).rpc(), Times::default());
    for filter in FILTERS.iter().cycle() {
        let request = pb::ListRecordsRequest {
            parent: "-/results/-".to_owned(),
            filter: (*filter).to_owned(),
            order_by: "create_time desc".to_owned(),
            page_size: 50,
            ..pb::ListRecordsRequest::default()
        };
        let began = Instant::now();
        rpc.clone().list_records(request).await.unwrap();
        times.add(began.elapsed());
        tokio::time::sleep(LIST).await;
        if stop.is_cancelled() {
            break;
        }
    }
    times
}

async fn creates(url: String, stop: CancellationToken) -> Times {
    let (mut rpc, mut times) = (client(&url, None).rpc(), Times::default());
    while !stop.is_cancelled() {
        let request = pb::CreateResultRequest {
            parent: "beside".to_owned(),
            result: Some(pb::Result {
                name: format!("beside/results/{}", uuid::Uuid::new_v4()),
                ..pb::Result::default()
            }),
        };
        let began = Instant::now();
        rpc.create_result(request).await.unwrap();
        times.add(began.elapsed());
        tokio::time::sleep(CREATE).await;
    }
    times
}
