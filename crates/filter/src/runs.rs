//! Which records are of runs.

use hindsight_run::DEFINITIONS;

/// A filter for the records of runs: of objects of whatever kind, declared ones too, that are
/// neither definitions nor what Tekton Results keeps beside runs (logs, lists of events).
pub fn run_filter() -> String {
    let definitions: Vec<_> = DEFINITIONS
        .iter()
        .map(|kind| format!("'{}'", kind.data_type()))
        .collect();
    format!(
        "data_type.contains('/') && !data_type.startsWith('results.tekton.dev/') && \
         !(data_type in [{}])",
        definitions.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, condition::Ability, model::Resource};

    #[test]
    fn runs_are_told_by_columns() {
        let filter = Filter::compile(&run_filter(), Resource::Records).unwrap();
        assert!(!filter.split(&|_| Ability::Exact).residual);
    }
}
