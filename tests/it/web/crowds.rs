//! Many who read nothing of what they are answered leave pages to others.

use std::time::Duration;

use hyper::Request;
use serde_json::json;

use super::{
    logs::{append, container},
    page,
    seed::empty,
    sign_in::{cookie, guarded, sign_in},
};
use crate::support::{
    frames::{Raw, Sent},
    http::Http,
    objects::{PIPELINE_RUN, bytes},
};

/// Much longer than a page takes, and shorter than the server waits for a reader.
const SOON: Duration = Duration::from_secs(20);

/// Asks for a page and takes nothing of its body, which stays with the server as long as what is returned.
async fn unread(raw: &mut Raw, target: &str) -> (u16, impl Sized + use<>) {
    let request = Request::get(format!("http://localhost{target}"));
    let mut sent = raw.send(request, None).await.unwrap();
    sent.end();
    let Sent { answer, body } = sent;
    let answer = tokio::time::timeout(SOON, answer).await.unwrap().unwrap();
    (answer.status().as_u16(), (answer, body))
}

#[tokio::test]
async fn strangers_who_do_not_read_leave_pages_to_those_who_are_known() {
    let guarded = guarded(&[]).await;
    let server = &guarded.server;
    let address = server.url.strip_prefix("http://").unwrap();
    let mut http = Http::one(&server.url).await;
    let session = cookie(&sign_in(&mut http, "reader", "/ui/runs").await);

    let html = page(&mut http, "/ui/login").await.text();
    let style = html.split('"').find(|part| part.contains(".css")).unwrap();

    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..7 {
        let mut raw = Raw::connect(address, 0).await;
        for _ in 0..90 {
            let (status, unread) = unread(&mut raw, "/ui/login").await;
            match status {
                200 => held.push(unread),
                status => {
                    assert_eq!(status, 503);
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((held.len(), refused), (512, 630 - 512));
    let headers = [("cookie", session.as_str())];
    let known = http.send("GET", "/ui/runs", &headers, "");
    let known = tokio::time::timeout(SOON, known).await.unwrap();
    assert_eq!(known.status, 200);
    assert_eq!(page(&mut http, style).await.status, 200);
    drop((held, http));
    guarded.server.stop().await;
}

#[tokio::test]
async fn logs_that_are_not_read_leave_pages_to_others() {
    let server = empty(&[]).await;
    let object = json!({"metadata": {"name": "build", "namespace": "shop", "uid": "u"}});
    let name = "shop/results/a/records/b";
    server
        .given_record(name, PIPELINE_RUN, &bytes(&object))
        .await;
    let line = [&[b'x'; 1 << 10][..], b"\n"].concat();
    let text = line.repeat(1 << 10);
    for part in 0..6 {
        let lines = (part << 10, text.as_slice(), vec![]);
        let pod = container("build-pod", "step-run");
        append(&server.url, name, pod, lines, false).await;
    }
    let address = server.url.strip_prefix("http://").unwrap();
    let mut raw = Raw::connect(address, 0).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        let (status, unread) = unread(&mut raw, &format!("/ui/rawlog/{name}")).await;
        assert_eq!(status, 200);
        held.push(unread);
    }
    let mut http = Http::one(&server.url).await;
    let runs = tokio::time::timeout(SOON, page(&mut http, "/ui/runs")).await;
    assert_eq!(runs.unwrap().status, 200);
    drop((held, http));
    server.stop().await;
}
