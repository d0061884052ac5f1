//! What people come for, in three clicks or fewer: by keys alone, and by mouse.

use hindsight_runtime::clock::{Clock as _, SystemClock};
use serde_json::json;

use super::{browser, named, stage::record, staged, tab::Tab};
use crate::{
    support::objects::{PIPELINE_RUN, bytes},
    web::{
        oidc::Given as Provided,
        seed::empty,
        sign_in::{Guarded, guarded},
    },
};

/// What a person uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Keys,
    Mouse,
}

pub(super) const BOTH: [By; 2] = [By::Keys, By::Mouse];

/// A person on the way, and the links and buttons that it took so far.
pub(super) struct Way {
    pub(super) tab: Tab,
    by: By,
    pub(super) clicks: u32,
}

impl Way {
    pub(super) async fn from(by: By, start: &str) -> Option<Self> {
        let mut tab = staged().await?;
        tab.go(start).await;
        Some(Self { tab, by, clicks: 0 })
    }

    /// Takes the link or button that an expression gives, which leads to another page.
    pub(super) async fn take(&mut self, element: &str) {
        let by = self.by;
        let act = async |tab: &mut Tab| match by {
            By::Keys => {
                tab.tab_to(element).await;
                tab.press("Enter").await;
            }
            By::Mouse => tab.click(element).await,
        };
        self.tab.leave(act).await;
        self.clicks += 1;
        assert!(self.clicks <= 3, "a fourth click for {element}");
    }

    /// Puts a text in the field that an expression gives, and sends it.
    pub(super) async fn fill(&mut self, field: &str, text: &str) {
        match self.by {
            By::Keys => self.tab.tab_to(field).await,
            By::Mouse => self.tab.click(field).await,
        }
        self.tab.write(text).await;
        self.tab
            .leave(async |tab: &mut Tab| tab.press("Enter").await)
            .await;
        self.clicks += 1;
    }

    pub(super) async fn says(&mut self, text: &str) {
        let main = self
            .tab
            .text("document.querySelector('main').innerText")
            .await;
        assert!(main.contains(text), "`{text}` is not in {main}");
    }

    pub(super) async fn end(mut self) {
        self.tab.is_calm("on the way");
        self.tab.close().await;
    }
}

#[tokio::test]
async fn a_link_from_chat_shows_the_step_that_failed_and_leads_to_its_task() {
    for by in BOTH {
        let Some(mut way) = Way::from(by, "/ui/runs").await else {
            return;
        };
        let name = record(&way.tab.base, "failed pipeline:release is:top").await;
        way.tab.go(&format!("/ui/run/{name}")).await;
        // Without a click: what failed, how, and its step among those that are open.
        way.says("OOMKilled (exit 137)").await;
        way.says("signal: killed").await;
        let open = "(() => { const open = [...document.querySelectorAll('details[open]')].at(-1); \
            return open.innerText.includes('run') && open.checkVisibility(); })()";
        assert_eq!(way.tab.eval(open).await, true);
        // `f` is the key for the next failure.
        let failed = "document.querySelector('.part.failed a, .to.failed')";
        if by == By::Keys {
            way.tab.press("f").await;
            let focused = format!("document.activeElement === {failed}");
            assert_eq!(way.tab.eval(&focused).await, true);
        }
        way.take(failed).await;
        assert!(way.tab.title().await.ends_with("-test"));
        way.says("Step run of").await;
        way.end().await;
    }
}

#[tokio::test]
async fn the_overview_leads_to_the_first_bad_run_of_a_pipeline_and_to_what_changed() {
    for by in BOTH {
        let Some(mut way) = Way::from(by, "/ui/").await else {
            return;
        };
        // The first pipeline of the overview is one that fails since a short time.
        let pipeline = "[...document.querySelectorAll('main section')].find((it) => \
            it.querySelector('h2').textContent.startsWith('Newly failing')).querySelector('tbody td:nth-child(2) a')";
        way.take(pipeline).await;
        assert_eq!(way.tab.title().await, "release");
        way.says("3 failed in a row").await;
        let first = "[...document.querySelectorAll('main table.runs a')].find((it) => it.textContent.includes('release-42'))";
        way.take(first).await;
        way.says("This run is the first failure").await;
        way.take(&named("Compare with the last success")).await;
        assert_eq!(way.tab.title().await, "Compare");
        way.says("golang:1.26").await;
        assert_eq!(way.clicks, 3);
        way.end().await;
    }
}

