//! axe-core finds nothing on any page: full, empty, wrong and signed out, in light and dark.

use std::path::Path;

use super::{browser, stage::pages, staged, tab::Tab};
use crate::{
    support::database::variable,
    web::{
        oidc::Given as Provided,
        seed::empty,
        sign_in::{Guarded, guarded},
    },
};

/// axe-core, where `make chromium` put it. Without it tests say so, or fail where skipping is forbidden.
fn axe() -> Option<String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let path = target.join("axe/package/axe.min.js");
    let script = std::fs::read_to_string(&path);
    if let Err(error) = &script {
        let path = path.display();
        assert!(
            variable("HINDSIGHT_FORBID_SKIP").is_none(),
            "{path}: {error}; `make chromium` puts axe-core there"
        );
        eprintln!("skipped without axe-core: {path}: {error}");
    }
    script.ok()
}

/// Every rule; and those that colours decide.
const ALL: &str = "undefined";
const COLOURS: &str = "{type: 'rule', values: ['color-contrast', 'link-in-text-block']}";

/// What axe-core finds on the page of a tab by some of its rules.
async fn found(tab: &mut Tab, rules: &str) -> Vec<String> {
    let run = format!(
        "axe.run(document, {{resultTypes: ['violations'], runOnly: {rules}}}).then((it) => it.violations.map((rule) => \
        `${{rule.id}}, ${{rule.nodes.length}} times: ${{rule.nodes[0].html}}: ${{rule.nodes[0].failureSummary}}`))"
    );
    serde_json::from_value(tab.eval(&run).await).unwrap()
}

/// Looks at pages in light and in dark; gives what is wrong with them.
async fn look(tab: &mut Tab, axe: &str, targets: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for target in targets {
        tab.go(target).await;
        tab.eval(axe).await;
        for (scheme, rules) in [("light", ALL), ("dark", COLOURS)] {
            tab.media(&[("prefers-color-scheme", scheme)]).await;
            let found = found(tab, rules).await.into_iter();
            all.extend(found.map(|rule| format!("{target} ({scheme}): {rule}")));
        }
    }
    all
}

fn targets(all: &[&str]) -> Vec<String> {
    all.iter().map(|&target| target.to_owned()).collect()
}

#[tokio::test]
async fn axe_finds_nothing_on_pages_that_are_full() {
    let (Some(axe), Some(mut tab)) = (axe(), staged().await) else {
        return;
    };
    let base = tab.base.clone();
    let all = pages(&base, &["/ui/"]).await;
    let wrong = look(&mut tab, &axe, &all).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
    tab.close().await;
}

#[tokio::test]
async fn axe_finds_nothing_on_pages_that_are_empty_or_wrong() {
    let (Some(axe), Some(browser)) = (axe(), browser()) else {
        return;
    };
    let server = empty(&[]).await;
    let mut tab = Tab::open(&browser, &server.url).await;
    let all = targets(&[
        "/ui/",
        "/ui/runs",
        "/ui/runs?q=failed&ns=shop",
        "/ui/runs?q=failed+stauts:x",
        "/ui/pipeline/shop/none",
        "/ui/health",
        "/ui/health?q=took",
        "/ui/compare",
        "/ui/run/shop/results/none/records/none",
        "/ui/logs/shop/results/none/records/none",
        "/ui/nothing",
        "/ui/stats",
        "/ui/stats?by=nothing",
        "/ui/capture",
        "/ui/jump",
        "/ui/jump?to=nothing",
        "/ui/you",
        "/ui/login",
    ]);
    let wrong = look(&mut tab, &axe, &all).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
    // What is wrong is found.
    tab.eval("document.querySelector('h1').outerHTML = '<img src=\"\"><input>'")
        .await;
    let found = found(&mut tab, ALL).await.join("\n");
    assert!(
        found.contains("image-alt") && found.contains("label"),
        "{found}"
    );
    tab.close().await;
    server.stop().await;
}

#[tokio::test]
async fn axe_finds_nothing_where_a_caller_is_signed_out_or_may_not() {
    let (Some(axe), Some(browser)) = (axe(), browser()) else {
        return;
    };
    let Guarded {
        server, _folder, ..
    } = guarded(&[]).await;
    let mut tab = Tab::open(&browser, &server.url).await;
    let mut wrong = look(&mut tab, &axe, &targets(&["/ui/runs?ns=shop"])).await;
    for token in ["wrong", "shopper"] {
        tab.click("document.getElementById('token')").await;
        tab.write(token).await;
        tab.leave(async |tab: &mut Tab| tab.press("Enter").await)
            .await;
        tab.eval(&axe).await;
        let found = found(&mut tab, ALL).await.into_iter();
        wrong.extend(found.map(|rule| format!("after {token}: {rule}")));
    }
    assert_eq!(tab.place().await, "/ui/runs?ns=shop");
    wrong.extend(look(&mut tab, &axe, &targets(&["/ui/"])).await);
    assert!(
        tab.text("document.body.innerText")
            .await
            .contains("Name a namespace")
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    tab.close().await;
    server.stop().await;
}

#[tokio::test]
async fn axe_finds_nothing_on_the_way_to_a_provider_and_back() {
    let (Some(axe), Some(browser)) = (axe(), browser()) else {
        return;
    };
    let (given, public) = Provided::reachable().await;
    let mut tab = Tab::open(&browser, &public).await;
    let all = targets(&["/ui/login/callback?code=a&state=b", "/ui/login?to=/ui/you"]);
    let mut wrong = look(&mut tab, &axe, &all).await;
    let open = async |tab: &mut Tab| tab.click("document.querySelector('a.button.main')").await;
    tab.leave(open).await;
    assert_eq!(tab.place().await, "/ui/you");
    let out = async |tab: &mut Tab| tab.click(&super::named("Sign out")).await;
    tab.leave(out).await;
    assert_eq!(tab.title().await, "Signed out");
    tab.eval(&axe).await;
    wrong.extend(found(&mut tab, ALL).await);
    assert!(wrong.is_empty(), "{wrong:#?}");
    tab.close().await;
    given.stop().await;
}
