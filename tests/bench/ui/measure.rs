//! One page: what the server takes for it, and what a slow browser does with it.

use std::{sync::Arc, time::Instant};

use serde_json::{Value, json};

use crate::{chromium::Chromium, client::Http, tab::Tab};

/// Opens of a page, each with an empty cache.
const OPENS: usize = 5;
/// Answers of the server whose times count, after one that does not.
const ANSWERS: usize = 30;

/// What was measured: the median of all opens, times in milliseconds, and bytes as they are sent.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Of the server, to the last byte; 95 of 100 answers.
    pub server: f64,
    pub first: f64,
    pub largest: f64,
    pub shift: f64,
    /// The longest time in which the page took no input.
    pub task: f64,
    pub script: f64,
    /// From a key to the paint after it; what is below 16 ms is 0.
    pub input: f64,
    /// The longest frame while the page is scrolled to its end.
    pub frame: f64,
    pub nodes: f64,
    pub heap_mib: f64,
    pub requests: f64,
    pub html: f64,
    pub css: f64,
    pub js: f64,
}

pub fn quantile(all: &mut [f64], part: f64) -> f64 {
    all.sort_by(f64::total_cmp);
    let at = (all.len().saturating_sub(1) as f64 * part).ceil();
    all.get(at as usize).copied().unwrap_or_default()
}

/// The milliseconds and the text of a page.
pub async fn page(http: &mut Http, target: &str) -> (f64, String) {
    let began = Instant::now();
    let reply = http
        .send("GET", target, &[("accept", "text/html")], "")
        .await;
    let took = began.elapsed().as_secs_f64() * 1e3;
    assert_eq!(reply.status, 200, "{target}");
    (took, reply.text())
}

fn links(html: &str) -> impl Iterator<Item = String> {
    let links = html.split("href=\"").skip(1);
    links.filter_map(|rest| Some(rest.split_once('"')?.0.replace("&#38;", "&")))
}

/// The link to the next page of a list.
pub fn next(html: &str) -> Option<String> {
    links(html).find(|link| link.contains("page="))
}

/// The first link on a page that begins so.
pub async fn link(url: &str, target: &str, begins: &str) -> String {
    let (_, html) = page(&mut Http::one(url).await, target).await;
    let found = links(&html).find(|link| link.starts_with(begins));
    found.unwrap_or_else(|| panic!("no link to {begins} on {target}"))
}

/// The milliseconds within which 95 of 100 answers have come, to the last byte.
pub async fn server(url: &str, target: &str) -> f64 {
    let mut http = Http::one(url).await;
    let mut times = Vec::new();
    for call in 0..=ANSWERS {
        let (took, _) = page(&mut http, target).await;
        if call > 0 {
            times.push(took);
        }
    }
    quantile(&mut times, 0.95)
}

/// Measures a page.
pub async fn measured(browser: &Arc<Chromium>, url: &str, target: &str) -> Seen {
    let server = server(url, target).await;
    let mut all = Vec::new();
    for _ in 0..OPENS {
        all.push(opened(browser, url, target).await);
    }
    let median = |of: fn(&Seen) -> f64| quantile(&mut all.iter().map(of).collect::<Vec<_>>(), 0.5);
    Seen {
        server,
        first: median(|it| it.first),
        largest: median(|it| it.largest),
        shift: median(|it| it.shift),
        task: median(|it| it.task),
        script: median(|it| it.script),
        input: median(|it| it.input),
        frame: median(|it| it.frame),
        nodes: median(|it| it.nodes),
        heap_mib: median(|it| it.heap_mib),
        requests: median(|it| it.requests),
        html: median(|it| it.html),
        css: median(|it| it.css),
        js: median(|it| it.js),
    }
}

/// What the page has told its observers, a while after it was loaded.
const OBSERVED: &str = "new Promise((done) => { \
    const got = {first: 0, largest: 0, shift: 0, task: 0, input: 0}; \
    const watch = (type, take, more) => new PerformanceObserver((list) => list.getEntries().forEach(take)) \
        .observe({type, buffered: true, ...more}); \
    watch('paint', (it) => { if (it.name === 'first-contentful-paint') got.first = it.startTime; }); \
    watch('largest-contentful-paint', (it) => { got.largest = Math.max(got.largest, it.startTime); }); \
    watch('layout-shift', (it) => { got.shift += it.value; }); \
    watch('longtask', (it) => { got.task = Math.max(got.task, it.duration); }); \
    watch('event', (it) => { got.input = Math.max(got.input, it.duration); }, {durationThreshold: 16}); \
    setTimeout(() => done(got), 300); })";

/// Scrolls a screen at each frame, to the end of the page; the longest frame.
const SCROLLED: &str = "new Promise((done) => { let [last, worst, count] = [0, 0, 0]; \
    const step = (now) => { if (last) worst = Math.max(worst, now - last); last = now; \
        scrollBy(0, innerHeight / 4); \
        if (++count < 60) requestAnimationFrame(step); else done(worst); }; \
    requestAnimationFrame(step); })";

async fn opened(browser: &Arc<Chromium>, url: &str, target: &str) -> Seen {
    let mut tab = Tab::open(browser, url).await;
    tab.call("Emulation.setCPUThrottlingRate", json!({"rate": 4}))
        .await;
    tab.go(target).await;
    let painted = tab.eval(OBSERVED).await;
    let metrics = tab.call("Performance.getMetrics", json!({})).await;
    let metric = |name: &str| {
        let mut all = metrics["metrics"].as_array().unwrap().iter();
        let found = all.find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("{metrics}"))["value"]
            .as_f64()
            .unwrap()
    };
    let requests = tab.requests();
    let bytes = |kind: &str| {
        let all = requests.iter().filter(|request| request.kind == kind);
        all.map(|request| request.bytes).sum::<f64>()
    };
    tab.press("j").await;
    let typed = tab.eval(OBSERVED).await;
    let frame = tab.eval(SCROLLED).await;
    let nodes = tab.eval("document.querySelectorAll('*').length").await;
    let number = |value: &Value| value.as_f64().unwrap();
    let seen = Seen {
        server: 0.0,
        first: number(&painted["first"]),
        largest: number(&painted["largest"]),
        shift: number(&painted["shift"]),
        task: number(&painted["task"]),
        script: metric("ScriptDuration") * 1e3,
        input: number(&typed["input"]),
        frame: number(&frame),
        nodes: number(&nodes),
        heap_mib: metric("JSHeapUsedSize") / f64::from(1 << 20),
        requests: requests.len() as f64,
        html: bytes("Document"),
        css: bytes("Stylesheet"),
        js: bytes("Script"),
    };
    tab.close().await;
    seen
}
