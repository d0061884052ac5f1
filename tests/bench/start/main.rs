//! What the start of `hindsight` costs: user and system time of commands that ask no server.
//!
//! `make bench-start` runs it. It fails if a command takes more than 20 ms of processor time.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that meets the unexpected stops"
)]

use std::process::{Command, Stdio};

/// Starts that are measured together, because the kernel counts in hundredths of a second.
const STARTS: u32 = 200;
const MOST_MILLIS: f64 = 20.0;

/// Hundredths of a second that finished children of this process took: `cutime` and `cstime` in `/proc/self/stat`.
fn ticks() -> u32 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<_> = fields.split_whitespace().collect();
    fields[13..15]
        .iter()
        .map(|it| it.parse::<u32>().unwrap())
        .sum()
}

fn main() {
    let mut slow = Vec::new();
    for line in [
        "--version",
        "--help",
        "runs --help",
        "runs failed --show-filter",
    ] {
        let before = ticks();
        for _ in 0..STARTS {
            let status = Command::new(env!("CARGO_BIN_EXE_hindsight"))
                .args(line.split(' '))
                .env_clear()
                .stdout(Stdio::null())
                .status();
            assert!(status.unwrap().success(), "{line}");
        }
        let millis = f64::from(ticks() - before) * 10.0 / f64::from(STARTS);
        println!("hindsight {line}: {millis:.1} ms of processor time");
        if millis > MOST_MILLIS {
            slow.push(line);
        }
    }
    assert!(slow.is_empty(), "more than {MOST_MILLIS} ms: {slow:?}");
}
