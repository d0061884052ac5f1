//! What the steps of failed and of the newest task runs of the showcase wrote.

use hindsight_client::Client;
use hindsight_proto::v1::{AppendLogRequest, LogLines, LogSource};
use jiff::Timestamp;
use serde_json::Value;

/// So many of the newest objects have logs also if they did not fail.
const NEWEST: usize = 150;

/// Stores the logs of `objects`, the oldest of which is first.
pub(crate) async fn store(client: &Client, objects: &[Value]) -> anyhow::Result<()> {
    let newest = objects.len().saturating_sub(NEWEST);
    let logs: Vec<_> = objects
        .iter()
        .enumerate()
        .filter(|(at, run)| {
            let condition = &run["status"]["conditions"][0];
            run["kind"] == "TaskRun" && (*at >= newest || condition["status"] == "False")
        })
        .flat_map(|(_, run)| steps(run))
        .collect();
    client
        .logs()
        .append_log(futures::stream::iter(logs))
        .await?;
    Ok(())
}

/// The whole log of each step that ended.
fn steps(run: &Value) -> Vec<AppendLogRequest> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &run["metadata"];
    let name = format!(
        "{}/results/{}/logs/{}",
        text(&object["namespace"]),
        text(&object["ownerReferences"][0]["uid"]),
        text(&object["uid"])
    );
    let steps = run["status"]["steps"].as_array().into_iter().flatten();
    let ended = steps.filter_map(|step| {
        let ended = &step["terminated"];
        let time = |field: &str| ended[field].as_str()?.parse::<Timestamp>().ok();
        let (began, over) = (time("startedAt")?, time("finishedAt")?);
        let step = text(&step["name"]);
        let lines = match ended["exitCode"].as_i64() {
            Some(0) => wrote(run, &step),
            _ => broke(run, &step),
        };
        let each = (over.as_microsecond() - began.as_microsecond()) / (lines.len() as i64 + 1);
        let times = (0..lines.len()).map(|line| match line {
            0 => began.as_microsecond(),
            _ => each,
        });
        Some(AppendLogRequest {
            name: name.clone(),
            source: Some(LogSource {
                pod: format!("{}-pod", text(&object["name"])),
                container: format!("step-{step}"),
                restart: 0,
            }),
            lines: Some(LogLines {
                first_line: 0,
                times: times.collect(),
                text: lines.concat().into_bytes(),
                holes: Vec::new(),
            }),
            seal: true,
        })
    });
    ended.collect()
}

fn wrote(run: &Value, step: &str) -> Vec<String> {
    let task = run["spec"]["taskRef"]["name"].as_str().unwrap_or("task");
    if step == "prepare" {
        return ["fetching 214 files", "214 files, 18.4 MiB", "ready"]
            .map(|line| format!("{line}\n"))
            .to_vec();
    }
    let mut lines = vec![format!("\u{1b}[1mrunning {task}\u{1b}[0m\n")];
    lines.extend((1..=40).map(|n| format!("\u{1b}[32mok\u{1b}[0m   {task}/part_{n:02}\n")));
    lines.push("40 parts, none failed\n".to_owned());
    lines
}

/// Much that went well, and at the end what the condition says.
fn broke(run: &Value, step: &str) -> Vec<String> {
    let mut lines = wrote(run, step);
    lines.pop();
    let message = run["status"]["conditions"][0]["message"].as_str();
    let message = message.unwrap_or("failed");
    let message = message.split_once(": ").map_or(message, |(_, why)| why);
    for line in message.lines() {
        lines.push(format!("\u{1b}[31mFAIL {line}\u{1b}[0m\n"));
    }
    lines.push("1 part failed; see above\n".to_owned());
    lines
}
