//! Pages of logs: which lines they show of which container, what they cost, and what stored bytes become.

use hindsight_client::{Client, Options};
use hindsight_proto::v1::{AppendLogRequest, GetRunTreeRequest, LogLines, LogSource, RunTree};
use serde_json::json;

use super::{
    is_tame, links, page,
    seed::{each_seeded, empty, record},
};
use crate::support::{
    TestServer,
    http::Http,
    objects::{PIPELINE_RUN, bytes},
};

/// The beginning of the times of lines, in microseconds.
const BEGAN: i64 = 1_795_181_000_000_000;

/// A container in a pod.
pub fn container(pod: &str, container: &str) -> LogSource {
    LogSource {
        pod: pod.to_owned(),
        container: container.to_owned(),
        restart: 0,
    }
}

/// Stores lines of a container from a number on, each a second after the one before.
pub async fn append(
    url: &str,
    record: &str,
    source: LogSource,
    (first, text, holes): (i64, &[u8], Vec<i64>),
    seal: bool,
) {
    let client = Client::new(&Options::new(url)).unwrap();
    let (result, id) = record.rsplit_once("/records/").unwrap();
    let count = hindsight_logs::ends(text).count();
    let time = |at| match at {
        0 => BEGAN + first * 1_000_000,
        _ => 1_000_000,
    };
    let message = AppendLogRequest {
        name: format!("{result}/logs/{id}"),
        source: Some(source),
        lines: Some(LogLines {
            first_line: first,
            text: text.to_vec(),
            times: (0..count).map(time).collect(),
            holes,
        }),
        seal,
    };
    let sent = tokio_stream::iter([message]);
    client.logs().append_log(sent).await.unwrap();
}

async fn tree(url: &str, name: &str) -> RunTree {
    let ask = GetRunTreeRequest {
        name: name.to_owned(),
        steps: true,
        brief: false,
    };
    let client = Client::new(&Options::new(url)).unwrap();
    let tree = client.runs().get_run_tree(ask).await.unwrap();
    tree.into_inner()
}

/// The record of a task of a run.
pub async fn task(url: &str, run: &str, name: &str) -> String {
    let tree = tree(url, run).await;
    let node = tree.nodes.into_iter().find(|node| node.name == name);
    node.unwrap().record
}

/// What the tests of a build print, of so many lines.
fn tests(lines: usize) -> String {
    let line = |number: usize| match number {
        900 => "line 900 to 911 of this container were lost with its node".to_owned(),
        number if number % 97 == 0 => format!(
            "\u{1b}[33mWARN\u{1b}[0m cart: retrying payment {number} after \u{1b}[1m{} ms\u{1b}[0m",
            number * 7 % 900
        ),
        number => format!(
            "\u{1b}[32mok\u{1b}[0m   shop/{}\t{}.{:02}s",
            ["cart", "checkout", "payment", "search"][number % 4],
            number * 13 % 4,
            number * 31 % 100
        ),
    };
    (0..lines).map(|number| line(number) + "\n").collect()
}

/// Stores the logs of the tasks `clone` and `test` of a failed run of the demo.
pub async fn give(url: &str, run: &str) {
    let clone = task(url, run, "clone").await;
    let text = b"Cloning into '/workspace/source'...\nHEAD is now at 0b4f9a2\n";
    let pod = container("clone-pod", "step-run");
    append(url, &clone, pod, (0, text, vec![]), true).await;
    let test = task(url, run, "test").await;
    let pod = container("test-pod", "step-prepare");
    append(url, &test, pod, (0, b"go: downloading\n", vec![]), true).await;
    let end = "\u{1b}[31m--- FAIL: TestCheckout (0.31s)\u{1b}[0m\n    cart_test.go:88: cannot allocate memory\n\
        signal: \u{1b}[1;31mkilled\u{1b}[0m\n";
    let text = tests(1_497) + end;
    let pod = container("test-pod", "step-run");
    append(url, &test, pod, (0, text.as_bytes(), vec![900]), true).await;
}

