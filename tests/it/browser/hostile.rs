//! Stored text that is made to do harm does nothing in a browser: no dialog, no report of the content
//! security policy, no error, no request to elsewhere, no other title.

use std::collections::BTreeSet;

use super::{browser, tab::Tab};
use crate::{
    support::objects::{PIPELINE_RUN, bytes},
    web::{
        hostile::{TEXTS, run, targets},
        seed::empty,
    },
};

#[tokio::test]
async fn stored_text_does_nothing_in_a_browser() {
    let Some(browser) = browser() else { return };
    let server = empty(&[]).await;
    let mut tab = Tab::open(&browser, &server.url).await;
    let mut all = BTreeSet::new();
    for (number, text) in TEXTS.into_iter().enumerate() {
        let mut failed = String::new();
        for (hour, reason) in [(8, "Succeeded"), (9, "Failed")] {
            let id = format!("r{number}-{hour}");
            failed = format!("shop/results/{id}/records/{id}");
            let payload = bytes(&run(text, &id, hour, reason));
            server.given_record(&failed, PIPELINE_RUN, &payload).await;
        }
        let query: String = format!("\"{}\"", text.replace('"', "\\\""))
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        all.extend(targets(&failed, &query));
    }
    for target in all {
        tab.go(&target).await;
        let title = tab.text("document.title").await;
        assert!(title.ends_with(" · Hindsight"), "{target}: {title}");
        // Links that a person takes do nothing either.
        let bad = "[...document.querySelectorAll('[href], [src], [action]')].map((it) => \
                new URL(it.href?.baseVal ?? it.href ?? it.src ?? it.action, location)) \
                .filter((it) => it.origin !== location.origin).map((it) => it.href)";
        assert_eq!(tab.eval(bad).await.to_string(), "[]", "{target}");
        let own = "document.querySelectorAll('script:not([src]), style, [style], img, iframe, object, embed').length";
        assert_eq!(tab.eval(own).await, 0, "{target}");
        tab.is_calm(&target);
    }
    tab.close().await;
    server.stop().await;
}

#[tokio::test]
async fn a_script_that_came_into_a_page_would_be_stopped_and_seen() {
    let Some(browser) = browser() else { return };
    let server = empty(&[]).await;
    let mut tab = Tab::open(&browser, &server.url).await;
    tab.go("/ui/runs").await;
    let forced = "(() => { document.body.insertAdjacentHTML('beforeend', \
        '<img src=http://evil.example/x onerror=\"window.hit = 1\"><p style=\"color: red\">'); \
        const it = document.createElement('script'); it.textContent = 'window.hit = 2'; \
        document.body.append(it); return window.hit ?? null; })()";
    assert_eq!(tab.eval(forced).await, serde_json::Value::Null);
    tab.becomes("performance.now() > 0").await;
    let said = std::mem::take(&mut tab.complaints).join("\n");
    for part in ["script-src", "style-src", "img-src"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    tab.close().await;
    server.stop().await;
}
