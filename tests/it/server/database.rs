//! A PostgreSQL that goes away and comes back: calls wait for it as long as `db_wait` says, no
//! longer and no shorter.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use hindsight_proto::v1alpha2 as pb;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};
use tonic::{Code, Status};

use crate::support::{
    TestServer,
    cluster::Cluster,
    database::variable,
    server::{config, refused},
};

/// Whatever takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many connections a server has.
const POOL: usize = 2;

/// The way to a database, which can be cut. Whoever knocks meanwhile gets no answer.
struct Way {
    address: SocketAddr,
    open: watch::Sender<bool>,
    knocks: mpsc::UnboundedReceiver<()>,
    task: JoinHandle<()>,
}

impl Way {
    async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (open, is_open) = watch::channel(true);
        let (knock, knocks) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                knock.send(()).unwrap();
                tokio::spawn(lead(stream, port, is_open.clone()));
            }
        });
        Self {
            address,
            open,
            knocks,
            task,
        }
    }

    /// Ends what is under way.
    fn cut(&mut self) {
        self.open.send_replace(false);
        while self.knocks.try_recv().is_ok() {}
    }

    fn mend(&self) {
        self.mend_if(true);
    }

    fn mend_if(&self, mended: bool) {
        self.open.send_replace(mended);
    }

    /// Somebody knocks after the cut.
    async fn knocked(&mut self) {
        timeout(PATIENCE, self.knocks.recv())
            .await
            .unwrap()
            .unwrap();
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn lead(mut here: TcpStream, port: u16, mut open: watch::Receiver<bool>) {
    if open.wait_for(|open| *open).await.is_err() {
        return;
    }
    let Ok(mut there) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    tokio::select! {
        ended = copy_bidirectional(&mut here, &mut there) => drop(ended),
        cut = open.wait_for(|open| !*open) => drop(cut),
    }
}

fn cluster() -> Option<Cluster> {
    let cluster = Cluster::start();
    if cluster.is_none() {
        assert!(
            variable("HINDSIGHT_FORBID_SKIP").is_none(),
            "run this under tests/with-postgres"
        );
        eprintln!("skipped: HINDSIGHT_TEST_PG_BIN is not set");
    }
    cluster
}

async fn start(db: &str, wait: &str) -> TestServer {
    let pool = POOL.to_string();
    let more = [
        ("db", db),
        ("db_wait", wait),
        ("db_max_connections", pool.as_str()),
    ];
    TestServer::start_as(&config_of(&more)).await
}

fn config_of(more: &[(&str, &str)]) -> hindsight::config::Config {
    config(&crate::support::Database::sqlite(), more)
}

async fn list(server: &TestServer) -> Result<usize, Status> {
    let request = pb::ListResultsRequest {
        parent: "ci".to_owned(),
        ..pb::ListResultsRequest::default()
    };
    let reply = server.rpc().list_results(request).await?;
    Ok(reply.into_inner().results.len())
}

async fn create(server: &TestServer, name: &str) -> Result<(), Status> {
    let result = pb::Result {
        name: name.to_owned(),
        ..pb::Result::default()
    };
    let request = pb::CreateResultRequest {
        result: Some(result),
        ..pb::CreateResultRequest::default()
    };
    server.rpc().create_result(request).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_a_database_that_comes_back_in_time() {
    let Some(cluster) = cluster() else { return };
    let mut way = Way::to(cluster.port()).await;
    let db = format!("postgres://postgres@{}/postgres", way.address);
    let server = start(&db, "1m").await;
    let mut waited = 0;
    for n in 0..4 {
        let name = format!("ci/results/{n}");
        create(&server, &name).await.unwrap();
        way.cut();
        let mut broken = 0;
        loop {
            let mut call = std::pin::pin!(list(&server));
            let early = tokio::select! {
                answer = &mut call => Some(answer),
                () = way.knocked() => None,
            };
            way.mend_if(early.is_none());
            let waits = early.is_none();
            let answer = match early {
                Some(answer) => answer,
                None => timeout(PATIENCE, call).await.unwrap(),
            };
            match answer {
                Ok(found) => {
                    assert_eq!(found, n + 1);
                    waited += usize::from(waits);
                    break;
                }
                Err(status) => {
                    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
                    broken += 1;
                }
            }
            // Only a call that finds a connection broken is refused.
            assert!(broken <= POOL, "{broken} calls were refused");
        }
    }
    assert!(waited > 0, "no call waited");
    server.stop().await;
}

/// Asks until a call was refused after it had waited for a connection.
async fn refused_in_time(server: &TestServer, wait: Duration) {
    let mut broken = 0;
    loop {
        let began = Instant::now();
        refused(list(server).await, Code::Unavailable, "database");
        let took = began.elapsed();
        if took >= wait {
            assert!(took < wait + Duration::from_secs(20), "{took:?}");
            break;
        }
        broken += 1;
        assert!(broken <= POOL, "a call was refused after {took:?}");
    }
    let began = Instant::now();
    refused(
        create(server, "ci/results/new").await,
        Code::Unavailable,
        "database",
    );
    assert!(began.elapsed() >= wait);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_refused_when_the_database_is_away_for_longer() {
    let Some(cluster) = cluster() else { return };
    let wait = Duration::from_millis(300);
    // Nobody answers on the way.
    let mut way = Way::to(cluster.port()).await;
    let db = format!("postgres://postgres@{}/postgres", way.address);
    let server = start(&db, "300ms").await;
    create(&server, "ci/results/old").await.unwrap();
    way.cut();
    refused_in_time(&server, wait).await;
    way.mend();
    answers(&server, 1).await;
    create(&server, "ci/results/new").await.unwrap();
    server.stop().await;

    // Nobody is there.
    let server = start(&cluster.url(), "300ms").await;
    answers(&server, 2).await;
    cluster.stop();
    refused_in_time(&server, wait).await;
    cluster.restart();
    answers(&server, 2).await;
    create(&server, "ci/results/newer").await.unwrap();
    server.stop().await;
}

/// Waits until lists are answered again, each call as long as it may, and find what is there.
async fn answers(server: &TestServer, results: usize) {
    let asking = async {
        loop {
            match list(server).await {
                Ok(found) => return found,
                Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status:?}"),
            }
        }
    };
    assert_eq!(timeout(PATIENCE, asking).await.unwrap(), results);
}
