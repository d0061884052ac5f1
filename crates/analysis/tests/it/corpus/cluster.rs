//! What the API server, the scheduler, the kubelet and registries say.

use super::{Cause, Failure, condition};
use crate::random::Random;

pub(super) const CAUSES: &[Cause] = &[
    |r| {
        condition(
            "TaskRunImagePullFailed",
            format!(
                "The step \"build\" in TaskRun \"{}\" failed to pull the image \"\". The pod errored with the message: \"Back-off pulling image \"registry.example.com/ci/builder:{}-{}\".\"",
                r.run(),
                r.version(),
                r.hex(7)
            ),
        )
    },
    |r| registry(r, "401 Unauthorized"),
    |r| registry(r, "503 Service Unavailable"),
    |r| {
        condition(
            "TaskRunImagePullFailed",
            format!(
                "failed to pull and unpack image \"docker.io/acme/deployer:{tag}\": failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/acme/deployer/manifests/{}: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.",
                r.image(),
                tag = r.version()
            ),
        )
    },
    |r| {
        condition(
            "PodCreationFailed",
            format!(
                "failed to create task run pod \"{}\": admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource Pod/{}/{} was blocked due to the following policies \n\ndisallow-privileged:\n  privileged-containers: 'validation error: privileged mode is disallowed. rule privileged-containers failed at path /spec/containers/{}/securityContext/privileged/'\n. Maybe invalid TaskSpec",
                r.run(),
                r.namespace(),
                r.pod(),
                r.range(0, 5)
            ),
        )
    },
    |r| {
        condition(
            "ExceededResourceQuota",
            format!(
                "TaskRun Pod exceeded available resources: pods \"{}\" is forbidden: exceeded quota: compute, requested: limits.cpu={},limits.memory={}, used: limits.cpu={},limits.memory={}, limited: limits.cpu={},limits.memory={}",
                r.pod(),
                r.cpu(),
                r.quantity(),
                r.cpu(),
                r.quantity(),
                r.cpu(),
                r.quantity()
            ),
        )
    },
    |r| {
        condition(
            "PodCreationFailed",
            format!(
                "failed to create task run pod \"{}\": translating TaskSpec to Pod: serviceaccounts \"deployer\" not found. Maybe missing or invalid Task {}/{}",
                r.run(),
                r.namespace(),
                r.word()
            ),
        )
    },
    unschedulable,
    |r| {
        condition(
            "Pending",
            format!(
                "pod status \"PodScheduled\":\"False\"; message: \"0/{n} nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling.\"",
                n = r.range(3, 90)
            ),
        )
    },
    |r| {
        condition(
            "Failed",
            format!(
                "The node was low on resource: ephemeral-storage. Threshold quantity: {}, available: {}. Container step-build was using {}, request is 0, has larger consumption of ephemeral-storage. ",
                r.range(1_000_000_000, 90_000_000_000),
                r.quantity(),
                r.quantity()
            ),
        )
    },
    |r| {
        condition(
            "PodEvicted",
            format!(
                "The node was low on resource: memory. Threshold quantity: {}, available: {}. Container step-test was using {}, request is {}, has larger consumption of memory. ",
                r.quantity(),
                r.quantity(),
                r.quantity(),
                r.quantity()
            ),
        )
    },
    |r| {
        condition(
            "CreateContainerConfigError",
            format!(
                "failed to create container in pod {}: secret \"npm-token\" not found",
                r.pod()
            ),
        )
    },
    |r| {
        condition(
            "PodCreationFailed",
            format!(
                "Internal error occurred: failed calling webhook \"webhook.pipeline.tekton.dev\": failed to call webhook: Post \"https://tekton-pipelines-webhook.tekton-pipelines.svc:443/defaulting?timeout=10s\": dial tcp {}: connect: connection refused",
                r.socket()
            ),
        )
    },
    |r| {
        condition(
            "PodCreationFailed",
            format!(
                "Internal error occurred: failed calling webhook \"webhook.pipeline.tekton.dev\": failed to call webhook: Post \"https://tekton-pipelines-webhook.tekton-pipelines.svc:443/defaulting?timeout=10s\": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time {} is after {}",
                r.time(),
                r.time()
            ),
        )
    },
    oom,
    |r| {
        condition(
            "NodeLost",
            format!(
                "Node {} which was running pod {} is unresponsive since {}",
                r.node(),
                r.pod(),
                r.time()
            ),
        )
    },
];

fn registry(r: &mut Random, status: &str) -> Failure {
    let tag = r.version();
    let message = format!(
        "Failed to pull image \"quay.example.com/tools/scanner:{tag}\": rpc error: code = Unknown desc = failed to pull and unpack image \"quay.example.com/tools/scanner:{tag}\": failed to resolve reference \"quay.example.com/tools/scanner:{tag}\": unexpected status from HEAD request to https://quay.example.com/v2/tools/scanner/manifests/{tag}: {status}"
    );
    condition("TaskRunImagePullFailed", message)
}

/// The scheduler sorts its reasons by their text, the count first.
fn unschedulable(r: &mut Random) -> Failure {
    let (cpu, taint, selector) = (r.range(1, 30), r.range(1, 30), r.range(1, 30));
    let total = cpu + taint + selector;
    let mut reasons = [
        format!("{cpu} Insufficient cpu"),
        format!("{taint} node(s) had untolerated taint {{dedicated: gpu}}"),
        format!("{selector} node(s) didn't match Pod's node affinity/selector"),
    ];
    reasons.sort();
    let message = format!(
        "pod status \"PodScheduled\":\"False\"; message: \"0/{total} nodes are available: {}. preemption: 0/{total} nodes are available: {cpu} No preemption victims found for incoming pod, {} Preemption is not helpful for scheduling.\"",
        reasons.join(", "),
        taint + selector
    );
    condition("Pending", message)
}

fn oom(r: &mut Random) -> Failure {
    let mut failure = super::step(r, "compile", 137, &[]);
    "OOMKilled".clone_into(
        &mut failure
            .exits
            .iter_mut()
            .find(|exit| exit.0 == "compile")
            .unwrap()
            .2,
    );
    failure.reason = "StepOOM".to_owned();
    failure
}
