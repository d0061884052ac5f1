//! What scripts and tools of pipelines print in Jobs and steps whose status says only that they failed.

use super::{Cause, Failure, lines, noise, step};
use crate::random::Random;

pub(super) const CAUSES: &[Cause] = &[
    unset_variable,
    disk_full,
    |r| {
        migration(
            r,
            "column \"discount\" of relation \"orders\" already exists",
        )
    },
    |r| migration(r, "relation \"invoices\" does not exist"),
    merge_conflict,
    |r| helm(r, "timed out waiting for the condition"),
    |r| {
        helm(
            r,
            "another operation (install/upgrade/rollback) is in progress",
        )
    },
    registry_denied,
    |r| jest(r, "Checkout › adds the shipping fee"),
    |r| jest(r, "Login › locks the account after five attempts"),
    lint,
    smoke_test,
];

/// A Job whose pods all failed.
fn job(random: &mut Random, lines: &[String]) -> Failure {
    Failure {
        reason: "BackoffLimitExceeded".to_owned(),
        message: "Job has reached the specified backoff limit".to_owned(),
        exits: Vec::new(),
        log: noise::log(random, lines),
    }
}

fn unset_variable(r: &mut Random) -> Failure {
    let text = [
        format!("+ cd {}", r.directory()),
        format!("+ ./deploy.sh {}", r.uuid()),
        format!(
            "./deploy.sh: line {}: REGISTRY_TOKEN: unbound variable",
            r.range(3, 90)
        ),
    ];
    step(r, "deploy", 1, &text)
}

fn disk_full(r: &mut Random) -> Failure {
    let text = [
        format!("copying {} files", r.range(10, 9000)),
        format!(
            "cp: error writing '{}/cache-{}.tar': No space left on device",
            r.directory(),
            r.hex(8)
        ),
    ];
    job(r, &text)
}

fn migration(r: &mut Random, error: &str) -> Failure {
    let text = [
        format!("applying migration {}_orders.sql", r.range(1000, 9999)),
        format!(
            "ERROR:  {error} (connection {}, after {} ms)",
            r.address(),
            r.range(1, 900)
        ),
        "1 migration failed, nothing was changed".to_owned(),
    ];
    job(r, &text)
}

fn merge_conflict(r: &mut Random) -> Failure {
    let text = [
        format!("From https://git.example/{}/{}", r.word(), r.word()),
        format!(" * branch            {} -> FETCH_HEAD", r.hex(40)),
        "CONFLICT (content): Merge conflict in config/settings.yaml".to_owned(),
        "Automatic merge failed; fix conflicts and then commit the result.".to_owned(),
    ];
    step(r, "merge", 1, &text)
}

fn helm(r: &mut Random, error: &str) -> Failure {
    let text = [
        format!(
            "upgrade.go:{}: [debug] preparing upgrade for shop",
            r.range(100, 300)
        ),
        format!(
            "wait.go:{}: [debug] beginning wait for {} resources",
            r.range(20, 90),
            r.range(2, 40)
        ),
        format!("Error: UPGRADE FAILED: {error}"),
    ];
    step(r, "upgrade", 1, &text)
}

fn registry_denied(r: &mut Random) -> Failure {
    let text = [
        format!("{}: Preparing", r.hex(12)),
        format!("{}: Waiting", r.hex(12)),
        "denied: requested access to the resource is denied".to_owned(),
    ];
    step(r, "push", 1, &text)
}

fn jest(r: &mut Random, test: &str) -> Failure {
    let text = [
        format!(
            "FAIL src/{}.test.ts ({}.{} s)",
            "shop",
            r.range(1, 60),
            r.range(100, 999)
        ),
        format!("  ● {test}"),
        format!(
            "Error: {test}: assertion failed after {} ms",
            r.range(1, 5000)
        ),
        format!(
            "Tests:       1 failed, {} passed, {} total",
            r.range(10, 900),
            r.range(10, 901)
        ),
    ];
    step(r, "unit", 1, &text)
}

fn lint(r: &mut Random) -> Failure {
    let text = [
        format!("{}/src/cart.ts", r.directory()),
        format!(
            "  {}:{}  error  'total' is assigned a value but never used  no-unused-vars",
            r.range(1, 900),
            r.range(1, 80)
        ),
        "✖ 1 problem (1 error, 0 warnings)".to_owned(),
    ];
    step(r, "lint", 1, &text)
}

fn smoke_test(r: &mut Random) -> Failure {
    let mut text = lines(["waiting for the service"]);
    text.push(format!("attempt {} of 30", r.range(1, 30)));
    text.push(format!(
        "smoke test failed: GET https://shop-{}.example/healthz gave 503, expected 200",
        r.hex(6)
    ));
    job(r, &text)
}
