//! Pages that add up, draw or look up stored runs, and what is there for other programs.

use super::{
    is_tame, is_well_formed, links, page,
    seed::{first, record},
};
use crate::support::{TestServer, http::Http};

/// How many rows of a list a page has.
fn rows(html: &str) -> usize {
    html.matches("<tr class=\"row").count()
}

/// From the list over the value of a label to statistics by it: three links.
pub(super) async fn groups_are_measured_and_lead_to_their_runs(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let list = page(&mut http, "/ui/runs?q=is:top+ns:shop").await.text();
    let follow = |html: &str, beginning: &str| {
        let found = links(html).into_iter().find(|it| it.starts_with(beginning));
        found.unwrap_or_else(|| panic!("no link to {beginning}: {html}"))
    };
    let run = page(&mut http, &follow(&list, "/ui/run/")).await.text();
    let label = follow(&run, "/ui/runs?q=label%3Ateam%3Dweb&ns=shop");
    let labelled = page(&mut http, &label).await.text();
    let stats = follow(&labelled, "/ui/stats?q=label%3Ateam%3Dweb&ns=shop");
    let stats = page(&mut http, &stats).await.text();
    let by_label = follow(
        &stats,
        "/ui/stats?q=label%3Ateam%3Dweb&ns=shop&by=label%28team%29",
    );
    let html = page(&mut http, &by_label).await.text();
    is_tame(&html);
    let html = html.replace("&#38;", "&");
    assert_eq!(rows(&html), 1);
    let runs = "/ui/runs?q=label%3Ateam%3Dweb&ns=shop\">web</a>";
    assert!(
        html.contains(runs) && html.contains("p95(duration)"),
        "{html}"
    );
    assert!(html.contains("hindsight stats -n shop --by &#39;label(team)&#39;"));

    // A cell that counts leads to as many runs.
    let target = "/ui/stats?q=is:top&ns=shop&by=pipeline&measure=failed,timed_out,count";
    let html = page(&mut http, target).await.text();
    let failed = "/ui/runs?q=is%3Atop%20pipeline%3Arelease%20status%3Afailed&ns=shop";
    let (_, rest) = html
        .replace("&#38;", "&")
        .split_once(&format!("<a href=\"{failed}\">"))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap_or_else(|| panic!("no {failed} in {html}"));
    let count: usize = rest.split('<').next().unwrap().parse().unwrap();
    assert_eq!(rows(&page(&mut http, failed).await.text()), count);
    // So does a day of the drawing.
    let day = links(&html)
        .into_iter()
        .find(|link| link.contains("since%3A") && link.contains("until%3A"))
        .unwrap();
    assert!(rows(&page(&mut http, &day).await.text()) > 0, "{day}");

    let sorted = page(&mut http, &format!("{target}&order=count%20asc")).await;
    assert!(sorted.text().contains("aria-sort=\"ascending\""));
    let wrong = page(&mut http, "/ui/stats?by=pipelin").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("role=\"alert\""), "{}", wrong.text());
}

pub(super) async fn a_text_leads_to_the_run_that_it_means(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let run = first(server, "failed pipeline:release is:top").await;
    let own = format!("/ui/run/{}", run.record);
    let (name, uid) = (run.name.as_str(), run.uid.as_str());
    for text in [
        name.to_owned(),
        format!("shop/{name}"),
        uid.to_owned(),
        uid[..13].to_owned(),
        run.record.clone(),
        format!("https://results.example/ui/run/{}?tz=UTC", run.record),
    ] {
        let text = text.replace(':', "%3A").replace('?', "%3F");
        let reply = page(&mut http, &format!("/ui/jump?to={text}")).await;
        assert_eq!(reply.status, 303, "{text}: {}", reply.text());
        assert_eq!(reply.header("location"), Some(own.as_str()), "{text}");
    }
    // The commit of a run is in a label of it.
    let tree = page(&mut http, &own).await.text();
    let (_, rest) = tree
        .split_once("pipelinesascode.tekton.dev%2Fsha%3D")
        .unwrap();
    let commit: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    let reply = page(&mut http, &format!("/ui/jump?to=sha1:{commit}")).await;
    let found = reply.status == 303 || reply.text().contains(name);
    assert!(found, "{commit}: {}", reply.text());

    let several = page(&mut http, "/ui/jump?to=release").await;
    assert_eq!((several.status, rows(&several.text())), (200, 20));
    let digest = format!("/ui/jump?to=sha256:{}", "0".repeat(64));
    for none in ["/ui/jump?to=nothing-is-called-so", &digest] {
        let reply = page(&mut http, none).await;
        assert_eq!(reply.status, 404);
        assert!(reply.text().contains("No run is called so"), "{none}");
    }
    // Without a script the box of every page is a form.
    let html = page(&mut http, "/ui/").await.text();
    assert!(html.contains("action=\"/ui/jump\" method=\"get\""));
}

