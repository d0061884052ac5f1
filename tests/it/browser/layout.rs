//! Pages on narrow screens, without motion, and in the colours of the system.

use super::{stage::pages, staged, tab::Tab};

#[tokio::test]
async fn no_page_is_wider_than_a_screen_of_320_pixels() {
    // 1280 pixels at 400 %.
    let Some(mut tab) = staged().await else {
        return;
    };
    let all = pages(&tab.base.clone(), &["/ui/", "/ui/runs?q=stauts:x"]).await;
    tab.sized(320, 640).await;
    for target in all {
        tab.go(&target).await;
        let wide = "document.documentElement.scrollWidth";
        assert_eq!(tab.eval(wide).await, 320, "{target}");
        // Text stands in the page, or in what scrolls by itself and is reached by the tabulator.
        let lost = "[...document.querySelectorAll('h1, h2, p, dd, label, .button')].filter((it) => { \
            const box = it.getBoundingClientRect(); \
            return box.right > innerWidth + 1 && !it.closest('.scroll, .fall, .unseen, pre'); \
            }).map((it) => it.outerHTML)";
        assert_eq!(tab.eval(lost).await.to_string(), "[]", "{target}");
    }
    tab.close().await;
}

/// Animations of the page that run now.
async fn moving(tab: &mut Tab) -> u64 {
    let running = "document.getAnimations().filter((it) => it.playState === 'running').length";
    tab.eval(running).await.as_u64().unwrap()
}

#[tokio::test]
async fn nothing_moves_where_motion_is_reduced() {
    let Some(mut tab) = staged().await else {
        return;
    };
    tab.go("/ui/runs?q=running").await;
    assert!(moving(&mut tab).await > 0);
    tab.media(&[("prefers-reduced-motion", "reduce")]).await;
    assert_eq!(moving(&mut tab).await, 0);
    tab.close().await;
}

#[tokio::test]
async fn bars_are_seen_in_the_colours_of_the_system() {
    let Some(mut tab) = staged().await else {
        return;
    };
    // Bars whose fill is that of what is behind them.
    let lost = "(() => { const canvas = Object.assign(document.createElement('p'), {}); \
        document.body.append(canvas); canvas.style.background = 'Canvas'; \
        const behind = getComputedStyle(canvas).backgroundColor; canvas.remove(); \
        return [...document.querySelectorAll('main rect.succeeded, main rect.failed, main rect.timeout, main rect.running, main rect.cancelled')] \
        .map((it) => getComputedStyle(it)).filter((it) => it.fill === behind && it.stroke === behind).length; })()";
    let bars = "document.querySelectorAll('main rect.succeeded').length";
    tab.media(&[("forced-colors", "active")]).await;
    for target in ["/ui/", "/ui/pipeline/shop/release"] {
        tab.go(target).await;
        assert_eq!(
            tab.eval("matchMedia('(forced-colors: active)').matches")
                .await,
            true
        );
        assert!(tab.eval(bars).await.as_u64().unwrap() > 10, "{target}");
        assert_eq!(tab.eval(lost).await, 0, "{target}");
        // A state is a word too.
        let words = "[...document.querySelectorAll('main .status')].every((it) => it.textContent.trim() !== '')";
        assert_eq!(tab.eval(words).await, true, "{target}");
    }
    tab.close().await;
}
