//! What the watcher remembers of each run. It has a process of its own, because memory that
//! another test gave back would be used again and not be seen.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use hindsight_run::{Kind, SummaryPolicy, View, upload};
use hindsight_watcher::ledger::Ledger;
use serde_json::json;

const RUNS: usize = 100_000;

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_stored_run_is_remembered_in_less_than_two_kibibytes() {
    let now = "2026-03-01T10:00:00Z".parse().unwrap();
    let mut ledger = Ledger::new();
    let before = resident_kib();
    for n in 0..RUNS {
        let owner = format!("10000000-0000-4000-8000-{n:012}");
        let run = json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {
                "name": format!("build-of-some-length-{n}"), "namespace": "team-of-some-length",
                "uid": format!("00000000-0000-4000-8000-{n:012}"),
                "resourceVersion": n.to_string(),
                "ownerReferences": [{"kind": "PipelineRun", "name": "p", "uid": owner}],
            },
            "status": {"completionTime": "2026-03-01T10:05:00Z", "conditions": [
                {"type": "Succeeded", "status": "True", "reason": "Succeeded"}]},
        });
        let kind = Kind::of(&run).unwrap();
        let sent = upload(&View::new(&run), None, &SummaryPolicy::default()).unwrap();
        let (uid, entry) = ledger.saw(kind, &View::new(&run), 1, now).unwrap();
        entry
            .remembered
            .stored(&sent.grouping.record, &View::new(&run));
        entry.reconciled = Some(n.to_string().as_str().into());
        ledger.share(&uid);
    }
    let bytes = resident_kib().saturating_sub(before) * 1024 / RUNS;
    println!("{bytes} bytes a run");
    // Far less would mean that nothing was measured; and the allocator keeps as much again.
    assert!((200..1024).contains(&bytes), "{bytes} bytes a run");
    assert_eq!(ledger.len(), RUNS);
}