/// The numbers of the lines on a page.
fn numbers(html: &str) -> Vec<i64> {
    let lines = html.split("<li id=\"L").skip(1);
    let numbers = lines.filter_map(|rest| rest.split('"').next());
    numbers.map(|number| number.parse().unwrap()).collect()
}

/// The address of the first link with a text.
#[track_caller]
fn link_of(html: &str, text: &str) -> String {
    let found = html.split("<a ").find(|rest| {
        rest.split("</a>")
            .next()
            .unwrap_or_default()
            .ends_with(&format!(">{text}"))
    });
    let found = found.unwrap_or_else(|| panic!("no `{text}` in {html}"));
    links(found).into_iter().next().unwrap()
}

#[tokio::test]
async fn pages_show_logs_on_every_database() {
    for server in each_seeded().await {
        let run = record(&server, "failed pipeline:release is:top").await;
        give(&server.url, &run).await;
        the_step_that_failed_is_shown_from_its_end(&server, &run).await;
        lines_are_found_and_lead_to_their_page(&server, &run).await;
        logs_are_files_byte_for_byte(&server, &run).await;
        server.stop().await;
    }
}

async fn the_step_that_failed_is_shown_from_its_end(server: &TestServer, run: &str) {
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, &format!("/ui/run/{run}")).await.text();
    assert!(
        html.contains("<span class=\"t1 tb\">killed</span>"),
        "{html}"
    );
    assert_eq!(html.matches("<pre class=\"tail\"").count(), 1);
    assert!(!html.contains("payment 1358"), "ten lines: {html}");
    let from_why = link_of(&html, "its log");
    for target in [from_why, format!("/ui/logs/{run}")] {
        let html = page(&mut http, &target).await.text();
        is_tame(&html);
        assert_eq!(
            numbers(&html),
            (501..=1_500).collect::<Vec<_>>(),
            "{target}"
        );
        for text in [
            "Lines 501 to 1,500 of 1,500",
            "<span class=\"t1\">--- FAIL: TestCheckout (0.31s)</span>",
            "1 hole",
            "<li id=\"L901\" class=\"hole\">",
            "<b>Missing: </b>line 900 to 911",
            "test / </span>run",
            "clone / </span>run",
        ] {
            assert!(html.contains(text), "no `{text}` in {html}");
        }
        assert!(html.contains("&#38;from=501#L502\"") && !html.contains("class=\"at\""));
    }
    let html = page(&mut http, &format!("/ui/logs/{run}")).await.text();
    let earlier = page(&mut http, &link_of(&html, "Earlier lines"))
        .await
        .text();
    assert_eq!(numbers(&earlier), (1..=1_000).collect::<Vec<_>>());
    let later = page(&mut http, &link_of(&earlier, "Later lines"))
        .await
        .text();
    assert_eq!(numbers(&later), (1_001..=1_500).collect::<Vec<_>>());
    let times = page(&mut http, &link_of(&later, "With times")).await.text();
    assert_eq!(numbers(&times), numbers(&later));
    assert!(times.contains("<span class=\"at\">11-20 "), "{times}");
    // A step is named without the task too; others are chosen by the list.
    let html = page(&mut http, &format!("/ui/logs/{run}?step=prepare"))
        .await
        .text();
    assert!(html.contains("go: downloading") && numbers(&html) == [1]);
    let html = page(&mut http, &format!("/ui/logs/{run}?step=none"))
        .await
        .text();
    assert!(html.contains("No such container has a log."));
    for from in ["9999999", "0", "-4", "x"] {
        let html = page(&mut http, &format!("/ui/logs/{run}?from={from}")).await;
        assert!(
            html.status == 200 && !numbers(&html.text()).is_empty(),
            "{from}"
        );
    }
    // A run whose logs were not kept says so.
    let other = record(server, "succeeded pipeline:release is:top").await;
    let html = page(&mut http, &format!("/ui/logs/{other}")).await.text();
    assert!(html.contains("No log is stored") && html.contains("not kept, because"));
}

