//! The log of a real build: what cargo and the compilers that it starts say, line by line as it comes, with the
//! time at which each line came.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How long the build may take; what it said until then is a log as well.
const LONGEST: Duration = Duration::from_secs(90);
/// Most text, which is less than a message may have.
const MOST: usize = 3 << 20;

/// Text of a build that begins from nothing, and the differences of the times of its lines.
pub fn captured() -> (Vec<u8>, Vec<i64>) {
    let folder = tempfile::tempdir().unwrap();
    let command = format!(
        "exec {} check -vv --locked --offline --color=always -p hindsight-client 2>&1",
        env!("CARGO")
    );
    let mut child = Command::new("timeout")
        .args([&LONGEST.as_secs().to_string(), "sh", "-c", &command])
        .env("CARGO_TARGET_DIR", folder.path())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let (mut text, mut times, mut before) = (Vec::new(), Vec::new(), 0);
    let began = Instant::now();
    while text.len() < MOST && from.read_until(b'\n', &mut text).unwrap() > 0 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_micros()).unwrap();
        times.push(now - before);
        before = now;
    }
    drop(from);
    drop(child.kill());
    child.wait().unwrap();
    eprintln!(
        "captured {} KiB of a build in {:.0} s",
        text.len() >> 10,
        began.elapsed().as_secs_f64()
    );
    assert!(text.len() > 20 << 10, "{}", String::from_utf8_lossy(&text));
    (text, times)
}
