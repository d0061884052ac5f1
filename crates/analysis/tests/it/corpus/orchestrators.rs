//! What Tekton, Argo, Jobs, custom tasks and Ray say of runs.

use super::{Cause, Failure, condition};
use crate::random::Random;

pub(super) const CAUSES: &[Cause] = &[
    |r| {
        condition(
            "TaskRunTimeout",
            format!(
                "TaskRun \"{}\" failed to finish within \"{}\"",
                r.run(),
                r.go_duration()
            ),
        )
    },
    |r| {
        condition(
            "PipelineRunTimeout",
            format!(
                "PipelineRun \"{}\" failed to finish within \"{}\"",
                r.run(),
                r.go_duration()
            ),
        )
    },
    |r| {
        condition(
            "TaskRunCancelled",
            format!(
                "TaskRun \"{}\" was cancelled. TaskRun cancelled as the PipelineRun it belongs to has been cancelled.",
                r.run()
            ),
        )
    },
    tasks_failed,
    |r| {
        condition(
            "TaskRunTimeout",
            format!(
                "\"step-integration\" exited because the step exceeded the specified timeout limit; for logs run: kubectl -n {} logs {} -c step-integration\n",
                r.namespace(),
                r.pod()
            ),
        )
    },
    |r| {
        condition(
            "ParameterMissing",
            format!(
                "PipelineRun {ns}/{} parameters is missing some parameters required by Pipeline {ns}/{}: pipelineRun missing parameters: [revision]",
                r.run(),
                r.word(),
                ns = r.namespace()
            ),
        )
    },
    |r| {
        condition(
            "ParameterMissing",
            format!(
                "PipelineRun {ns}/{} parameters is missing some parameters required by Pipeline {ns}/{}: pipelineRun missing parameters: [image-url]",
                r.run(),
                r.word(),
                ns = r.namespace()
            ),
        )
    },
    |r| {
        condition(
            "CouldntGetTask",
            format!(
                "Pipeline {}/{} can't be Run; it contains Tasks that don't exist: Couldn't retrieve Task \"sonar-scan\": tasks.tekton.dev \"sonar-scan\" not found",
                r.namespace(),
                r.word()
            ),
        )
    },
    |r| {
        condition(
            "TaskRunResolutionFailed",
            format!(
                "error requesting remote resource: error getting \"Git\" \"{}/git-{}\": error resolving repository: git clone error: Cloning into '{}'...\nfatal: could not read Username for 'https://gitlab.example.com': No such device or address: exit status 128",
                r.namespace(),
                r.hex(32),
                r.directory()
            ),
        )
    },
    |r| {
        condition(
            "InvalidTaskResultReference",
            format!(
                "invalid result reference in pipeline task \"{}\": unable to find result referenced by param \"digest\" in \"build-image\"; Could not find result with name digest for task run {}",
                "deploy",
                r.run()
            ),
        )
    },
    |r| {
        condition(
            "CustomRunTimeout",
            format!(
                "CustomRun \"{}\" failed to finish within \"{}\"",
                r.run(),
                r.go_duration()
            ),
        )
    },
    |r| {
        condition(
            "Failed",
            format!(
                "ApprovalTask {}/{} was rejected by {}@example.com at {}",
                r.namespace(),
                r.run(),
                r.word(),
                r.time()
            ),
        )
    },
    |r| {
        condition(
            "DeadlineExceeded",
            format!(
                "Pod {}/{} was active on the node longer than the specified deadline",
                r.namespace(),
                r.pod()
            ),
        )
    },
    |r| {
        condition(
            "BackoffLimitExceeded",
            format!(
                "Job {}/{} has reached the specified backoff limit after {} failed pods",
                r.namespace(),
                r.run(),
                r.range(2, 9)
            ),
        )
    },
    argo_artifact,
    |r| {
        condition(
            "Error",
            format!(
                "Error (exit code 64): failed to load parameter {}: open /tmp/outputs/{}: no such file or directory, workflow {}-{}",
                "commit-sha",
                "commit-sha",
                r.word(),
                r.range(1_000_000_000, 4_000_000_000)
            ),
        )
    },
    ray_memory,
    |r| {
        condition(
            "JobFailed",
            format!(
                "The actor died because its node has died. Node Id: {}\n\tthe actor's node was terminated unexpectedly: health check failed due to missing too many heartbeats\n\tclass_name: Trainer\n\tactor_id: {}\n\tpid: {}\n\tnamespace: {}\n\tip: {}",
                r.hex(56),
                r.hex(32),
                r.range(100, 70_000),
                r.uuid(),
                r.ip()
            ),
        )
    },
    ray_job,
];

fn tasks_failed(r: &mut Random) -> Failure {
    let (failed, skipped) = (r.range(1, 4), r.range(0, 5));
    let message = format!(
        "Tasks Completed: {} (Failed: {failed}, Cancelled 0), Skipped: {skipped}",
        failed + r.range(0, 9)
    );
    condition("Failed", message)
}

fn argo_artifact(r: &mut Random) -> Failure {
    let message = format!(
        "Error (exit code 1): failed to put file: Access Denied., RequestId: {}, HostId: {}=, key {}/{}/main.log",
        r.upper(16),
        r.base64(75),
        r.word(),
        r.run()
    );
    condition("Error", message)
}

fn ray_memory(r: &mut Random) -> Failure {
    let total = r.range(16, 256);
    let used = r.between(0.951, 0.999);
    let message = format!(
        "Task was killed due to the node running low on memory.\nMemory on the node (IP: {}, ID: {}) where the task (task ID: {}, name=preprocess, pid={}, memory used={:.2}GB) was running was {:.2}GB / {total}.00GB ({used:.6}), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: {}) because it was the most recently scheduled task; to see more information about memory usage on this node, use `ray logs raylet.out -ip {}`. To see the logs of the worker, use `ray logs worker-{}*out -ip {}.",
        r.ip(),
        r.hex(56),
        r.hex(48),
        r.range(100, 70_000),
        r.between(0.5, 40.0),
        f64::from(u32::try_from(total).unwrap()) * used,
        r.hex(56),
        r.ip(),
        r.hex(56),
        r.ip()
    );
    condition("JobFailed", message)
}

fn ray_job(r: &mut Random) -> Failure {
    let progress: Vec<String> = (0..r.range(2, 9))
        .map(|epoch| {
            format!(
                "(train_epoch pid={}, ip={}) epoch {epoch} loss {:.5}",
                r.range(100, 70_000),
                r.ip(),
                r.unit()
            )
        })
        .collect();
    let message = format!(
        "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n{}\nTraceback (most recent call last):\n  File \"{}/train.py\", line {}, in <module>\n    main()\n  File \"/home/ray/anaconda3/lib/python3.{}/site-packages/ray/_private/worker.py\", line {}, in get\n    raise value.as_instanceof_cause()\nray.exceptions.RayTaskError(ValueError): ray::train_epoch() (pid={}, ip={})\n  File \"{}/train.py\", line {}, in train_epoch\n    raise ValueError(f\"loss became NaN\")\nValueError: loss became NaN in step {}\n",
        progress.join("\n"),
        r.directory(),
        r.range(10, 300),
        r.range(8, 13),
        r.range(500, 3000),
        r.range(100, 70_000),
        r.ip(),
        r.directory(),
        r.range(10, 300),
        r.range(10, 100_000)
    );
    condition("AppFailed", message)
}