async fn lines_are_found_and_lead_to_their_page(server: &TestServer, run: &str) {
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, &format!("/ui/logs/{run}?q=RETRYING+payment"))
        .await
        .text();
    assert_eq!(html.matches("<tr class=\"row\">").count(), 16, "{html}");
    assert!(
        html.contains("<mark>retrying payment</mark> 97 after"),
        "{html}"
    );
    assert!(html.contains("hindsight logs") && html.contains("(?i)RETRYING payment"));
    let found = page(&mut http, &link_of(&html, "1359")).await.text();
    assert!(numbers(&found).contains(&1_359));
    let html = page(&mut http, &format!("/ui/logs/{run}?q=RETRYING&case=on"))
        .await
        .text();
    assert!(html.contains("No line matches"));
    let html = page(
        &mut http,
        &format!("/ui/logs/{run}?q=%5Eok.*1%5C.0%5Cds&regex=on"),
    )
    .await;
    assert!(
        html.text().contains("No line matches"),
        "escapes stand in the line"
    );
    let html = page(
        &mut http,
        &format!("/ui/logs/{run}?q=Fail.*%5B0-9%5D&regex=on"),
    )
    .await
    .text();
    assert!(html.contains("<mark>FAIL: TestCheckout"), "{html}");
    let html = page(&mut http, &format!("/ui/logs/{run}?q=a(&regex=on")).await;
    assert!(html.status == 200 && html.text().contains("cannot be read"));
    // A search that has more goes on, and finds each line once.
    let html = page(&mut http, &format!("/ui/logs/{run}?q=shop%2F"))
        .await
        .text();
    assert_eq!(html.matches("<tr class=\"row\">").count(), 200);
    let next = page(&mut http, &link_of(&html, "Search on")).await.text();
    assert!(
        next.contains(">205</a>") && !next.contains(">2</a>"),
        "{next}"
    );
}

async fn logs_are_files_byte_for_byte(server: &TestServer, run: &str) {
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, &format!("/ui/logs/{run}")).await.text();
    let raw = page(&mut http, &link_of(&html, "Raw")).await;
    assert_eq!(raw.status, 200);
    assert!(raw.body.starts_with(tests(1_497).as_bytes()));
    let all = page(&mut http, &link_of(&html, "Download all")).await;
    let text = all.text();
    assert!(text.starts_with("[clone : run] Cloning into") && text.contains("[test : run] "));
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        (
            "content-security-policy",
            "sandbox; default-src 'none'; frame-ancestors 'none'",
        ),
        ("cache-control", "private, no-store"),
    ] {
        assert_eq!(
            (raw.header(name), all.header(name)),
            (Some(value), Some(value))
        );
    }
    let attachment = raw.header("content-disposition").unwrap();
    assert!(
        attachment.starts_with("attachment; filename=\"")
            && attachment.ends_with("-step-run.log\"")
    );
}

/// A TaskRun with this UID that succeeded, or goes on.
pub fn run(uid: &str, is_over: bool) -> serde_json::Value {
    let mut run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": uid, "namespace": "shop", "uid": uid, "creationTimestamp": "2026-03-02T08:00:00Z"},
        "status": {"startTime": "2026-03-02T08:00:00Z",
            "conditions": [{"type": "Succeeded", "status": if is_over { "True" } else { "Unknown" }}]},
    });
    if is_over {
        run["status"]["completionTime"] = "2026-03-02T08:01:00Z".into();
    }
    run
}

async fn stored(server: &TestServer, id: &str, is_over: bool) -> String {
    let name = format!("shop/results/{id}/records/{id}");
    server
        .given_record(&name, PIPELINE_RUN, &bytes(&run(id, is_over)))
        .await;
    name
}

