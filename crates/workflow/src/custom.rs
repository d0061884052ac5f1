//! Workflows as custom tasks of Tekton (TEP-0061): a CustomRun, or a Run of Tekton's older form, that names
//! our kind is carried out by a workflow that it controls.
//!
//! As everything in this crate it is pure: what is wrong with a run, which workflow is created for it, and
//! what is to be done next.

pub mod crd;
mod form;
mod manifest;
mod owned;
mod params;
mod pass;
mod rules;
mod run;
mod run_status;

pub use form::Form;
pub use manifest::attempt_name;
pub use owned::Owned;
pub use pass::{Next, OwnedSeen, Pass, TemplateSeen};
pub use rules::{check_run, check_task, embedded_spec, is_custom_task};
pub use run::{CustomRun, EmbeddedRunSpec, Param, RunSpec, TaskRef};
pub use run_status::{Claim, RunStatus};

pub(crate) use run::optional;

/// Label of a workflow: name of the run that controls it, cut to 63 characters.
pub const RUN_LABEL: &str = "hindsight.dev/custom-run";
/// Label of a workflow: UID of the run that controls it.
pub const RUN_UID_LABEL: &str = "hindsight.dev/custom-run-uid";
/// How annotations of a workflow begin that become results of the run, under the rest of their names.
pub const RESULT_PREFIX: &str = "results.hindsight.dev/";
