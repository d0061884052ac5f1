//! The web UI in a real browser: what is reached by keys and by mouse, what stored text may not do, what
//! assistive technology is told, and how pages look.

mod chromium;
mod drip;
mod hands;
mod tab;

mod axe;
mod flows;
mod hostile;
mod layout;
mod logs;
mod names;
mod screenshots;
mod scriptless;
mod stage;
mod weight;

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use crate::support::database::variable;
use chromium::Chromium;
use tab::Tab;

/// The one browser of this process. Without one it says so, or fails where skipping is forbidden.
fn browser() -> Option<Arc<Chromium>> {
    static BROWSER: OnceLock<Result<Arc<Chromium>, String>> = OnceLock::new();
    let start = || {
        let program = variable("HINDSIGHT_TEST_CHROMIUM").unwrap_or("chromium".to_owned());
        // In memory where that is to be had: profiles and the database of the stage are written a lot.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            memory
        } else {
            Path::new(env!("CARGO_TARGET_TMPDIR"))
        };
        Chromium::start(&program, folder).map(Arc::new)
    };
    match BROWSER.get_or_init(start) {
        Ok(browser) => Some(Arc::clone(browser)),
        Err(error) => {
            assert!(
                variable("HINDSIGHT_FORBID_SKIP").is_none(),
                "no browser: {error}; `make chromium` installs one"
            );
            eprintln!("skipped in the browser: {error}");
            None
        }
    }
}

/// A tab for a server that has the runs of the demo, at a time that stands still.
async fn staged() -> Option<Tab> {
    let browser = browser()?;
    let url = stage::url(browser.folder());
    Some(Tab::open(&browser, &url).await)
}

/// The expression for the link or button with this text.
fn named(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('a, button')].find((it) => it.textContent.trim() === '{text}')"
    )
}
