//! A headless Chromium that is spoken to over a pipe, in the DevTools protocol.
//!
//! It listens on no port, reaches this machine alone, and ends with the process that started it: the pipe
//! is closed then, and the shell around it removes its folder.

use std::{
    collections::HashMap,
    io::{BufReader, Write as _},
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// How long one command, or one page, may take on a machine that does other things too.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Always the same fonts, colours and zone, no sandbox (tests run as root in containers, and pages are those
/// of this repository), and no name but that of this machine.
const FLAGS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    // Back is a page that is loaded, and events tell when.
    "--disable-features=BackForwardCache,Translate,MediaRouter,OptimizationHints",
    "--disable-lcd-text",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--lang=en-US",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/// One family of fonts, whatever else the machine has, so that texts are as wide on each.
const FONTS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>/usr/share/fonts/truetype/dejavu</dir>
<cachedir prefix="xdg">fontconfig</cachedir>
<selectfont><rejectfont><glob>*Serif*</glob></rejectfont><rejectfont><glob>*Condensed*</glob></rejectfont></selectfont>
<match target="pattern"><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>
<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
<alias><family>ui-monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
<alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>system-ui</family><prefer><family>DejaVu Sans</family></prefer></alias>
</fontconfig>
"#;

/// What the browser says by itself about a page.
#[derive(Debug)]
pub struct Event {
    pub method: String,
    pub params: Value,
}

type Answer = Result<Value, String>;

#[derive(Debug, Default)]
struct Listening {
    answers: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    pages: Mutex<HashMap<String, mpsc::UnboundedSender<Event>>>,
}

/// A running browser.
#[derive(Debug)]
pub struct Chromium {
    folder: PathBuf,
    input: Mutex<ChildStdin>,
    next: AtomicU64,
    listening: Arc<Listening>,
}

impl Chromium {
    /// Starts `program` with a profile below `folder`; fails with a text that says why it does not start.
    pub fn start(program: &str, folder: &Path) -> Result<Self, String> {
        let version = Command::new(program).arg("--version").output();
        version.map_err(|error| format!("{program}: {error}"))?;
        let home = folder.join(format!("hindsight-chromium-{}", std::process::id()));
        std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        let fonts = home.join("fonts.conf");
        std::fs::write(&fonts, FONTS).map_err(|error| format!("{}: {error}", fonts.display()))?;
        // The protocol is on descriptors 3 and 4, each message ended by a NUL.
        let mut child = Command::new("sh")
            .args(["-c", r#"home=$1; shift; "$@" 3<&0 4>&1 </dev/null >/dev/null 2>"$home/log"; rm -rf "$home""#])
            .arg("chromium")
            .arg(&home)
            .arg(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", home.display()))
            .env("HOME", &home)
            .env("FONTCONFIG_FILE", fonts)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("sh: {error}"))?;
        let input = child.stdin.take().ok_or("no pipe")?;
        let output = child.stdout.take().ok_or("no pipe")?;
        let listening = Arc::new(Listening::default());
        let heard = Arc::clone(&listening);
        std::thread::spawn(move || heard.listen(BufReader::new(output)));
        Ok(Self {
            folder: home,
            input: Mutex::new(input),
            next: AtomicU64::new(1),
            listening,
        })
    }

    /// Where its profile is; it is removed when the browser has ended.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends a command, to the browser or a session of it; what comes back is its answer.
    pub fn send(&self, session: &str, method: &str, params: &Value) -> oneshot::Receiver<Answer> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.listening.answers.lock().unwrap().insert(id, answer);
        let mut message = json!({"id": id, "method": method, "params": params});
        if !session.is_empty() {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        // A browser that has ended drops the answers that are waited for.
        let written = self.input.lock().unwrap().write_all(&bytes);
        if written.is_err() {
            self.listening.answers.lock().unwrap().clear();
        }
        answered
    }

    /// The answer to a command to the browser.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.send("", method, &params);
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{method} takes longer than {PATIENCE:?}"));
        let answer = answer.unwrap_or_else(|_| panic!("{method}: the browser has ended"));
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// What the browser says in this session from now on.
    pub fn listen_to(&self, session: &str) -> mpsc::UnboundedReceiver<Event> {
        let (event, events) = mpsc::unbounded_channel();
        let mut pages = self.listening.pages.lock().unwrap();
        pages.insert(session.to_owned(), event);
        events
    }

    /// No longer listens to a session.
    pub fn forget(&self, session: &str) {
        self.listening.pages.lock().unwrap().remove(session);
    }
}

impl Listening {
    fn listen(&self, mut output: impl std::io::BufRead) {
        let mut message = Vec::new();
        while output
            .read_until(0, &mut message)
            .is_ok_and(|read| read > 0)
        {
            message.pop();
            if let Ok(value) = serde_json::from_slice::<Value>(&message) {
                self.hear(value);
            }
            message.clear();
        }
        self.answers.lock().unwrap().clear();
        self.pages.lock().unwrap().clear();
    }

    fn hear(&self, mut message: Value) {
        if let Some(id) = message["id"].as_u64() {
            let waiting = self.answers.lock().unwrap().remove(&id);
            let answer = match message.get("error") {
                Some(error) => Err(error.to_string()),
                None => Ok(message["result"].take()),
            };
            // Who asked may have given up.
            drop(waiting.map(|waiting| waiting.send(answer)));
            return;
        }
        let session = message["sessionId"].as_str().unwrap_or_default();
        let pages = self.pages.lock().unwrap();
        if let Some(page) = pages.get(session) {
            let event = Event {
                method: message["method"].as_str().unwrap_or_default().to_owned(),
                params: message["params"].take(),
            };
            drop(page.send(event));
        }
    }
}
