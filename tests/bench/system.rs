//! What the system says of a process, and its end in order.

use std::{
    fs,
    process::{Child, Command},
    time::Duration,
};

/// A line of `/proc/PID/status` in KiB: `VmRSS:`, or `VmHWM:` for the most that was ever resident.
pub fn memory_kib(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The processor time that a process took, of which `/proc` tells in hundredths of a second.
pub fn used(process: u32, with_ended_children: bool) -> Duration {
    let Some(fields) = fields(process) else {
        return Duration::ZERO;
    };
    let until = if with_ended_children { 15 } else { 13 };
    let ticks: u64 = fields[11..until].iter().sum();
    Duration::from_millis(ticks * 10)
}

/// The numbers of `/proc/PID/stat` from the state on, which is no number and counts as 0.
pub fn fields(process: u32) -> Option<Vec<u64>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let numbers = fields.split_whitespace();
    Some(numbers.map(|field| field.parse().unwrap_or(0)).collect())
}

/// Asks a process to end, and waits until it has ended in order.
pub async fn stop(mut child: Child) {
    let id = child.id().to_string();
    Command::new("kill").args(["-TERM", &id]).status().unwrap();
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
    let ended = ended.await.unwrap();
    assert!(ended.success(), "a process ended with {ended}");
}
