//! What pages send and how many nodes they have, beside the budget of docs/ui.md; `make bench-ui` measures times.

use super::{drip, stage::pages, staged, tab::Tab};

#[tokio::test]
async fn pages_are_light() {
    let Some(mut tab) = staged().await else {
        return;
    };
    let all = pages(&tab.base.clone(), &["/ui/"]).await;
    // A page comes in parts, so that one that is painted before it is whole is seen to move.
    tab.base = drip::before(&tab.base).await;
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
        assert_still(&mut tab, &target).await;
    }
    tab.close().await;
}

#[tokio::test]
async fn no_page_moves_while_it_comes_to_a_phone() {
    let Some(mut tab) = staged().await else {
        return;
    };
    let all = pages(&tab.base.clone(), &["/ui/"]).await;
    tab.base = drip::before(&tab.base).await;
    tab.sized(360, 740).await;
    for target in all {
        tab.go(&target).await;
        assert_still(&mut tab, &target).await;
    }
    tab.close().await;
}

/// Fails if something has moved on the page so far.
async fn assert_still(tab: &mut Tab, target: &str) {
    let moved = "new Promise((done) => { const got = {sum: 0, all: []}; \
        const place = (rect) => [rect.x, rect.y, rect.width, rect.height].map(Math.round).join(' '); \
        new PerformanceObserver((list) => list.getEntries().forEach((it) => { got.sum += it.value; \
            it.sources.forEach((of) => got.all.push(`in ${of.node?.parentElement?.outerHTML?.slice(0, 120)} from \
            ${place(of.previousRect)} to ${place(of.currentRect)}`)); })).observe({type: 'layout-shift', buffered: true}); \
        requestAnimationFrame(() => requestAnimationFrame(() => done(got))); })";
    let moved = tab.eval(moved).await;
    // A number at the right of its cell that comes in two parts moves by 0.00002.
    assert!(moved["sum"].as_f64().unwrap() < 1e-4, "{target}: {moved:#}");
}