#[tokio::test]
async fn a_name_that_is_pasted_leads_to_its_run() {
    for by in BOTH {
        let Some(mut way) = Way::from(by, "/ui/runs").await else {
            return;
        };
        let name = "release-42";
        way.fill("document.getElementById('q')", &format!("{name} is:top"))
            .await;
        assert_eq!(way.tab.place().await, "/ui/runs?q=release-42+is%3Atop&ns=");
        way.take("document.querySelector('main tbody a')").await;
        assert!(way.tab.title().await.starts_with("release-42-"));
        // Back is where one was.
        way.tab.back().await;
        assert_eq!(way.tab.place().await, "/ui/runs?q=release-42+is%3Atop&ns=");
        way.end().await;
    }
}

#[tokio::test]
async fn a_list_is_not_replaced_under_the_focus() {
    let Some(mut tab) = staged().await else {
        return;
    };
    tab.go("/ui/runs?q=is:top").await;
    // The link gets the focus, or loses it, between the question and its answer.
    for (act, is_kept) in [("focus", true), ("blur", false)] {
        let refresh = format!(
            "new Promise((done) => {{ const part = document.getElementById('rows'); \
             addEventListener('htmx:afterRequest', () => requestAnimationFrame(() => done(part.isConnected)), {{once: true}}); \
             htmx.trigger(part, 'refresh'); part.querySelector('tbody a').{act}(); }})"
        );
        assert_eq!(tab.eval(&refresh).await, is_kept, "{act}");
    }
    tab.close().await;
}

#[tokio::test]
async fn keys_move_among_rows_and_pages() {
    let Some(mut way) = Way::from(By::Keys, "/ui/runs?q=is:top").await else {
        return;
    };
    let tab = &mut way.tab;
    let row = "[...document.querySelectorAll('main tbody tr')].indexOf(document.activeElement.closest('tr'))";
    for (key, at) in [("j", 0), ("j", 1), ("j", 2), ("k", 1)] {
        tab.press(key).await;
        assert_eq!(tab.eval(row).await, at, "after `{key}`");
    }
    tab.press("f").await;
    let failed = "document.activeElement.closest('tr').hasAttribute('data-failed')";
    assert_eq!(tab.eval(failed).await, true);
    tab.press("/").await;
    assert_eq!(tab.text("document.activeElement.id").await, "q");
    // Letters are text in a field.
    tab.press("j").await;
    assert_eq!(tab.text("document.activeElement.value").await, "j");
    tab.press("Escape").await;
    for (key, place) in [("h", "/ui/health"), ("r", "/ui/runs"), ("o", "/ui/")] {
        tab.press("g").await;
        tab.leave(async |tab: &mut Tab| tab.press(key).await).await;
        assert_eq!(tab.place().await, place);
    }
    // Two rows are selected and compared.
    tab.go("/ui/runs?q=pipeline:release+is:top").await;
    for key in ["j", "x", "j", "x"] {
        tab.press(key).await;
    }
    let said = tab
        .text("document.querySelector('[role=status]').textContent")
        .await;
    assert!(said.ends_with("2 selected"), "{said}");
    tab.leave(async |tab: &mut Tab| tab.press("c").await).await;
    assert_eq!(tab.title().await, "Compare");
    tab.go("/ui/runs?q=is:top").await;
    tab.leave(async |tab: &mut Tab| tab.press("[").await).await;
    assert!(tab.place().await.contains("page="));
    tab.leave(async |tab: &mut Tab| tab.press("]").await).await;
    assert!(!tab.place().await.contains("page="));
    // Keys are listed, and leave the page alone meanwhile.
    tab.press("?").await;
    let is_open = "document.getElementById('keys').open";
    assert_eq!(tab.eval(is_open).await, true);
    tab.press("j").await;
    tab.press("Escape").await;
    tab.becomes(&format!("!{is_open}")).await;
    for theme in ["light", "dark", "system"] {
        tab.leave(async |tab: &mut Tab| tab.press("t").await).await;
        assert_eq!(
            tab.text("document.documentElement.dataset.theme").await,
            theme
        );
    }
    // The first stop of the tabulator is the link to what the page is about.
    tab.go("/ui/runs").await;
    tab.press("Tab").await;
    assert_eq!(tab.text("document.activeElement.className").await, "skip");
    tab.press("Enter").await;
    tab.becomes("document.activeElement.id === 'content'").await;
    way.end().await;
}

