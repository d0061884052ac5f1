//! What stands around an error in a log.

use crate::random::Random;

/// A log that ends with `lines` or a little after, of which perhaps only the end is left.
pub(super) fn log(random: &mut Random, lines: &[String]) -> String {
    let mut all: Vec<String> = (0..random.range(3, 40)).map(|_| line(random)).collect();
    random.shuffle(&mut all);
    all.extend_from_slice(lines);
    for _ in 0..random.range(0, 3) {
        all.push(after(random));
    }
    let stamped = random.chance(0.4);
    let mut log = String::new();
    for line in &all {
        if stamped {
            log.push_str(&random.time());
            log.push(' ');
        }
        log.push_str(line);
        log.push('\n');
    }
    if random.chance(0.5) {
        // As `tail -c` leaves it: the first line has lost its beginning.
        let kept: usize = lines.iter().map(|line| line.len() + 40).sum();
        let kept = kept + usize::try_from(random.range(100, 2000)).unwrap();
        let mut from = log.len().saturating_sub(kept);
        while !log.is_char_boundary(from) {
            from += 1;
        }
        log.drain(..from);
    }
    log
}

/// A line of a program that does its work.
fn line(random: &mut Random) -> String {
    let word = random.word();
    match random.range(0, 20) {
        0 => format!(
            "[INFO] Downloading from central: https://repo.maven.apache.org/maven2/org/{word}/{word}-{}.jar",
            random.version()
        ),
        1 => format!("Collecting {word}=={}", random.version()),
        2 => format!(
            "time=\"{}\" level=info msg=\"{word} started\" pid={}",
            random.time(),
            random.range(1, 70_000)
        ),
        3 => format!("+ make -C {} {word}", random.directory()),
        4 => format!(
            "Step {}/{} : RUN {word}",
            random.range(1, 9),
            random.range(9, 14)
        ),
        5 => format!(
            "npm WARN deprecated {word}@{}: this package is no longer supported",
            random.version()
        ),
        6 => format!(
            "Fetched {}.{} MB in {}s ({} kB/s)",
            random.range(1, 300),
            random.range(0, 9),
            random.range(1, 30),
            random.range(100, 9000)
        ),
        7 => format!(
            "{} {}% |{}| {}/{} [{}<{}]",
            word,
            random.range(1, 100),
            "#".repeat(7),
            random.range(1, 500),
            500,
            random.seconds(),
            random.seconds()
        ),
        8 => format!(
            "I{} controller.go:{}] synced {word}/{}",
            random.klog(),
            random.range(20, 900),
            random.suffix()
        ),
        9 => format!(
            "{} DEBUG [{word}] cache hit for {}",
            random.log_time(),
            random.hex(40)
        ),
        number => of_services(random, word, number),
    }
}

/// More lines of that sort.
fn of_services(random: &mut Random, word: &str, number: u64) -> String {
    match number {
        10 => format!(
            "WARNING: Retrying (Retry(total={}, connect=None)) after connection broken by 'ReadTimeoutError': /simple/{word}/",
            random.range(0, 5)
        ),
        11 => format!(
            "{} [main] INFO  com.acme.{word}.Application - request {} took {}",
            random.log_time(),
            random.uuid(),
            random.seconds()
        ),
        12 => format!(
            "   Compiling {word} v{} ({})",
            random.version(),
            random.directory()
        ),
        13 => format!("ok  \tgithub.com/acme/{word}\t{}", random.seconds()),
        14 => format!(
            "{{\"level\":\"info\",\"ts\":{}.{},\"msg\":\"checked {word}\",\"failed\":0}}",
            random.range(1_700_000_000, 1_800_000_000),
            random.range(0, 1000)
        ),
        15 => format!("test {word}::works ... ok"),
        16 => format!(
            "GET https://{word}.example.com/v1/items?id={} 200 {}",
            random.range(1, 99_999),
            random.seconds()
        ),
        17 => format!(
            "drwxr-xr-x {} root root {} May {} 12:{:02} {word}",
            random.range(1, 20),
            random.range(10, 9000),
            random.range(1, 29),
            random.range(0, 60)
        ),
        18 => String::new(),
        _ => format!(
            "{} removing intermediate container {}",
            random.go_time(),
            random.hex(12)
        ),
    }
}

/// A line that comes after the error: cleaning up.
fn after(random: &mut Random) -> String {
    match random.range(0, 4) {
        0 => format!("removed '{}'", random.directory()),
        1 => format!(
            "real\t{}m{}.{:03}s",
            random.range(0, 50),
            random.range(0, 60),
            random.range(0, 1000)
        ),
        2 => format!(
            "{} INFO shutting down after {}",
            random.log_time(),
            random.seconds()
        ),
        _ => "Uploading artifacts...".to_owned(),
    }
}