pub(super) async fn a_graph_shows_what_waited_for_what(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let name = record(server, "failed pipeline:release is:top").await;
    let html = page(&mut http, &format!("/ui/graph/{name}")).await.text();
    is_tame(&html);
    assert!(html.matches("<rect class=\"box ").count() >= 4, "{html}");
    assert!(html.contains("<path class=\"arrow critical\""), "{html}");
    assert!(html.contains("box failed critical") && html.contains("marker-end"));
    // Sixty items are one node, and the one that failed another.
    let name = record(server, "failed kind:wf").await;
    let html = page(&mut http, &format!("/ui/graph/{name}")).await.text();
    assert!(html.contains("60 parts, 1 failed"), "{html}");
    let inner = links(&html).into_iter().find(|it| it.ends_with("-load"));
    let inner = page(&mut http, &inner.unwrap()).await.text();
    assert!(
        inner.contains("load × 59") && inner.contains("load(37:"),
        "{inner}"
    );
    assert_eq!(inner.matches("<rect class=\"box ").count(), 2);
}

pub(super) async fn tasks_are_shown_by_runs(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, "/ui/pipeline/shop/release").await.text();
    let (_, grid) = html.split_once("<table class=\"grid\">").unwrap();
    let (grid, _) = grid.split_once("</table>").unwrap();
    assert_eq!(grid.matches("<th scope=\"row\"").count(), 11, "{grid}");
    assert!(grid.matches("#s-failed").count() >= 6 && grid.contains("failed"));
    // The templates of workflows have pages too, with links from lists and runs.
    let target = "/ui/pipeline/data/etl-orders?of=template";
    let html = page(&mut http, target).await.text();
    assert!(
        html.contains("Last 12 runs") && html.contains("class=\"grid\""),
        "{html}"
    );
    let (_, grid) = html.split_once("<table class=\"grid\">").unwrap();
    assert!(
        grid.contains(">load</th>") && grid.contains("the worst of 60"),
        "{grid}"
    );
    for page_of in ["/ui/".to_owned(), "/ui/runs?q=kind:wf".to_owned()] {
        let html = page(&mut http, &page_of).await.text();
        assert!(links(&html).iter().any(|link| link == target), "{page_of}");
    }
    let name = record(server, "failed kind:wf").await;
    let html = page(&mut http, &format!("/ui/run/{name}")).await.text();
    assert!(links(&html).iter().any(|link| link == target));
}

/// The address of the link with this attribute.
fn marked(html: &str, attribute: &str) -> Option<String> {
    let (before, _) = html.split_once(&format!("\" {attribute}>"))?;
    let (_, link) = before.rsplit_once("href=\"")?;
    Some(link.replace("&#38;", "&"))
}

pub(super) async fn runs_lead_to_those_before_and_after_them(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let newest = record(server, "failed pipeline:release is:top").await;
    let mut at = format!("/ui/run/{newest}");
    let mut seen = vec![at.clone()];
    while let Some(older) = marked(&page(&mut http, &at).await.text(), "data-older") {
        at = older;
        seen.push(at.clone());
        assert!(seen.len() < 100, "{seen:?}");
    }
    assert!(seen.len() > 20, "{seen:?}");
    // The way back has the same runs.
    for before in seen.iter().rev().skip(1) {
        let newer = marked(&page(&mut http, &at).await.text(), "data-newer");
        assert_eq!(newer.as_ref(), Some(before));
        at.clone_from(before);
    }
    let middle = &seen[15];
    let html = page(&mut http, middle).await.text();
    let around = links(&html).into_iter().find(|link| link.contains("?run="));
    let html = page(&mut http, &around.unwrap()).await.text();
    let here = format!("<a href=\"{middle}\" class=\"here\" aria-current=\"true\">");
    assert!(
        html.contains(&here) && html.contains("runs around"),
        "{html}"
    );
    let (_, grid) = html.split_once("<table class=\"grid\">").unwrap();
    let here =
        format!("<th scope=\"col\" class=\"here\" aria-current=\"true\"><a href=\"{middle}\"");
    assert!(grid.contains(&here), "{grid}");
    // A run that is none of the pipeline's is not looked for elsewhere.
    for other in [
        "shop/results/none/records/none",
        "-/results/-/records/x",
        "x",
    ] {
        let html = page(&mut http, &format!("/ui/pipeline/shop/release?run={other}")).await;
        assert!(html.text().contains("Last 44 runs"), "{other}");
    }
}

