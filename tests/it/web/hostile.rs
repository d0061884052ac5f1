//! What is stored is hostile, in every field of every page.

use serde_json::{Value, json};

use super::{is_tame, is_well_formed, page, seed::empty};
use crate::support::{
    http::Http,
    objects::{PIPELINE_RUN, bytes},
};

pub const TEXTS: [&str; 6] = [
    "</title><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "a\u{202e}b\u{0}c\u{1b}]8;;http://evil.example\u{7}d\u{2066}",
    "{{ 7 * 7 }} <!-- <svg onload=alert(1)>",
];

/// Lines of a log.
pub const LINES: [&[u8]; 7] = [
    b"</ol></main><script>alert(1)</script>",
    b"\"><img src=x onerror=alert(1)>' onmouseover='alert(1)",
    b"\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x1b]0;title\x07\x1b[2J\x1b[31mred",
    "a\u{202e}b\u{2066}c\u{200b}d".as_bytes(),
    b"nul \x00 bell \x07 \xff\xfe\xc3( \x9b31m",
    b"\x1b]0;no end \x1b[31",
    b"::error file=x:: {{ 7 * 7 }} <!-- <svg onload=alert(1)>",
];

/// A run with this text in every field.
pub fn run(text: &str, uid: &str, hour: usize, reason: &str) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": text, "namespace": text, "uid": uid,
            "creationTimestamp": format!("2026-03-02T{hour:02}:00:00Z"),
            "labels": {"tekton.dev/pipeline": text, text: text}},
        "spec": {"pipelineRef": {"name": text}, "params": [{"name": text, "value": format!("{text}{hour}")}]},
        "status": {"startTime": format!("2026-03-02T{hour:02}:00:01Z"),
            "completionTime": format!("2026-03-02T{hour:02}:01:00Z"),
            "skippedTasks": [{"name": text, "reason": text}],
            "results": [{"name": text, "value": text}],
            "conditions": [{"type": "Succeeded", "reason": text, "message": text,
                "status": if reason == "Succeeded" { "True" } else { "False" }}]},
    })
}

/// Pages that show the run or repeat the query.
pub fn targets(failed: &str, query: &str) -> Vec<String> {
    vec![
        "/ui/".to_owned(),
        format!("/ui/?ns={query}"),
        "/ui/runs".to_owned(),
        format!("/ui/runs?q={query}"),
        format!("/ui/runs?q={query}&ns={query}&page={query}"),
        format!("/ui/runs?q=cel:{query}"),
        format!("/ui/run/{failed}"),
        format!("/ui/run/{query}"),
        format!("/ui/raw/{failed}?as=yaml"),
        format!("/ui/raw/{failed}?as=json"),
        format!("/ui/compare?a={failed}"),
        format!("/ui/compare?a={query}&b={query}"),
        format!("/ui/pipeline/{query}/{query}?in=shop"),
        format!("/ui/health?q={query}"),
        format!("/ui/graph/{failed}"),
        format!("/ui/graph/{failed}?of={query}"),
        format!("/ui/pipeline/{query}/{query}?in=shop&of=template"),
        format!("/ui/stats?q={query}"),
        format!("/ui/stats?by={query}&measure={query}&order={query}&ns={query}"),
        "/ui/stats?by=name,reason,namespace".to_owned(),
        "/ui/capture".to_owned(),
        format!("/ui/jump?to={query}"),
        "/ui/jump?to=r".to_owned(),
        "/ui/you".to_owned(),
        format!("/ui/login?to={query}"),
        format!("/ui/{query}"),
    ]
}

#[tokio::test]
async fn text_that_was_stored_is_never_more_than_text() {
    let server = empty(&[]).await;
    let mut http = Http::one(&server.url).await;
    for (number, text) in TEXTS.into_iter().enumerate() {
        let mut names = Vec::new();
        for (hour, reason) in [(8, "Succeeded"), (9, "Failed")] {
            let id = format!("r{number}-{hour}");
            let name = format!("shop/results/{id}/records/{id}");
            let payload = bytes(&run(text, &id, hour, reason));
            server.given_record(&name, PIPELINE_RUN, &payload).await;
            names.push((name, payload));
        }
        let (failed, payload) = &names[1];
        let query: String = format!("\"{}\"", text.replace('"', "\\\""))
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        for target in targets(failed, &query) {
            let reply = page(&mut http, &target).await;
            assert!(reply.status < 500, "{target}: {}", reply.status);
            let html = reply.text();
            let mut addresses = html.split("href=\"").skip(1);
            assert!(
                !addresses.any(|it| it.starts_with("javascript")),
                "{target}"
            );
            is_tame(&html.replace("javascript:alert(1)", ""));
            let head = html.split("</head>").next().unwrap_or_default();
            assert!(head.matches("<title>").count() == 1 && head.ends_with("defer></script>\n"));
            for bad in [
                "<img",
                "<svg onload",
                "<script>alert",
                "\u{202e}",
                "\u{0}",
                "\u{1b}",
                "\u{2066}",
            ] {
                assert!(!html.contains(bad), "{target}: {bad:?}");
            }
        }
        for target in [
            format!("/ui/feed.atom?ns={query}&q={query}"),
            "/ui/feed.atom".to_owned(),
            format!("/ui/badge/{query}/{query}.svg?in=shop"),
        ] {
            let reply = page(&mut http, &target).await;
            assert!(reply.status < 500, "{target}");
            if reply.status == 200 {
                assert!(is_well_formed(&reply.text()), "{target}");
            }
        }
        let shown = page(&mut http, &format!("/ui/run/{failed}")).await.text();
        assert!(shown.contains("class=\"status failed\""), "{shown}");
        let file = page(&mut http, &format!("/ui/payload/{failed}")).await;
        assert_eq!((file.status, file.body.as_ref()), (200, payload.as_slice()));
        for (name, value) in [
            ("content-type", "application/octet-stream"),
            (
                "content-security-policy",
                "sandbox; default-src 'none'; frame-ancestors 'none'",
            ),
            ("cache-control", "private, no-store"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(file.header(name), Some(value));
        }
        let attachment = format!("attachment; filename=\"r{number}-9.json\"");
        assert_eq!(
            file.header("content-disposition"),
            Some(attachment.as_str())
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_payload_that_is_no_json_or_large_is_a_file_alone() {
    let server = empty(&[]).await;
    let mut http = Http::one(&server.url).await;
    let large = json!({"a": "x".repeat(2 << 20)});
    for (id, payload, says) in [
        ("text", b"<script>no json</script>".to_vec(), "is not JSON"),
        ("large", bytes(&large), "larger than 1 MiB"),
    ] {
        let name = format!("a/results/{id}/records/{id}");
        server.given_record(&name, "note", &payload).await;
        let html = page(&mut http, &format!("/ui/raw/{name}")).await;
        assert_eq!(html.status, 200);
        assert!(html.text().contains(says) && html.body.len() < 32 << 10);
        let file = page(&mut http, &format!("/ui/payload/{name}")).await;
        assert_eq!(file.body.as_ref(), payload.as_slice());
    }
    server.stop().await;
}
