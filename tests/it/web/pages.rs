//! What pages show of stored runs.

use std::collections::{BTreeSet, VecDeque};

use super::{
    is_tame, links, page, reports,
    seed::{each_seeded, empty, record},
};
use crate::support::{TestServer, http::Http};

/// Pages that are followed from the first one.
const MOST: usize = 96;

#[tokio::test]
async fn pages_show_what_is_stored_on_every_database() {
    for server in each_seeded().await {
        every_link_leads_to_a_page_without_scripts_of_its_own(&server).await;
        runs_are_filtered_by_words_and_pages_go_on(&server).await;
        a_failed_run_says_why_and_where_its_time_went(&server).await;
        pipelines_are_shown_by_how_they_stand(&server).await;
        reports::groups_are_measured_and_lead_to_their_runs(&server).await;
        reports::a_text_leads_to_the_run_that_it_means(&server).await;
        reports::a_graph_shows_what_waited_for_what(&server).await;
        reports::tasks_are_shown_by_runs(&server).await;
        reports::runs_lead_to_those_before_and_after_them(&server).await;
        reports::steps_of_durations_are_marked_where_they_began(&server).await;
        reports::capture_tells_how_soon_runs_are_stored(&server).await;
        reports::a_badge_tells_the_last_outcome(&server).await;
        reports::a_feed_has_the_failures_of_a_filter(&server).await;
        server.stop().await;
    }
}

async fn every_link_leads_to_a_page_without_scripts_of_its_own(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let mut seen = BTreeSet::from(["/ui/".to_owned()]);
    let mut next = VecDeque::from(["/ui/".to_owned()]);
    let mut kinds = BTreeSet::new();
    let mut count = 0;
    while let Some(target) = next.pop_front() {
        let reply = page(&mut http, &target).await;
        assert_eq!(reply.status, 200, "{target}");
        count += 1;
        let kind = target
            .split(['/', '?'])
            .nth(2)
            .unwrap_or_default()
            .to_owned();
        kinds.insert(kind);
        let is_page = reply.header("content-type") == Some("text/html; charset=utf-8");
        if !is_page {
            continue;
        }
        let html = reply.text();
        is_tame(&html);
        assert_eq!(html.matches("<h1").count(), 1, "{target}");
        for link in links(&html) {
            let kind = link.split(['/', '?']).nth(2).unwrap_or_default();
            let alike = seen
                .iter()
                .filter(|old| old.split(['/', '?']).nth(2) == Some(kind));
            let few = alike.count() < MOST / 8;
            if few && seen.insert(link.clone()) {
                next.push_back(link);
            }
        }
    }
    let all = [
        "",
        "assets",
        "badge",
        "capture",
        "compare",
        "feed.atom",
        "graph",
        "health",
        "logs",
        "payload",
        "pipeline",
        "raw",
        "run",
        "runs",
        "stats",
        "you",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), all);
    assert!(count > 50, "{count}");
}

async fn runs_are_filtered_by_words_and_pages_go_on(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, "/ui/runs?q=is:top").await.text();
    assert_eq!(html.matches("<tr class=\"row").count(), 50);
    assert!(html.contains("Filter in CEL") && html.contains("tekton.dev/pipelineRun"));
    let is_next = |link: &String| link.contains("page=");
    let next = links(&html).into_iter().find(is_next).unwrap();
    let older = page(&mut http, &next).await.text();
    assert_eq!(older.matches("<tr class=\"row").count(), 50);
    let runs = |html: &str| -> BTreeSet<String> {
        let links = links(html).into_iter();
        links.filter(|link| link.starts_with("/ui/run/")).collect()
    };
    assert!(runs(&html).is_disjoint(&runs(&older)));

    let html = page(
        &mut http,
        "/ui/runs?q=failed+pipeline:release+is:top&ns=shop",
    )
    .await
    .text();
    assert_eq!(html.matches("<tr class=\"row").count(), 5);
    assert!(html.contains("#s-failed") && html.contains("#s-timeout"));
    // A chip that is on takes its word away.
    assert!(links(&html).contains(&"/ui/runs?q=pipeline%3Arelease%20is%3Atop&ns=shop".to_owned()));
}

