//! The load: writers that remember what was acknowledged, and what was asked for.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use hindsight_client::Rpc;
use hindsight_proto::v1alpha2 as pb;
use tokio::sync::Notify;
use tonic::Code;

/// What is known of a record.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Its payload as it was last acknowledged or seen; none if it is not there.
    pub(super) is: Option<Bytes>,
    pub(super) etag: String,
    /// What was asked for and not answered.
    pub(super) asked: Option<Option<Bytes>>,
}

pub(super) type Model = BTreeMap<String, Known>;

/// Numbers that look random.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// One in four does not compress, so that it lies outside.
fn payload(name: &str, version: u64) -> Bytes {
    let mut dice = Dice(version);
    let script = match version % 4 {
        0 => (0..500)
            .map(|_| format!("{:08x}", dice.below(1 << 31)))
            .collect(),
        _ => "set -e; make test; ".repeat(60),
    };
    let text = format!(
        r#"{{"kind":"TaskRun","metadata":{{"name":"{name}","labels":{{"v":"{version}"}}}},"spec":{{"script":"{script}"}},"status":{{"conditions":[{{"type":"Succeeded","status":"True"}}]}}}}"#
    );
    text.into()
}

fn any(value: &Bytes) -> pb::Any {
    pb::Any {
        r#type: "tekton.dev/v1.TaskRun".to_owned(),
        value: value.clone(),
    }
}

#[derive(Default)]
pub(super) struct Shared {
    pub(super) acknowledged: AtomicUsize,
    pub(super) news: Notify,
    pub(super) stop: AtomicBool,
}

/// Creates, updates and deletes its own records until it is told to stop or a call fails.
pub(super) async fn write(
    mut rpc: Rpc,
    writer: usize,
    mut model: Model,
    seed: u64,
    shared: Arc<Shared>,
) -> Model {
    let mut dice = Dice(seed);
    while !shared.stop.load(Ordering::Relaxed) {
        let name = format!("ci/results/w{writer}/records/r{}", dice.below(60));
        let known = model.entry(name.clone()).or_default();
        let value = payload(&name, dice.below(1_000_000));
        let outcome = match (&known.is, dice.below(5)) {
            (None, _) => {
                known.asked = Some(Some(value.clone()));
                let record = pb::Record {
                    name: name.clone(),
                    data: Some(any(&value)),
                    ..pb::Record::default()
                };
                let request = pb::CreateRecordRequest {
                    parent: format!("ci/results/w{writer}"),
                    record: Some(record),
                };
                rpc.create_record(request)
                    .await
                    .map(|r| r.into_inner().etag)
            }
            (Some(_), 0) => {
                known.asked = Some(None);
                let request = pb::DeleteRecordRequest { name: name.clone() };
                rpc.delete_record(request).await.map(|_| String::new())
            }
            (Some(_), _) => {
                known.asked = Some(Some(value.clone()));
                let record = pb::Record {
                    name: name.clone(),
                    data: Some(any(&value)),
                    ..pb::Record::default()
                };
                let request = pb::UpdateRecordRequest {
                    record: Some(record),
                    etag: known.etag.clone(),
                    ..pb::UpdateRecordRequest::default()
                };
                rpc.update_record(request)
                    .await
                    .map(|r| r.into_inner().etag)
            }
        };
        match outcome {
            Ok(etag) => {
                known.is = known.asked.take().expect("it was asked for");
                known.etag = etag;
                shared.acknowledged.fetch_add(1, Ordering::Relaxed);
                shared.news.notify_one();
            }
            Err(status) => {
                let gone = [
                    Code::Unavailable,
                    Code::Unknown,
                    Code::Internal,
                    Code::Cancelled,
                ];
                assert!(gone.contains(&status.code()), "{name}: {status:?}");
                break;
            }
        }
    }
    model
}
