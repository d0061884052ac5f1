//! Text as builds write it: modules that are compiled and tested one after the other, requests of their tests,
//! downloads, warnings, and digests of what was made.
//!
//! What decides how small such text becomes is how much of it is new. Of 1 KB of the log of `npm install`,
//! `cargo check -vv`, `apt-get install`, `mvn` and `gcc -v`, 0.8 to 4.0 words with a digit have not occurred
//! in the same MiB before, and 1 to 16 other words; lines come in bursts, 1 µs apart, with pauses between.
//! The times of lines here are as random as the worst of those.

use std::fmt::Write as _;

/// What words begin and end with.
const STEMS: [&str; 64] = [
    "cache", "parse", "index", "token", "stream", "buffer", "socket", "session", "record",
    "result", "filter", "search", "render", "layout", "widget", "schema", "column", "query",
    "cursor", "commit", "branch", "merge", "patch", "config", "option", "policy", "role", "grant",
    "secret", "cipher", "digest", "sign", "verify", "upload", "fetch", "retry", "queue", "worker",
    "thread", "signal", "timer", "clock", "metric", "trace", "span", "label", "event", "notify",
    "mail", "invoice", "order", "basket", "price", "stock", "ship", "route", "gate", "proxy",
    "mirror", "volume", "image", "layer", "node", "cluster",
];
const ENDS: [&str; 12] = [
    "", "s", "er", "ing", "ed", "able", "_id", "_key", "_map", "_list", "_state", "_error",
];
/// Modules of the project that is built again and again.
const MODULES: u64 = 600;

/// A build, which goes on for ever.
#[derive(Debug)]
pub struct Build {
    seed: u64,
    /// When the last line was written, in microseconds since 1970.
    time: i64,
    /// Modules that were built.
    done: u64,
    /// Lines of the module that is built.
    ready: Vec<String>,
}

/// A number that says nothing of the one it is made of, by SplitMix64.
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The word of a number, of those that the project has. As in any text, a few words are common.
fn word(number: u64) -> String {
    let of = |all: &[&'static str], number: u64| {
        let (at, most) = (number % 1000, all.len() as u64);
        all[usize::try_from(at * at * most / 1_000_000).unwrap()]
    };
    let number = mixed(number);
    of(&STEMS, number).to_owned() + of(&ENDS, number >> 20)
}

impl Build {
    pub fn new() -> Self {
        Self {
            seed: 7,
            time: 1_772_445_600_000_000,
            done: 0,
            ready: Vec::new(),
        }
    }

    /// A number below `end` that nothing before tells.
    fn dice(&mut self, end: u64) -> u64 {
        self.seed += 1;
        mixed(self.seed) % end
    }

    /// About so many bytes of lines, and the differences of their times; the first is since 1970.
    pub fn lines(&mut self, bytes: usize) -> (Vec<u8>, Vec<i64>) {
        let (mut text, mut times) = (String::with_capacity(bytes + 200), Vec::new());
        let mut before = 0;
        while text.len() < bytes {
            if self.ready.is_empty() {
                self.module();
                self.ready.reverse();
            }
            text += &self.ready.pop().unwrap();
            text.push('\n');
            let most = if self.dice(10) < 7 { 30 } else { 20_000 };
            self.time += i64::try_from(self.dice(most)).unwrap();
            times.push(self.time - before);
            before = self.time;
        }
        (text.into_bytes(), times)
    }

    /// Builds the next module.
    fn module(&mut self) {
        let number = self.done % MODULES;
        let round = self.done / MODULES;
        self.done += 1;
        // What belongs to the module is the same whenever it is built.
        let own = |at: u64| mixed(number << 20 | at);
        let name = format!("{}-{}", word(own(1)), word(own(2)));
        let version = format!("{}.{}.{}", own(3) % 3, own(4) % 30, own(5) % 12);
        let mut lines = std::mem::take(&mut self.ready);
        lines.push(format!(" Downloaded {name} v{version} (registry `mirror`)"));
        lines.push(format!(
            "   Compiling {name} v{version} (/workspace/source/{name})"
        ));
        let files = 6 + own(6) % 20;
        let file = |at: u64| format!("{}_{}", word(own(at * 2 + 100)), word(own(at * 2 + 101)));
        for at in 0..files {
            let file = file(at);
            lines.push(format!(
                "[{}/{files}] cc -O2 -g -Wall -Iinclude/{name} -c src/{name}/{file}.c -o build/{name}/{file}.o",
                at + 1
            ));
            if own(at + 200).is_multiple_of(12) {
                let (line, unused) = (own(at + 300) % 900, word(own(at + 400)));
                lines.push(format!(
                    "src/{name}/{file}.c:{line}:9: warning: unused variable '{unused}' [-Wunused-variable]"
                ));
                lines.push(format!(
                    " {line} |     int {unused} = {}();",
                    word(own(at + 500))
                ));
            }
        }
        let tests = 4 + own(7) % 24;
        for at in 0..tests {
            let case = [0, 1].map(|part| word(own(at * 2 + part + 600))).join("_");
            let tested = file(at * files / tests);
            if self.dice(6) == 0 {
                let (second, milli) = (self.done / 3 % 60, self.dice(1000));
                let (minute, latency) = (self.done / 180 % 60, self.dice(40));
                lines.push(format!(
                    "2026-03-02T10:{minute:02}:{second:02}.{milli:03}Z INFO {name}::client: request finished \
                     method=GET path=/v1/{} status=200 latency={latency}ms",
                    word(own(at + 700))
                ));
            }
            let verdict = if self.dice(200) == 0 { "FAILED" } else { "ok" };
            lines.push(format!("test {tested}::{case} ... {verdict}"));
        }
        lines.push(format!(
            "test result: ok. {tests} passed; 0 failed; 0 ignored; finished in {}.{:02}s",
            self.dice(3),
            self.dice(100)
        ));
        let mut digest = String::new();
        for _ in 0..4 {
            let part = self.dice(u64::MAX);
            write!(digest, "{part:016x}").unwrap();
        }
        lines.push(format!(
            "pushed registry.example/{name}:{version}-{round} sha256:{digest}"
        ));
        lines.push(String::new());
        self.ready = lines;
    }
}