pub(super) async fn steps_of_durations_are_marked_where_they_began(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, "/ui/pipeline/data/search-index")
        .await
        .text();
    let (_, steps) = html.split_once("<ul class=\"steps\">").unwrap();
    let (steps, _) = steps.split_once("</ul>").unwrap();
    assert!(
        steps.contains("Slower since") && steps.contains("search-index-6"),
        "{steps}"
    );
    assert!(steps.contains("(+4"), "{steps}");
    assert_eq!(
        html.matches("<line class=\"began\"").count(),
        2,
        "a mark, and its legend"
    );
    let html = page(&mut http, "/ui/pipeline/shop/release").await.text();
    assert!(!html.contains("class=\"began\""));
}

pub(super) async fn capture_tells_how_soon_runs_are_stored(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let html = page(&mut http, "/ui/capture").await.text();
    is_tame(&html);
    assert!(html.contains("Stored after the end, p50"), "{html}");
    for parent in ["shop", "data", "infra"] {
        let link = format!("/ui/runs?ns={parent}");
        assert!(links(&html).contains(&link), "no {link}: {html}");
    }
    assert!(html.contains("was seen to its end"), "{html}");
}

pub(super) async fn a_badge_tells_the_last_outcome(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    for (target, word) in [
        ("/ui/badge/shop/release.svg", "release: failed"),
        ("/ui/badge/data/search-index.svg", "search-index: succeeded"),
        (
            "/ui/badge/data/etl-orders.svg?of=template",
            "etl-orders: succeeded",
        ),
        ("/ui/badge/shop/nothing.svg", "nothing: no run"),
    ] {
        let reply = page(&mut http, target).await;
        assert_eq!(reply.status, 200);
        let svg = reply.text();
        assert!(svg.contains(word) && is_well_formed(&svg), "{svg}");
        for (name, value) in [
            ("content-type", "image/svg+xml; charset=utf-8"),
            ("cache-control", "private, max-age=60"),
            ("cross-origin-resource-policy", "cross-origin"),
            (
                "content-security-policy",
                "sandbox; default-src 'none'; frame-ancestors 'none'",
            ),
        ] {
            assert_eq!(reply.header(name), Some(value), "{target}");
        }
        let known = [("if-none-match", reply.header("etag").unwrap())];
        let again = http.send("GET", target, &known, "").await;
        assert_eq!(again.status, 304);
    }
}

pub(super) async fn a_feed_has_the_failures_of_a_filter(server: &TestServer) {
    let mut http = Http::one(&server.url).await;
    let target = "/ui/feed.atom?q=pipeline:release+is:top&ns=shop";
    let reply = page(&mut http, target).await;
    let media = Some("application/atom+xml; charset=utf-8");
    assert_eq!(reply.header("content-type"), media);
    let xml = reply.text();
    assert!(is_well_formed(&xml), "{xml}");
    assert_eq!(xml.matches("<entry>").count(), 5, "{xml}");
    assert_eq!(xml.matches("<id>").count(), 6);
    assert_eq!(xml.matches("<updated>").count(), 6);
    assert!(xml.contains("rel=\"self\"") && xml.contains("category term=\"timeout\""));
    let run = record(server, "failed pipeline:release is:top").await;
    let link = format!("href=\"/ui/run/{run}\"");
    assert!(xml.contains(&link), "{xml}");
    let id = format!("<id>tag:hindsight.dev,2026:run/{run}</id>");
    assert!(xml.contains(&id), "{xml}");
    let again = page(&mut http, target).await;
    assert_eq!(again.text(), xml);
}
