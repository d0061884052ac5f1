//! The pictures of docs/ui.md: they show what the pages show. `make screenshots` makes them anew.

use std::path::{Path, PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;

use super::{staged, tab::Tab};
use crate::support::database::variable;

/// A picture: its name, the page, its size, and its colours.
const PICTURES: [(&str, &str, (u32, u32), &str); 9] = [
    ("ui-overview", "/ui/", (1280, 900), "light"),
    ("ui-health", "/ui/health", (1280, 560), "light"),
    (
        "ui-pipeline",
        "/ui/pipeline/shop/release",
        (1280, 900),
        "light",
    ),
    ("ui-run", "RUN", (1280, 1180), "light"),
    ("ui-run-phone", "RUN", (360, 1300), "light"),
    ("ui-logs", "LOGS", (1280, 760), "light"),
    ("ui-runs-dark", "/ui/runs?q=is%3Atop", (1280, 760), "dark"),
    ("ui-workflow-dark", "WORKFLOW", (1280, 960), "dark"),
    (
        "ui-wrong",
        "/ui/runs?q=failed+stauts:timeout",
        (1280, 440),
        "light",
    ),
];

/// The share of the picture, at a quarter of its size, in which it may look otherwise: edges of letters differ
/// between versions of the browser. A part of the page that is missing is more.
const TOLERANCE: f64 = 0.002;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images")
}

/// The link to the first run of a list.
async fn first(tab: &mut Tab, list: &str) -> String {
    tab.go(list).await;
    tab.text("document.querySelector('main tbody td a').getAttribute('href')")
        .await
}

/// What is seen, as a PNG in base64.
async fn taken(tab: &mut Tab) -> String {
    let shot = tab
        .call("Page.captureScreenshot", json!({"format": "png"}))
        .await;
    shot["data"].as_str().unwrap().to_owned()
}

/// The share of two pictures that differs, at a quarter of their size; 1 if their sizes differ.
async fn difference(tab: &mut Tab, one: &str, other: &str) -> f64 {
    let compare = format!(
        "(async () => {{ \
        const read = async (data) => {{ \
            const bytes = Uint8Array.from(atob(data), (it) => it.charCodeAt(0)); \
            const image = await createImageBitmap(new Blob([bytes], {{type: 'image/png'}})); \
            const canvas = new OffscreenCanvas(image.width >> 2, image.height >> 2); \
            const brush = canvas.getContext('2d'); \
            brush.imageSmoothingQuality = 'high'; \
            brush.drawImage(image, 0, 0, canvas.width, canvas.height); \
            return brush.getImageData(0, 0, canvas.width, canvas.height); }}; \
        const [a, b] = [await read('{one}'), await read('{other}')]; \
        if (a.width !== b.width || a.height !== b.height) return 1; \
        let differ = 0; \
        for (let at = 0; at < a.data.length; at += 4) \
            differ += [0, 1, 2].some((c) => Math.abs(a.data[at + c] - b.data[at + c]) > 32); \
        return differ / (a.width * a.height); }})()"
    );
    tab.eval(&compare).await.as_f64().unwrap()
}

#[tokio::test]
async fn pictures_of_the_document_show_what_pages_show() {
    let Some(mut tab) = staged().await else {
        return;
    };
    let run = first(&mut tab, "/ui/runs?q=failed+pipeline:release+is:top").await;
    let logs = run.replacen("/run/", "/logs/", 1) + "#end";
    let workflow = first(&mut tab, "/ui/runs?q=failed+kind:wf").await;
    let is_remade = variable("HINDSIGHT_TEST_SCREENSHOTS").is_some();
    let seen = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&seen).unwrap();
    let mut wrong = Vec::new();
    for (name, target, (width, height), scheme) in PICTURES {
        let target = match target {
            "RUN" => &run,
            "WORKFLOW" => &workflow,
            "LOGS" => &logs,
            target => target,
        };
        tab.sized(width, height).await;
        tab.media(&[
            ("prefers-color-scheme", scheme),
            ("prefers-reduced-motion", "reduce"),
        ])
        .await;
        tab.go(target).await;
        let now = taken(&mut tab).await;
        let bytes = BASE64_STANDARD.decode(&now).unwrap();
        let file = folder().join(format!("{name}.png"));
        if is_remade {
            std::fs::write(&file, bytes).unwrap();
            continue;
        }
        let known = BASE64_STANDARD.encode(std::fs::read(&file).unwrap());
        let share = difference(&mut tab, &known, &now).await;
        if share > TOLERANCE {
            let other = seen.join(format!("{name}.png"));
            std::fs::write(&other, bytes).unwrap();
            wrong.push(format!(
                "{name}: {share:.4} of it differs from {}",
                other.display()
            ));
        }
        // The comparison sees that a part is missing.
        tab.eval("document.querySelector('main').querySelector('.wrong, .why, .fall, .log, .bars, .chips, table').remove()").await;
        let otherwise = taken(&mut tab).await;
        assert!(
            difference(&mut tab, &now, &otherwise).await > TOLERANCE,
            "{name}"
        );
    }
    assert!(
        wrong.is_empty(),
        "`make screenshots` makes them anew: {wrong:#?}"
    );
    tab.close().await;
}
