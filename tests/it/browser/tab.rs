//! One tab: pages are opened in it and asked, and what the browser complains about is kept.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::chromium::{Chromium, Event, PATIENCE};

/// A request that a page made.
#[derive(Debug, Default, Clone)]
pub struct Request {
    pub url: String,
    /// `Document`, `Stylesheet`, `Script`, ...
    pub kind: String,
    pub status: u64,
    /// Bytes that came over the connection: head and body, as they were compressed.
    pub bytes: f64,
    /// Milliseconds from its last byte sent to the first byte of its answer.
    pub waited: f64,
}

/// A tab with cookies and storage of its own.
#[derive(Debug)]
pub struct Tab {
    browser: Arc<Chromium>,
    context: String,
    target: String,
    session: String,
    /// What every address begins with.
    pub base: String,
    events: mpsc::UnboundedReceiver<Event>,
    loaded: String,
    /// What no page of ours may cause: dialogs, errors, reports and requests to elsewhere.
    pub complaints: Vec<String>,
    requests: HashMap<String, Request>,
}

impl Tab {
    /// A tab of 1280 by 800 pixels for the pages of the server at `base`.
    pub async fn open(browser: &Arc<Chromium>, base: &str) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let made = browser.call("Target.createBrowserContext", json!({}));
        let context = text(&made.await["browserContextId"]);
        let ask = json!({"url": "about:blank", "browserContextId": context, "width": 1280, "height": 800});
        let target = text(&browser.call("Target.createTarget", ask).await["targetId"]);
        let ask = json!({"targetId": target, "flatten": true});
        let session = text(&browser.call("Target.attachToTarget", ask).await["sessionId"]);
        let events = browser.listen_to(&session);
        let mut tab = Self {
            browser: Arc::clone(browser),
            context,
            target,
            session,
            base: base.to_owned(),
            events,
            loaded: String::new(),
            complaints: Vec::new(),
            requests: HashMap::new(),
        };
        for domain in [
            "Page",
            "Runtime",
            "Log",
            "Network",
            "Audits",
            "Performance",
            "DOM",
        ] {
            tab.call(&format!("{domain}.enable"), json!({})).await;
        }
        let on = json!({"enabled": true});
        tab.call("Page.setLifecycleEventsEnabled", on.clone()).await;
        tab.call("Emulation.setFocusEmulationEnabled", on).await;
        tab.sized(1280, 800).await;
        tab
    }

    /// Sends a command and gives its answer, while what the browser says is heard.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.browser.send(&self.session, method, &params);
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            tokio::select! {
                answer = &mut answer => {
                    let answer = answer.unwrap_or_else(|_| panic!("{method}: the browser has ended"));
                    return answer.unwrap_or_else(|error| panic!("{method}: {error}"));
                }
                Some(event) = self.events.recv() => self.hear(event),
                () = tokio::time::sleep_until(until) => {
                    panic!("{method} takes longer than {PATIENCE:?}: {:?}", self.complaints)
                }
            }
        }
    }

    fn hear(&mut self, Event { method, params }: Event) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match method.as_str() {
            "Page.lifecycleEvent" => {
                if params["name"] == "load" && params["frameId"] == self.target.as_str() {
                    self.loaded = text(&params["loaderId"]);
                }
            }
            "Page.javascriptDialogOpening" => {
                self.complaints.push(format!("a dialog: {params}"));
                let no = json!({"accept": false});
                drop(
                    self.browser
                        .send(&self.session, "Page.handleJavaScriptDialog", &no),
                );
            }
            "Runtime.exceptionThrown" => self.complaints.push(format!("an exception: {params}")),
            "Runtime.consoleAPICalled" => {
                if ["error", "assert", "warning"]
                    .iter()
                    .any(|kind| params["type"] == *kind)
                {
                    self.complaints.push(format!("on the console: {params}"));
                }
            }
            "Log.entryAdded" => {
                let entry = &params["entry"];
                let is_bad = entry["level"] == "error" || entry["level"] == "warning";
                // A page that says what was wrong with its address has the status of that.
                let is_page = entry["source"] == "network" && {
                    let mut pages = self.requests.values().filter(|it| it.kind == "Document");
                    pages.any(|page| entry["url"] == page.url.as_str())
                };
                if is_bad && !is_page {
                    self.complaints.push(format!("in the log: {entry}"));
                }
            }
            "Audits.issueAdded" => {
                // Advice on speed is judged by a bench, and structure by axe-core.
                let code = text(&params["issue"]["code"]);
                if code != "PerformanceIssue" && code != "ElementAccessibilityIssue" {
                    self.complaints
                        .push(format!("an issue: {}", params["issue"]));
                }
            }
            _ => self.hear_request(&method, &params),
        }
    }

    /// Keeps what is said of requests.
    fn hear_request(&mut self, method: &str, params: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match method {
            "Network.requestWillBeSent" => {
                let request = Request {
                    url: text(&params["request"]["url"]),
                    kind: text(&params["type"]),
                    ..Request::default()
                };
                let is_ours = request.url.starts_with(&format!("{}/", self.base));
                if !is_ours
                    && !request.url.starts_with("data:image/")
                    && request.url != "about:blank"
                {
                    self.complaints
                        .push(format!("a request to {}", request.url));
                }
                self.requests.insert(text(&params["requestId"]), request);
            }
            "Network.responseReceived" => {
                if let Some(request) = self.requests.get_mut(&text(&params["requestId"])) {
                    let (response, number) = (&params["response"], |value: &Value| value.as_f64());
                    request.status = response["status"].as_u64().unwrap_or_default();
                    let timing = &response["timing"];
                    let first = number(&timing["receiveHeadersStart"])
                        .or(number(&timing["receiveHeadersEnd"]));
                    request.waited =
                        first.unwrap_or_default() - number(&timing["sendEnd"]).unwrap_or_default();
                }
            }
            "Network.loadingFinished" => {
                if let Some(request) = self.requests.get_mut(&text(&params["requestId"])) {
                    request.bytes = params["encodedDataLength"].as_f64().unwrap_or_default();
                }
            }
            _ => {}
        }
    }

    /// Opens an address below that of the server, and waits until it is loaded. Requests are counted from here.
    pub async fn go(&mut self, target: &str) {
        self.requests.clear();
        let url = format!("{}{target}", self.base);
        let gone = self.call("Page.navigate", json!({"url": url})).await;
        assert_eq!(gone.get("errorText"), None, "{url}");
        let loader = gone["loaderId"].as_str().unwrap().to_owned();
        self.until(&format!("{target} is loaded"), |tab| tab.loaded == loader)
            .await;
    }

    /// Opens an address whose page gives way to another one before it is loaded, and waits for that.
    pub async fn go_on(&mut self, target: &str) {
        let url = format!("{}{target}", self.base);
        self.leave(async |tab| {
            tab.call("Page.navigate", json!({"url": url})).await;
        })
        .await;
    }

    /// Does what leads to another page, and waits until that is loaded.
    pub async fn leave(&mut self, act: impl AsyncFnOnce(&mut Self)) {
        let before = self.loaded.clone();
        act(self).await;
        self.until("another page is loaded", |tab| tab.loaded != before)
            .await;
    }

    /// Goes back to the page before. A script that does so loses its answer where the page is left first.
    pub async fn back(&mut self) {
        let history = self.call("Page.getNavigationHistory", json!({})).await;
        let at = history["currentIndex"].as_u64().unwrap() as usize;
        let entry = history["entries"][at - 1]["id"].clone();
        self.leave(async |tab| {
            tab.call("Page.navigateToHistoryEntry", json!({"entryId": entry}))
                .await;
        })
        .await;
    }

    /// Hears the browser until something is so.
    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until = tokio::time::Instant::now() + PATIENCE;
        while !is_so(self) {
            tokio::select! {
                event = self.events.recv() => self.hear(event.expect("the browser goes on")),
                () = tokio::time::sleep_until(until) => panic!("{what}: not within {PATIENCE:?}"),
            }
        }
    }

    /// The value of an expression, or what its promise gives.
    pub async fn eval(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", ask).await;
        let short: String = expression.chars().take(200).collect();
        assert_eq!(answer.get("exceptionDetails"), None, "{short}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true, which is asked at each frame.
    pub async fn becomes(&mut self, expression: &str) {
        let ask = format!(
            "new Promise((done) => {{ const ask = () => ({expression}) ? done(true) : requestAnimationFrame(ask); ask(); }})"
        );
        self.eval(&ask).await;
    }

    pub async fn text(&mut self, expression: &str) -> String {
        let value = self.eval(expression).await;
        value
            .as_str()
            .unwrap_or_else(|| panic!("{expression} is {value}"))
            .to_owned()
    }

    /// The part of its address that tells pages of a server apart.
    pub async fn place(&mut self) -> String {
        self.text("location.pathname + location.search").await
    }

    pub async fn title(&mut self) -> String {
        self.text("document.querySelector('h1').textContent").await
    }

    /// Whether scripts of pages run, from the next page on.
    pub async fn scripts(&mut self, run: bool) {
        self.call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": !run}),
        )
        .await;
    }

    /// What the page is told of its medium: `prefers-color-scheme` and the like.
    pub async fn media(&mut self, features: &[(&str, &str)]) {
        let features = features
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}));
        let features: Vec<_> = features.collect();
        self.call("Emulation.setEmulatedMedia", json!({"features": features}))
            .await;
    }

    pub async fn sized(&mut self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// The requests since the page was asked for; the document is the first.
    pub fn requests(&self) -> Vec<Request> {
        let mut all: Vec<_> = self.requests.values().cloned().collect();
        all.sort_by_key(|request| (request.kind != "Document", request.url.clone()));
        all
    }

    /// Fails with what the browser complained about.
    #[track_caller]
    pub fn is_calm(&mut self, what: &str) {
        let complaints = std::mem::take(&mut self.complaints);
        assert!(complaints.is_empty(), "{what}: {complaints:#?}");
    }

    /// Closes it; its cookies are gone.
    pub async fn close(self) {
        let ask = json!({"browserContextId": self.context});
        self.browser.call("Target.disposeBrowserContext", ask).await;
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.browser.forget(&self.session);
    }
}
