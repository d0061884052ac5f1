//! Logs in a browser: from a run to the lines that matter, lines that are marked, lines that come.

use super::{
    browser,
    flows::{BOTH, By, Way},
    named,
    stage::{FAILED, record},
    staged,
    tab::Tab,
};
use crate::{
    support::objects::{PIPELINE_RUN, bytes},
    web::{
        hostile::LINES,
        logs::{append, container, run},
        seed::empty,
    },
};

/// Numbers of the lines that are marked.
const MARKED: &str =
    "[...document.querySelectorAll('.log .marked')].map((it) => it.id.slice(1)).join()";

/// Whether a line is on the screen.
fn is_seen(line: u32) -> String {
    format!(
        "(() => {{ const box = document.getElementById('L{line}')?.getBoundingClientRect(); \
         return !!box && box.top >= 48 && box.bottom <= innerHeight; }})()"
    )
}

/// The number of a line.
fn number(line: u32) -> String {
    format!("document.querySelector('#L{line} > a')")
}

#[tokio::test]
async fn a_link_from_chat_leads_to_the_end_of_the_log_of_the_step_that_failed() {
    for by in BOTH {
        let Some(mut way) = Way::from(by, "/ui/runs").await else {
            return;
        };
        let name = record(&way.tab.base, FAILED).await;
        way.tab.go(&format!("/ui/run/{name}")).await;
        // Without a click: the last lines.
        way.says("--- FAIL: TestCheckout").await;
        way.take(&named("its log")).await;
        assert_eq!(way.clicks, 1);
        assert!(
            way.tab
                .text("document.title")
                .await
                .starts_with("Logs of release-44")
        );
        way.says("Lines 501 to 1,500 of 1,500").await;
        way.tab.becomes(&is_seen(1_500)).await;
        // Earlier lines are a click, or a key, away.
        match by {
            By::Keys => {
                way.tab
                    .leave(async |tab: &mut Tab| tab.press("[").await)
                    .await
            }
            By::Mouse => way.take(&named("Earlier lines")).await,
        }
        way.says("Lines 1 to 1,000 of 1,500").await;
        way.end().await;
    }
}

#[tokio::test]
async fn a_search_leads_to_the_line_that_matches() {
    for by in BOTH {
        let Some(mut way) = Way::from(by, "/ui/runs").await else {
            return;
        };
        let name = record(&way.tab.base, FAILED).await;
        way.tab.go(&format!("/ui/logs/{name}")).await;
        let box_ = "document.getElementById('q')";
        if by == By::Keys {
            way.tab.press("/").await;
            assert_eq!(
                way.tab
                    .eval(&format!("document.activeElement === {box_}"))
                    .await,
                true
            );
        }
        way.fill(box_, "Payment 97 after").await;
        way.says("1, ").await;
        way.take("document.querySelector('table.found tbody a')")
            .await;
        assert!(way.tab.place().await.contains("from="));
        way.tab.becomes(&format!("{MARKED} === '98'")).await;
        way.tab.becomes(&is_seen(98)).await;
        way.end().await;
    }
}

#[tokio::test]
async fn lines_are_marked_by_the_address() {
    let Some(mut tab) = staged().await else {
        return;
    };
    let name = record(&tab.base.clone(), FAILED).await;
    tab.go(&format!("/ui/logs/{name}?step=run")).await;
    tab.click(&number(1_400)).await;
    tab.becomes(&format!("{MARKED} === '1400'")).await;
    assert!(tab.place().await.contains("from=501"));
    assert_eq!(tab.text("location.hash").await, "#L1400");
    // With Shift, up to another one, by keys as well.
    let shifted = format!(
        "{}.dispatchEvent(new MouseEvent('click', {{bubbles: true, cancelable: true, shiftKey: true}}))",
        number(1_398)
    );
    tab.eval(&shifted).await;
    tab.becomes(&format!("{MARKED} === '1398,1399,1400'")).await;
    let address = tab
        .text("location.pathname + location.search + location.hash")
        .await;
    assert!(address.ends_with("#L1398-L1400"), "{address}");
    // The address leads there again, and so does one that names no page of lines.
    tab.go("/ui/runs").await;
    tab.go(&address).await;
    tab.becomes(&is_seen(1_399)).await;
    assert_eq!(tab.text(MARKED).await, "1398,1399,1400");
    tab.go("/ui/runs").await;
    tab.go_on(&format!("/ui/logs/{name}?step=run#L420")).await;
    tab.becomes(&format!("{MARKED} === '420'")).await;
    tab.becomes(&is_seen(420)).await;
    // Without scripts a single line is marked where the address has its page.
    tab.scripts(false).await;
    tab.go(&format!("/ui/logs/{name}?step=run&from=1#L420"))
        .await;
    tab.becomes("document.querySelector('li:target')?.id === 'L420'")
        .await;
    tab.becomes(&is_seen(420)).await;
    tab.scripts(true).await;
    tab.go(&format!("/ui/logs/{name}")).await;
    for key in ["j", "j", "j"] {
        tab.press(key).await;
    }
    let is_container = "document.activeElement.closest('.parts') !== null";
    assert_eq!(tab.eval(is_container).await, true);
    tab.is_calm("marking lines");
    tab.close().await;
}

