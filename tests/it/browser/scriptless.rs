//! Pages without scripts: the same text but for the button of keys, links that lead on, and forms that work.

use super::{named, stage::pages, staged, tab::Tab};

#[tokio::test]
async fn every_page_reads_the_same_without_scripts() {
    let Some(mut tab) = staged().await else {
        return;
    };
    let all = pages(&tab.base.clone(), &["/ui/"]).await;
    let text = "document.body.innerText";
    // Keys are of scripts, and so is the button that explains them; nothing else may differ.
    let hidden = "document.getElementById('keys-open').hidden";
    for target in all {
        tab.scripts(true).await;
        tab.go(&target).await;
        assert_eq!(tab.eval(hidden).await, false, "{target}");
        tab.eval(&format!("{hidden} = true")).await;
        let with = tab.text(text).await;
        tab.scripts(false).await;
        tab.go(&target).await;
        assert_eq!(tab.eval(hidden).await, true, "{target}");
        assert_eq!(tab.text(text).await, with, "{target}");
    }
    tab.go("/ui/runs").await;
    tab.click("document.getElementById('q')").await;
    tab.write("status:failed pipeline:release").await;
    tab.leave(async |tab: &mut Tab| tab.press("Enter").await)
        .await;
    let rows = "document.querySelectorAll('main tbody tr').length";
    assert_eq!(tab.eval(rows).await, 8);
    tab.leave(async |tab: &mut Tab| tab.click(&named("dark")).await)
        .await;
    assert_eq!(
        tab.text("document.documentElement.dataset.theme").await,
        "dark"
    );
    assert_eq!(tab.eval(rows).await, 8, "the same page");
    tab.is_calm("without scripts");
    tab.close().await;
}