#[tokio::test]
async fn a_wrong_filter_is_shown_with_the_part_that_is_wrong() {
    let server = empty(&[]).await;
    let mut http = Http::one(&server.url).await;
    for (query, wrong) in [
        ("failed+stauts:x", "failed <mark>stauts</mark>:x"),
        (
            "data.kind+%3D%3D+%27x%27+%26%26+%29",
            "&#38;&#38; <mark>)</mark>",
        ),
    ] {
        let reply = page(&mut http, &format!("/ui/runs?q={query}")).await;
        assert_eq!(reply.status, 400);
        assert!(reply.text().contains(wrong), "{}", reply.text());
    }
    let empty = page(&mut http, "/ui/runs").await.text();
    assert!(empty.contains("No runs are stored yet") && empty.contains("hindsight import -"));
    let none = page(&mut http, "/ui/runs?q=failed+since:24h&ns=shop")
        .await
        .text();
    assert!(none.contains("No run matches") && none.contains("in all namespaces"));
    assert!(links(&none).contains(&"/ui/runs?q=since%3A24h&ns=shop".to_owned()));
    server.stop().await;
}

async fn a_failed_run_says_why_and_where_its_time_went(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let name = record(server, "failed pipeline:release is:top").await;
    let html = page(&mut http, &format!("/ui/run/{name}")).await.text();
    for text in [
        "OOMKilled",
        "(exit 137)",
        "succeeded",
        "3 of 3 since then failed, all for the same cause",
        "golang:1.25</del>",
        "golang:1.26</ins>",
        "more places",
        "critical path",
        "rect class=\"init\"",
        "rect class=\"failed\"",
        "hindsight why shop/results/",
    ] {
        assert!(html.contains(text), "no `{text}` in {html}");
    }
    // Steps of what failed are open, those of what succeeded are not.
    assert_eq!(html.matches("<details open>").count(), 1);
    let name = record(server, "running pipeline:train-ranking is:top").await;
    let html = page(&mut http, &format!("/ui/run/{name}")).await.text();
    assert!(html.contains("running for") && html.contains("rect class=\"fold\""));
    assert!(html.contains("data-live") && !html.contains("id=\"why\""));
    let name = record(server, "failed kind:wf").await;
    let html = page(&mut http, &format!("/ui/run/{name}")).await.text();
    assert!(html.contains("load(37:") && html.contains("50 more") && html.contains("50 succeeded"));
}

async fn pipelines_are_shown_by_how_they_stand(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, "/ui/").await.text();
    let at = |text: &str| {
        html.find(text)
            .unwrap_or_else(|| panic!("no `{text}`: {html}"))
    };
    assert!(at("Newly failing") < at("shop/</span>release"));
    assert!(at("shop/</span>release") < at("infra/</span>preview-cleanup"));
    assert!(at("No success among") < at("infra/</span>preview-cleanup"));
    assert!(at("infra/</span>preview-cleanup") < at("data/</span>search-index"));
    let html = page(&mut http, "/ui/pipeline/shop/release").await.text();
    assert!(html.contains("3 failed in a row") && html.contains("Last 44 runs"));
    assert!(html.contains("p50") && html.contains("rect class=\"cancelled\""));
    let html = page(&mut http, "/ui/health").await.text();
    let slower = html.find("data/</span>search-index").unwrap();
    let flaky = html.find("shop/</span>storefront-checks").unwrap();
    assert!(slower < flaky && html.contains("+4") && html.contains("search-index-6"));
    let name = record(server, "failed pipeline:release is:top").await;
    let html = page(&mut http, &format!("/ui/compare?a={name}"))
        .await
        .text();
    assert!(html.contains("Parameters") && html.contains("Images") && html.contains("Times"));
}
