//! What protects pages in a browser, on every answer.

use super::{asked_as, links, page, seed::empty};
use crate::support::http::Http;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

#[tokio::test]
async fn every_answer_below_ui_has_the_same_protection() {
    let cors = [("cors_origins", "http://console.example")];
    let server = empty(&cors).await;
    let mut http = Http::one(&server.url).await;
    for (method, target, status) in [
        ("GET", "/ui", 303),
        ("GET", "/", 303),
        ("GET", "/ui/", 200),
        ("HEAD", "/ui/", 200),
        ("GET", "/ui/runs", 200),
        ("GET", "/ui/runs?q=stauts:x", 400),
        ("GET", "/ui/runs?page=forged", 400),
        ("GET", "/ui/runs?ns=%00", 400),
        ("GET", "/ui/run/a/results/b/records/c", 404),
        ("GET", "/ui/run/nonsense", 400),
        ("GET", "/ui/raw/a/results/b/records/c", 404),
        ("GET", "/ui/payload/a/results/b/records/c", 404),
        ("GET", "/ui/logs/a/results/b/records/c", 404),
        ("GET", "/ui/logs/nonsense", 400),
        ("GET", "/ui/rawlog/a/results/b/records/c", 404),
        ("GET", "/ui/rawlog/a/results/b/records/c?step=x", 404),
        ("GET", "/ui/compare", 200),
        ("GET", "/ui/compare?a=a/results/b/records/c", 200),
        ("GET", "/ui/pipeline/a/b", 200),
        ("GET", "/ui/health", 200),
        ("GET", "/ui/health?q=stauts:x", 400),
        ("GET", "/ui/stats", 200),
        ("GET", "/ui/stats?by=nonsense!", 400),
        ("GET", "/ui/stats?q=stauts:x", 400),
        ("GET", "/ui/capture", 200),
        ("GET", "/ui/graph/a/results/b/records/c", 404),
        ("GET", "/ui/jump", 200),
        ("GET", "/ui/jump?to=nothing", 404),
        ("GET", "/ui/jump?to=a/results/b/records/c", 303),
        ("GET", "/ui/feed.atom", 200),
        ("GET", "/ui/feed.atom?q=stauts:x", 400),
        ("GET", "/ui/you", 200),
        ("GET", "/ui/login", 200),
        ("GET", "/ui/login/start", 404),
        ("GET", "/ui/login/callback?code=a&state=b", 404),
        ("GET", "/ui/logout", 405),
        ("GET", "/ui/nothing", 404),
        ("GET", "/ui/assets/nothing", 404),
        ("GET", "/ui/%ff", 404),
        ("POST", "/ui/login", 403),
        ("POST", "/ui/preferences", 403),
        ("POST", "/ui/runs", 405),
        ("DELETE", "/ui/runs", 405),
        ("OPTIONS", "/ui/runs", 405),
    ] {
        let headers = [("accept", "text/html")];
        let reply = http.send(method, target, &headers, "").await;
        assert_eq!(reply.status, status, "{method} {target}: {}", reply.text());
        for (name, value) in [
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "private, no-cache"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{method} {target}");
        }
        assert_eq!(reply.header("strict-transport-security"), None);
        assert!(reply.header("x-request-id").is_some());
        assert!(method != "HEAD" || reply.body.is_empty());
    }
    // Pages of other origins that may call the API may not read these.
    let from = [("origin", "http://console.example")];
    let allowed = "access-control-allow-origin";
    let reply = http.send("GET", "/ui/runs", &from, "").await;
    assert_eq!(reply.header(allowed), None);
    let reply = http.send("GET", "/healthz", &from, "").await;
    assert_eq!(reply.header(allowed), Some("http://console.example"));
    server.stop().await;
}

#[tokio::test]
async fn files_are_kept_for_good_and_pages_are_asked_for_again() {
    let server = empty(&[]).await;
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, "/ui/runs").await.text();
    let assets = links(&html)
        .into_iter()
        .filter(|link| link.contains("/assets/"));
    let assets: Vec<_> = assets.collect();
    assert_eq!(assets.len(), 2, "{assets:?}");
    for asset in assets {
        let gzip = [("accept-encoding", "gzip")];
        let packed = http.send("GET", &asset, &gzip, "").await;
        let plain = http.send("GET", &asset, &[], "").await;
        assert_eq!((packed.status, plain.status), (200, 200));
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        assert!(packed.body.len() < plain.body.len());
        let kept = Some("public, max-age=31536000, immutable");
        assert_eq!(packed.header("cache-control"), kept);
        assert_eq!(packed.header("x-content-type-options"), Some("nosniff"));
    }
    // A page without times is the same until it changes.
    let first = page(&mut http, "/ui/login").await;
    let known = [("if-none-match", first.header("etag").unwrap())];
    let again = http.send("GET", "/ui/login", &known, "").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert!(again.header("content-security-policy").is_some());
    server.stop().await;
}

#[tokio::test]
async fn without_pages_the_server_answers_as_an_api_alone() {
    let server = empty(&[("ui", "off")]).await;
    let mut http = Http::one(&server.url).await;
    for target in ["/ui/", "/ui/runs", "/"] {
        let reply = page(&mut http, target).await;
        assert_eq!(reply.status, 404, "{target}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
    server.stop().await;
}

#[tokio::test]
async fn behind_a_proxy_every_link_has_its_path() {
    let more = [("public_url", "https://results.example/history")];
    let server = empty(&more).await;
    let mut http = Http::one(&server.url).await;
    // Proxies keep the path, or take it away.
    for target in ["/history/ui/runs", "/ui/runs"] {
        let reply = page(&mut http, target).await;
        assert_eq!(reply.status, 200, "{target}");
        assert!(reply.header("strict-transport-security").is_some());
        let html = reply.text();
        let links = links(&html);
        assert!(links.len() > 5);
        assert!(
            links.iter().all(|link| link.starts_with("/history/ui/")),
            "{links:?}"
        );
        assert!(html.contains("action=\"/history/ui/preferences\""));
        assert!(
            html.contains("name=\"to\" value=\"/history/ui/runs\""),
            "{html}"
        );
    }
    let root = page(&mut http, "/history").await;
    assert_eq!(root.header("location"), Some("/history/ui/"));
    // The name of the proxy is one that the server is asked by while auth is off.
    let answer = asked_as(&server, "results.example", "/ui/login").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    server.stop().await;
}
