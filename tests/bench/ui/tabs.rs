//! Tabs that stay open: what the server holds for them, and what they ask.

use std::{sync::Arc, time::Duration};

use crate::{chromium::Chromium, server::Server, tab::Tab};

/// Tabs of people who leave the page open.
const TABS: usize = 50;
/// Longer than a page waits until it asks again.
const WHILE: Duration = Duration::from_secs(10);
/// How long a tab is counted, so that the count is not rounded.
const IDLE: Duration = Duration::from_secs(60);

/// The MiB by which the memory of the server grew at most while tabs are open that ask again and again.
pub async fn memory(browser: &Arc<Chromium>, server: &Server) -> f64 {
    // What the first pages take is there with and without tabs.
    for _ in 0..20 {
        crate::measure::link(&server.url, "/ui/runs", "/ui/").await;
    }
    server.forget_peak();
    let before = server.peak_mib();
    let mut tabs = Vec::new();
    for _ in 0..TABS {
        let mut tab = Tab::open(browser, &server.url).await;
        tab.go("/ui/runs").await;
        tabs.push(tab);
    }
    tokio::time::sleep(WHILE).await;
    let after = server.peak_mib();
    for tab in tabs {
        tab.close().await;
    }
    after.saturating_sub(before) as f64
}

/// How often a tab asks in a minute while it is seen and not touched.
pub async fn idle(browser: &Arc<Chromium>, url: &str) -> f64 {
    let mut tab = Tab::open(browser, url).await;
    tab.go("/ui/runs").await;
    let loaded = tab.requests().len();
    tokio::time::sleep(IDLE).await;
    tab.eval("true").await;
    let asked = tab.requests().len() - loaded;
    tab.close().await;
    asked as f64 * 60.0 / IDLE.as_secs_f64()
}
