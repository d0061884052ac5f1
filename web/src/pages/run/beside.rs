//! The runs of the same pipeline that began before and after a run.

use hindsight_proto::v1alpha2::Record;
use jiff::Timestamp;

use super::Facts;
use crate::ask::Ask;
use crate::pages::series::{Moment, Series, parent_of};
use crate::time::timestamp;

/// Addresses; empty where there is none.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) older: String,
    pub(super) newer: String,
    /// The page of the pipeline with this run in its middle.
    pub(super) among: String,
}

impl Beside {
    /// Those beside a run that began at `start`, if it is one of a pipeline. What cannot be read is left
    /// out, as the page has the run without it.
    pub(super) async fn of(
        ask: &Ask,
        stored: Option<&Record>,
        facts: Option<&Facts>,
        start: Option<Timestamp>,
    ) -> Self {
        let named = facts.and_then(|facts| Some((facts, facts.listed.as_ref()?)));
        let (Some(record), Some((facts, (of, name))), Some(start)) = (stored, named, start) else {
            return Self::default();
        };
        let Some(stored) = timestamp(record.create_time) else {
            return Self::default();
        };
        let (series, parent) = (Series { of: *of, name }, parent_of(&record.name));
        let moment = Moment { start, stored };
        // The run itself is among those before it, and others may have begun at once with it.
        let place = (parent, facts.namespace.as_str());
        let Ok(around) = series.around(ask, place, moment, 2).await else {
            return Self::default();
        };
        let is_run_of_it = around.before.iter().any(|run| run.record == record.name);
        if !is_run_of_it {
            return Self::default();
        }
        let older = around.before.iter().find(|run| run.record != record.name);
        let link = |run: Option<&hindsight_proto::v1::RunRow>| {
            run.map_or_else(String::new, |run| ask.links.run(&run.record))
        };
        Self {
            older: link(older),
            newer: link(around.after.first()),
            among: ask
                .links
                .pipeline_around(*of, parent, &facts.namespace, name, &record.name),
        }
    }
}