#[tokio::test]
async fn bytes_of_a_log_are_text_in_a_page() {
    let server = empty(&[]).await;
    let name = stored(&server, "odd", true).await;
    let mut text = Vec::new();
    for line in super::hostile::LINES {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.extend(vec![b'<'; 1 << 20]);
    append(
        &server.url,
        &name,
        container("p", "step-x"),
        (0, &text, vec![]),
        false,
    )
    .await;
    let mut http = Http::one(&server.url).await;
    for target in [
        format!("/ui/logs/{name}"),
        format!("/ui/logs/{name}?from=1&times=on"),
        format!("/ui/logs/{name}?q=%3C"),
        format!("/ui/logs/{name}?q=.&regex=on"),
    ] {
        let reply = page(&mut http, &target).await;
        let html = reply.text();
        assert_eq!(reply.status, 200);
        is_tame(&html.replace("javascript:alert(1)", ""));
        for bad in ["<script>alert", "<img", "\u{0}", "\u{1b}", "\u{202e}"] {
            assert!(!html.contains(bad), "{target}: {bad:?}");
        }
        assert!(html.len() < 256 << 10, "{target}: {}", html.len());
    }
    let html = page(&mut http, &format!("/ui/logs/{name}")).await.text();
    for text in [
        "⟨U+0000⟩",
        "⟨U+202E⟩",
        "\u{fffd}",
        "&#60;script&#62;",
        "bytes more</a>",
    ] {
        assert!(html.contains(text), "no {text} in {html}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_page_is_bounded_whatever_the_lines_are() {
    let server = empty(&[]).await;
    let mut http = Http::one(&server.url).await;
    let long = [&[b'"'; 200_000][..], b"\n"].concat().repeat(60);
    let short = b"\x1b[31m\x07\x1b[32m<\x1b[1m&\x1b[0m".repeat(150);
    let short = [&short[..], b"\n"].concat().repeat(1_100);
    for (id, text, many) in [("long", long, 15..=60), ("short", short, 20..=400)] {
        let name = stored(&server, id, true).await;
        let source = container("p", "step-x");
        let (mut from, mut number) = (0, 0);
        while from < text.len() {
            let most = text.len().min(from + (3 << 20));
            let end = text[..most]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .unwrap()
                + 1;
            let part = &text[from..end];
            append(
                &server.url,
                &name,
                source.clone(),
                (number, part, vec![]),
                end == text.len(),
            )
            .await;
            number += i64::try_from(hindsight_logs::ends(part).count()).unwrap();
            from = end;
        }
        let last = page(&mut http, &format!("/ui/logs/{name}")).await.text();
        let shown = numbers(&last);
        assert!(last.len() < 5 << 18, "{id}: {} bytes", last.len());
        assert!(many.contains(&shown.len()), "{id}: {} lines", shown.len());
        assert_eq!(shown.last(), Some(&number), "{id}: from the end");
        // Pages follow one another without a gap.
        let mut html = page(&mut http, &format!("/ui/logs/{name}?from=1"))
            .await
            .text();
        assert!(html.len() < 5 << 18, "{id}: {} bytes", html.len());
        let end = *numbers(&html).last().unwrap();
        html = page(&mut http, &link_of(&html, "Later lines")).await.text();
        assert_eq!(numbers(&html)[0], end + 1);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_log_that_is_written_asks_again() {
    let server = empty(&[]).await;
    let mut http = Http::one(&server.url).await;
    let name = stored(&server, "on", false).await;
    let html = page(&mut http, &format!("/ui/logs/{name}")).await.text();
    assert!(html.contains("none of its lines has been stored") && html.contains("data-live"));
    let source = container("p", "step-x");
    append(
        &server.url,
        &name,
        source.clone(),
        (0, b"one\n", vec![]),
        false,
    )
    .await;
    let html = page(&mut http, &format!("/ui/logs/{name}")).await;
    assert!(html.text().contains("data-live") && html.text().contains("not ended"));
    // It is not sent again as long as nothing came.
    let known = [
        ("if-none-match", html.header("etag").unwrap()),
        ("accept", "text/html"),
    ];
    let target = format!("/ui/logs/{name}");
    assert_eq!(http.send("GET", &target, &known, "").await.status, 304);
    append(&server.url, &name, source, (1, b"two\n", vec![]), false).await;
    assert_eq!(http.send("GET", &target, &known, "").await.status, 200);
    // A range does not change.
    let html = page(&mut http, &format!("/ui/logs/{name}?from=1"))
        .await
        .text();
    assert!(!html.contains("data-live") && numbers(&html) == [1, 2]);
    server.stop().await;
}