#[tokio::test]
async fn a_deep_link_leads_over_the_sign_in_to_the_same_page_in_a_browser() {
    let Some(browser) = browser() else { return };
    for by in BOTH {
        let Guarded {
            server, _folder, ..
        } = guarded(&[]).await;
        let mut tab = Tab::open(&browser, &server.url).await;
        tab.go("/ui/runs?q=failed&ns=shop").await;
        assert_eq!(tab.title().await, "Sign in");
        let mut way = Way { tab, by, clicks: 0 };
        way.fill("document.getElementById('token')", "reader").await;
        assert_eq!(way.tab.place().await, "/ui/runs?q=failed&ns=shop");
        // Scripts of the page see nothing of the session.
        let seen = way
            .tab
            .text("document.cookie + JSON.stringify({...localStorage, ...sessionStorage})")
            .await;
        assert!(!seen.contains("hs=") && !seen.contains("reader"), "{seen}");
        way.take(&named("Sign out")).await;
        way.tab.go("/ui/runs").await;
        assert_eq!(way.tab.title().await, "Sign in");
        way.end().await;
        server.stop().await;
    }
}

#[tokio::test]
async fn keys_lead_from_a_run_to_those_of_its_pipeline_before_and_after_it() {
    let Some(mut tab) = staged().await else {
        return;
    };
    let name = record(&tab.base.clone(), "failed pipeline:release is:top").await;
    let start = format!("/ui/run/{name}");
    tab.go(&start).await;
    tab.leave(async |tab: &mut Tab| tab.press("[").await).await;
    assert_ne!(tab.place().await, start);
    tab.leave(async |tab: &mut Tab| tab.press("]").await).await;
    assert_eq!(tab.place().await, start);
    tab.close().await;
}

#[tokio::test]
async fn a_deep_link_leads_over_a_provider_to_the_same_page_in_a_browser() {
    let Some(browser) = browser() else { return };
    for by in BOTH {
        let (given, public) = Provided::reachable().await;
        let mut tab = Tab::open(&browser, &public).await;
        tab.go("/ui/runs?q=failed&ns=shop").await;
        assert_eq!(tab.title().await, "Sign in");
        let mut way = Way { tab, by, clicks: 0 };
        // The provider is another site, which sends the browser back at once.
        way.take("document.querySelector('a.button.main')").await;
        assert_eq!(way.tab.place().await, "/ui/runs?q=failed&ns=shop");
        assert_eq!(way.tab.title().await, "Runs");
        way.take(&named("Sign out")).await;
        assert_eq!(way.tab.title().await, "Signed out");
        way.tab.go("/ui/runs").await;
        assert_eq!(way.tab.title().await, "Sign in");
        way.tab.close().await;
        given.stop().await;
    }
}

#[tokio::test]
async fn a_row_of_the_list_leads_to_runs_with_its_label_and_to_their_statistics() {
    for by in BOTH {
        let Some(mut way) = Way::from(by, "/ui/runs?q=pipeline:release+is:top").await else {
            return;
        };
        way.take("document.querySelector('main tbody a')").await;
        way.take("document.querySelector('main a[href*=\"label%3Ateam\"]')")
            .await;
        assert_eq!(way.tab.title().await, "Runs");
        way.take(&named("Statistics of these runs")).await;
        assert_eq!(way.tab.title().await, "Stats");
        way.says("storefront-checks").await;
        assert_eq!(way.clicks, 3);
        way.end().await;
    }
}

#[tokio::test]
async fn a_digest_that_is_pasted_leads_to_the_run_that_made_it() {
    let Some(browser) = browser() else { return };
    let server = empty(&[]).await;
    let digest = format!("sha256:{}", "0b4f9a2e".repeat(8));
    let now = SystemClock.now().to_string();
    let run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "release-7", "namespace": "shop", "uid": "u-7", "creationTimestamp": now},
        "status": {"startTime": now, "completionTime": now,
            "results": [{"name": "IMAGE_DIGEST", "value": digest}],
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]},
    });
    let name = "shop/results/r/records/r";
    server.given_record(name, PIPELINE_RUN, &bytes(&run)).await;
    for by in BOTH {
        let mut tab = Tab::open(&browser, &server.url).await;
        tab.go("/ui/").await;
        let jump = "document.getElementById('jump')";
        match by {
            By::Keys => tab.chord("k", 2).await,
            By::Mouse => tab.click(jump).await,
        }
        let mut way = Way { tab, by, clicks: 0 };
        way.fill(jump, &format!("registry.example/shop@{digest}"))
            .await;
        assert_eq!(way.tab.title().await, "release-7");
        way.end().await;
    }
    server.stop().await;
}
