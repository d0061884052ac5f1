//! Reading logs from another system: how long, how much, and how often.

use std::sync::atomic::{AtomicUsize, Ordering};

use hindsight_logs::decode;
use hindsight_run::View;
use hindsight_runtime::error::{ErrorKind, HasKind as _};
use hindsight_runtime::telemetry::Registry;
use hindsight_storage::LogSource;
use jiff::Timestamp;
use serde_json::json;

use super::*;

/// What a home does.
#[derive(Debug)]
enum Act {
    Give(Vec<(&'static str, i64, Vec<u8>)>),
    Hang,
    Refuse,
}

#[derive(Debug)]
struct Home(Act, AtomicUsize);

impl LogHome for Home {
    fn name(&self) -> &str {
        "a home at http://there"
    }

    fn read<'a>(
        &'a self,
        _run: &'a AskedLog,
        to: &'a mut Spool,
    ) -> BoxFuture<'a, Result<(), HomeError>> {
        Box::pin(async move {
            self.1.fetch_add(1, Ordering::SeqCst);
            match &self.0 {
                Act::Give(lines) => {
                    for (container, time, text) in lines {
                        let source = LogSource {
                            container: (*container).to_owned(),
                            ..LogSource::default()
                        };
                        to.write(&source, *time, text)?;
                    }
                    Ok(())
                }
                Act::Hang => std::future::pending().await,
                Act::Refuse => Err(HomeError::Away("status 401".to_owned())),
            }
        })
    }
}

fn run(ended: bool) -> AskedLog {
    let mut object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"uid": "u"},
        "status": {"steps": [{"name": "one"}, {"name": "two"}]},
    });
    if ended {
        object["status"]["completionTime"] = json!("2026-03-01T10:03:05Z");
    }
    let record = "ci/results/r/records/run".parse().unwrap();
    let times = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    AskedLog::new(record, &View::new(&object), times, "log".to_owned())
}

/// The homes, the first of them, and what reading gives.
struct Scene {
    homes: LogHomes,
    first: Arc<Home>,
    redaction: Arc<Redaction>,
    metrics: LogMetrics,
}

impl Scene {
    fn of(acts: Vec<Act>, most: usize) -> Self {
        let homes: Vec<_> = acts
            .into_iter()
            .map(|act| Arc::new(Home(act, AtomicUsize::new(0))))
            .collect();
        let first = Arc::clone(&homes[0]);
        let homes = homes.into_iter().map(|home| home as _).collect();
        Self {
            homes: LogHomes::new(homes, Duration::from_secs(30), most),
            first,
            redaction: Arc::new(Redaction::new(&["secret".to_owned()]).unwrap()),
            metrics: LogMetrics::new(&mut Registry::new()),
        }
    }

    async fn read(&self, ended: bool) -> Result<Option<Arc<Lent>>, Error> {
        let read = self.homes.read(run(ended), &self.redaction, &self.metrics);
        read.await
    }
}

fn text(lent: &Lent, row: i64) -> String {
    let chunks = &lent.source(row).unwrap().chunks;
    let texts = chunks.iter().map(|chunk| decode(chunk).unwrap().text);
    String::from_utf8(texts.collect::<Vec<_>>().concat()).unwrap()
}

#[tokio::test]
async fn sources_have_the_order_of_the_steps_and_secrets_are_left_out() {
    let lines = vec![
        ("step-two", 1, b"two\n".to_vec()),
        ("other", 0, b"other\n".to_vec()),
        ("step-one", 9, b"a secret\n".to_vec()),
    ];
    let scene = Scene::of(vec![Act::Give(vec![]), Act::Give(lines)], 1000);
    let lent = scene.read(true).await.unwrap().unwrap();
    let names: Vec<_> = lent
        .sources
        .iter()
        .map(|log| log.key.source.container.as_str())
        .collect();
    assert_eq!(names, ["step-one", "step-two", "other"]);
    assert_eq!(text(&lent, 1), "a ***\n");
    assert!(lent.sources.iter().all(|log| log.sha256.is_some()));
    assert!(lent.source(0).is_none() && lent.source(4).is_none());
}

#[tokio::test]
async fn a_log_of_an_ended_run_is_read_once_for_a_page() {
    for (ended, reads) in [(true, 1), (false, 2)] {
        let given = vec![("step-one", 1, b"a\n".to_vec())];
        let scene = Scene::of(vec![Act::Give(given)], 1000);
        scene.read(ended).await.unwrap().unwrap();
        let lent = scene.read(ended).await.unwrap().unwrap();
        assert_eq!(
            scene.first.1.load(Ordering::SeqCst),
            reads,
            "ended: {ended}"
        );
        assert_eq!(lent.sources[0].sha256.is_some(), ended);
    }
}

#[tokio::test]
async fn a_log_that_is_too_long_is_cut_and_says_so() {
    let given = vec![
        ("step-one", 1, b"0123456789\n".repeat(10)),
        ("step-two", 1, b"after\n".to_vec()),
    ];
    let scene = Scene::of(vec![Act::Give(given)], 25);
    let lent = scene.read(true).await.unwrap().unwrap();
    let said = text(&lent, 1);
    assert!(
        said.starts_with(
            "0123456789\n0123456789\n012\na home at http://there has more of this log"
        ),
        "{said}"
    );
    assert_eq!(lent.sources.len(), 1);
    assert_eq!((lent.sources[0].holes, &lent.sources[0].sha256), (1, &None));
}

#[tokio::test(start_paused = true)]
async fn a_home_that_does_not_answer_or_refuses_is_named() {
    for (act, why) in [
        (Act::Hang, "no whole answer within 30s"),
        (Act::Refuse, "status 401"),
    ] {
        let scene = Scene::of(vec![act], 1000);
        let error = scene.read(true).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let said = error.to_string();
        assert!(
            said.contains("a home at http://there") && said.contains(why),
            "{said}"
        );
        assert!(scene.read(true).await.is_err(), "failures are not kept");
        assert_eq!(scene.first.1.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn logs_that_are_in_use_take_from_the_memory_of_all() {
    // Bytes that do not compress.
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    let noise: Vec<u8> = std::iter::repeat_with(&mut next).take(3 << 20).collect();
    let mut scene = Scene::of(vec![Act::Give(vec![("step-one", 1, noise)])], 8 << 20);
    scene.homes.memory = Arc::new(Semaphore::new(4 << 10));
    let lent = scene.read(false).await.unwrap().unwrap();
    let error = scene.read(false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted);
    drop(lent);
    scene.read(true).await.unwrap().unwrap();
    // One that is only kept for later makes room.
    scene.read(false).await.unwrap().unwrap();
}
