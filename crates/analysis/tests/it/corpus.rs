//! Failures of 77 causes, as the programs concerned print them. Each seed draws 50 of these.
//!
//! The texts are written after what Tekton, Argo, Kubernetes, Ray, compilers and test runners
//! print, not after what the normaliser knows. Whatever differs from run to run is drawn anew for
//! each failure: names, ids, times, addresses, numbers, directories, the noise around the error and
//! its order, and how much of the log is left. What belongs to the cause is constant.

mod builds;
mod cluster;
mod noise;
mod orchestrators;
mod programs;
mod scripts;

use crate::random::Random;

/// What is known of one failure.
#[derive(Debug, Default, Clone)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Names, codes and reasons of steps that ended.
    pub(crate) exits: Vec<(String, i32, String)>,
    pub(crate) log: String,
}

pub(crate) type Cause = fn(&mut Random) -> Failure;

/// All causes, of which a seed draws some.
pub(crate) fn causes() -> Vec<Cause> {
    [
        orchestrators::CAUSES,
        cluster::CAUSES,
        builds::CAUSES,
        programs::CAUSES,
        scripts::CAUSES,
    ]
    .concat()
}

/// Causes of failures whose status says only that a program failed: only the end of its log tells them apart.
pub(crate) fn causes_in_logs() -> Vec<Cause> {
    [builds::CAUSES, programs::CAUSES, scripts::CAUSES].concat()
}

/// A failure of which there is only a condition.
fn condition(reason: &str, message: String) -> Failure {
    Failure {
        reason: reason.to_owned(),
        message,
        ..Failure::default()
    }
}

/// A TaskRun of which a step ended with `code` after it had printed `lines`.
fn step(random: &mut Random, name: &str, code: i32, lines: &[String]) -> Failure {
    let container = format!("step-{name}");
    let message = if random.chance(0.5) {
        format!(
            "\"{container}\" exited with code {code} (image: \"docker.io/{}/{}@{}\"); for logs \
             run: kubectl -n {} logs {} -c {container}\n",
            random.word(),
            random.word(),
            random.image(),
            random.namespace(),
            random.pod()
        )
    } else {
        format!("\"{container}\" exited with code {code}: Error")
    };
    let mut exits = Vec::new();
    if random.chance(0.6) {
        exits.push(("prepare".to_owned(), 0, "Completed".to_owned()));
    }
    exits.push((name.to_owned(), code, "Error".to_owned()));
    if random.chance(0.4) {
        exits.push(("upload".to_owned(), 1, "Skipped".to_owned()));
    }
    Failure {
        reason: "Failed".to_owned(),
        message,
        exits,
        log: noise::log(random, lines),
    }
}

/// Texts of lines.
fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
    lines.map(str::to_owned).to_vec()
}
