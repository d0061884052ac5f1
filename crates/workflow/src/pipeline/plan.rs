//! What a PipelineRun asks for: its pipeline with parameters filled in, or why it is refused.

use serde_json::Value;

use super::{
    check,
    features::unsupported,
    params::{fill_task, scope},
    run::PipelineRun,
    spec::{Pipeline, Refusal},
};

/// The pipeline of a PipelineRun that is to start, as its status has it: with parameters and what is known of
/// the run in the place of variables.
pub(super) fn resolved(run: &PipelineRun) -> Result<(Value, Pipeline), Refusal> {
    let features = unsupported(&run.spec);
    let features: Vec<String> = features
        .into_iter()
        .map(|path| format!("{path}: is not supported in delegated PipelineRuns"))
        .collect();
    Refusal::unless_none("UnsupportedFeature", &features)?;
    check::run(run)?;
    let mut spec = run.spec["pipelineSpec"].clone();
    let pipeline = Pipeline::read(&spec)?;
    check::graph(&pipeline)?;
    check::rules(&pipeline)?;
    let scope = scope(run, &pipeline.params)?;
    let tasks = spec["tasks"].as_array_mut().into_iter().flatten();
    for (index, task) in tasks.enumerate() {
        let path = format!("spec.pipelineSpec.tasks[{index}]");
        fill_task(task, run, &scope, &path)?;
    }
    let pipeline = Pipeline::read(&spec)?;
    // A parameter may bring a variable with it.
    check::graph(&pipeline)?;
    check::results(&pipeline)?;
    Ok((spec, pipeline))
}