#[tokio::test]
async fn lines_that_come_are_shown_while_the_page_is_open() {
    let Some(browser) = browser() else { return };
    let server = empty(&[]).await;
    let name = "shop/results/on/records/on";
    server
        .given_record(name, PIPELINE_RUN, &bytes(&run("on", false)))
        .await;
    let source = container("p", "step-x");
    let text = "a line\n".repeat(200);
    append(
        &server.url,
        name,
        source.clone(),
        (0, text.as_bytes(), vec![]),
        false,
    )
    .await;
    let mut tab = Tab::open(&browser, &server.url).await;
    tab.go(&format!("/ui/logs/{name}")).await;
    // What is read stays where it is.
    tab.eval("document.getElementById('L100').scrollIntoView({block: 'center'})")
        .await;
    let at = "Math.round(document.getElementById('L100').getBoundingClientRect().top)";
    let before = tab.eval(at).await;
    append(
        &server.url,
        name,
        source.clone(),
        (200, b"it came\n", vec![]),
        false,
    )
    .await;
    tab.becomes("document.getElementById('L201')?.textContent.includes('it came')")
        .await;
    assert_eq!(tab.eval(at).await, before);
    // From the end of the page lines are followed.
    tab.eval("scrollTo(0, document.documentElement.scrollHeight)")
        .await;
    let more = "another\n".repeat(80);
    append(
        &server.url,
        name,
        source,
        (201, more.as_bytes(), vec![]),
        false,
    )
    .await;
    tab.becomes("document.getElementById('L281') !== null")
        .await;
    tab.becomes("innerHeight + scrollY >= document.documentElement.scrollHeight - 8")
        .await;
    tab.is_calm("while lines come");
    tab.close().await;
    server.stop().await;
}

#[tokio::test]
async fn lines_that_are_made_to_do_harm_do_nothing() {
    let Some(browser) = browser() else { return };
    let server = empty(&[]).await;
    let name = "shop/results/odd/records/odd";
    server
        .given_record(name, PIPELINE_RUN, &bytes(&run("odd", true)))
        .await;
    let mut text = LINES.join(&b"\n"[..]);
    text.push(b'\n');
    text.extend(vec![b'<'; 1 << 20]);
    append(
        &server.url,
        name,
        container("p", "step-x"),
        (0, &text, vec![3]),
        true,
    )
    .await;
    let mut tab = Tab::open(&browser, &server.url).await;
    tab.sized(320, 640).await;
    for more in [
        "",
        "?from=1&times=on",
        "?q=.&regex=on",
        "?q=%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        let target = format!("/ui/logs/{name}{more}");
        tab.go(&target).await;
        assert!(
            tab.text("document.title").await.ends_with(" · Hindsight"),
            "{target}"
        );
        let own = "document.querySelectorAll('script:not([src]), style, [style], img, iframe, object, embed').length";
        assert_eq!(tab.eval(own).await, 0, "{target}");
        let bad = "[...document.querySelectorAll('[href]')].map((it) => new URL(it.href?.baseVal ?? it.href, location)) \
            .filter((it) => it.origin !== location.origin).length";
        assert_eq!(tab.eval(bad).await, 0, "{target}");
        assert_eq!(
            tab.eval("document.documentElement.scrollWidth").await,
            320,
            "{target}"
        );
        tab.is_calm(&target);
    }
    tab.close().await;
    server.stop().await;
}
