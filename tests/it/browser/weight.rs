//! What pages send and how many nodes they have, beside the budget of docs/ui.md; `make bench-ui` measures times.

use serde_json::Value;

use super::{stage::pages, staged, tab::Tab};

#[tokio::test]
async fn pages_are_light() {
    let Some(mut tab) = staged().await else {
        return;
    };
    let all = pages(&tab.base.clone(), &["/ui/"]).await;
    // A page comes in parts, so that one that is painted before it is whole is seen to move.
    tab.line(16 << 10).await;
    for target in all {
        tab.go(&target).await;
        let requests = tab.requests();
        assert!(requests.len() <= 4, "{target}: {requests:#?}");
        for (kind, most) in [("Document", 60.0), ("Stylesheet", 10.0), ("Script", 20.0)] {
            let sent: f64 = requests
                .iter()
                .filter(|it| it.kind == kind)
                .map(|it| it.bytes / 1024.0)
                .sum();
            assert!(sent < most, "{target}: {sent} KiB of {kind}");
        }
        let nodes = tab.eval("document.querySelectorAll('*').length").await;
        let most = if target.contains("/logs/") {
            5_000
        } else {
            3_000
        };
        assert!(nodes.as_u64().unwrap() < most, "{target}: {nodes} nodes");
        assert_eq!(shift(&mut tab).await, 0, "{target}");
    }
    tab.close().await;
}

#[tokio::test]
async fn no_page_moves_while_it_comes_to_a_phone() {
    let Some(mut tab) = staged().await else {
        return;
    };
    let all = pages(&tab.base.clone(), &["/ui/"]).await;
    tab.line(16 << 10).await;
    tab.sized(360, 740).await;
    for target in all {
        tab.go(&target).await;
        assert_eq!(shift(&mut tab).await, 0, "{target}");
    }
    tab.close().await;
}

/// How much of the page has moved so far, by how far.
async fn shift(tab: &mut Tab) -> Value {
    let shift = "new Promise((done) => { let sum = 0; new PerformanceObserver((list) => list.getEntries() \
        .forEach((it) => { sum += it.value; })).observe({type: 'layout-shift', buffered: true}); \
        requestAnimationFrame(() => requestAnimationFrame(() => done(sum))); })";
    tab.eval(shift).await
}
