//! What the system says of a process, and its end in order.

use std::process::{Child, Command};

/// Ticks of the clock in a second, by which the system counts the time of processes.
const TICKS: f64 = 100.0;

/// A line of `/proc/PID/status` in KiB: `VmRSS:`, or `VmHWM:` for the most that was ever resident.
pub fn memory_kib(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Seconds of processors that a process took.
pub fn cpu(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks: f64 = [fields[11], fields[12]]
        .map(|field| field.parse::<f64>().unwrap())
        .iter()
        .sum();
    ticks / TICKS
}

/// Asks a process to end, and waits until it has ended in order.
pub async fn stop(mut child: Child) {
    let id = child.id().to_string();
    Command::new("kill").args(["-TERM", &id]).status().unwrap();
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
    let ended = ended.await.unwrap();
    assert!(ended.success(), "a process ended with {ended}");
}
