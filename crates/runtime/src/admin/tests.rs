//! The pages, asked over a socket as a kubelet or Prometheus would.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;

/// Status and body of `method path`, answered by a server with this readiness.
async fn ask(readiness: Readiness, request: &str) -> (u16, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = router(Arc::new(Registry::new()), readiness);
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{request} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    server.abort();

    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn ready() -> Readiness {
    Readiness::new(|| async { Ok(()) })
}

#[tokio::test]
async fn metrics_are_printed_whole() {
    assert_eq!(
        ask(ready(), "GET /metrics").await,
        (200, Registry::new().render())
    );
}

#[tokio::test]
async fn a_live_server_says_so_even_when_it_is_not_ready() {
    let never = Readiness::new(|| async { Err("the store is away".to_owned()) });
    assert_eq!(
        ask(never.clone(), "GET /livez").await,
        (200, "alive\n".to_owned())
    );
    assert_eq!(
        ask(never, "GET /readyz").await,
        (503, "not ready: the store is away\n".to_owned())
    );
}

#[tokio::test]
async fn readiness_is_asked_anew_every_time() {
    let up = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&up);
    let readiness = Readiness::new(move || {
        let up = shared.load(Ordering::SeqCst);
        async move {
            if up {
                Ok(())
            } else {
                Err("starting".to_owned())
            }
        }
    });
    assert_eq!(ask(readiness.clone(), "GET /readyz").await.0, 503);
    up.store(true, Ordering::SeqCst);
    assert_eq!(
        ask(readiness, "GET /readyz").await,
        (200, "ready\n".to_owned())
    );
}

#[tokio::test]
async fn a_check_that_hangs_counts_as_failed() {
    let hangs = Readiness::new(std::future::pending);
    let answer = hangs.ask(Duration::from_millis(1)).await;
    assert_eq!(answer, Err("no answer within 1ms".to_owned()));
}

#[tokio::test]
async fn other_pages_and_methods_are_refused_with_a_hint() {
    let hint = "no page `/health` here; there are /metrics, /livez and /readyz, and the API has \
                a port of its own\n";
    assert_eq!(
        ask(ready(), "GET /health?x=1").await,
        (404, hint.to_owned())
    );
    assert_eq!(ask(ready(), "POST /metrics").await.0, 405);
}
