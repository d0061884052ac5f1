//! Copying pipelines and their versions. They have no time of change, so what the target has under the same id is kept,
//! and said where it differs.

use super::{Copy, Count, Event, Said, Source};
use crate::seam::{Error, PipelineKey, PipelineRow, VersionRow};

/// What became of a row.
enum Fate {
    Created,
    Unchanged,
    Refused(&'static str),
}

const DIFFERS: Fate = Fate::Refused("the target has another state of it, which was kept");
const TAKEN: Fate = Fate::Refused("the target has another of this name, which was kept");
const BELOW: Fate = Fate::Refused("its pipeline was refused");

impl Copy<'_> {
    /// Copies pipelines, each with its versions.
    pub(super) async fn pipelines(&mut self, source: &mut dyn Source) -> Result<(), Error> {
        let total = source.pipeline_total().await?;
        if total == 0 {
            return Ok(());
        }
        self.stage("pipelines", total);
        while let Some(page) = source.pipelines().await? {
            for pipeline in &page {
                let fate = self.pipeline(pipeline).await?;
                self.pipeline_became(fate, || pipeline_name(pipeline));
                for id in source.version_ids(&pipeline.id).await? {
                    if let Some(version) = source.version(&pipeline.id, &id).await? {
                        let fate = self.version(&version).await?;
                        self.pipeline_became(fate, || version_name(pipeline, &version));
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks for each pipeline and version of the source in the target.
    pub(super) async fn compare_pipelines(&mut self, source: &mut dyn Source) -> Result<(), Error> {
        while let Some(page) = source.pipelines().await? {
            for pipeline in &page {
                let held = self.pipelines.pipeline(PipelineKey::Id(&pipeline.id));
                let is_same = held.await?.as_ref() == Some(pipeline);
                self.compare(&pipeline_name(pipeline), is_same);
                for id in source.version_ids(&pipeline.id).await? {
                    if let Some(version) = source.version(&pipeline.id, &id).await? {
                        let held = self.pipelines.version(&pipeline.id, &id).await?;
                        let is_same = held.as_ref() == Some(&version);
                        self.compare(&version_name(pipeline, &version), is_same);
                    }
                }
            }
        }
        Ok(())
    }

    async fn pipeline(&self, pipeline: &PipelineRow) -> Result<Fate, Error> {
        match self
            .pipelines
            .pipeline(PipelineKey::Id(&pipeline.id))
            .await?
        {
            Some(held) if held == *pipeline => Ok(Fate::Unchanged),
            Some(_) => Ok(DIFFERS),
            None => created(self.pipelines.create_pipeline(pipeline, None).await),
        }
    }

    async fn version(&self, version: &VersionRow) -> Result<Fate, Error> {
        let held = self.pipelines.version(&version.pipeline_id, &version.id);
        match held.await? {
            Some(held) if held == *version => Ok(Fate::Unchanged),
            Some(_) => Ok(DIFFERS),
            None => created(self.pipelines.create_version(version).await),
        }
    }

    fn pipeline_became(&mut self, fate: Fate, of: impl Fn() -> String) {
        let Count {
            created,
            unchanged,
            refused,
            ..
        } = &mut self.outcome.pipelines;
        match fate {
            Fate::Created => *created += 1,
            Fate::Unchanged => *unchanged += 1,
            Fate::Refused(why) => {
                *refused += 1;
                let (of, why) = (of(), why.to_owned());
                self.refused.insert(of.clone());
                (self.tell)(Event::Refused(Said { of, why }));
            }
        }
        (self.tell)(Event::Seen(1));
    }
}

fn created(outcome: Result<(), Error>) -> Result<Fate, Error> {
    match outcome {
        Ok(()) => Ok(Fate::Created),
        Err(Error::Exists(_)) => Ok(TAKEN),
        Err(Error::Missing(_)) => Ok(BELOW),
        Err(error) => Err(error),
    }
}

fn pipeline_name(pipeline: &PipelineRow) -> String {
    match pipeline.namespace.as_str() {
        "" => format!("pipelines/{}", pipeline.name),
        namespace => format!("{namespace}/pipelines/{}", pipeline.name),
    }
}

fn version_name(pipeline: &PipelineRow, version: &VersionRow) -> String {
    format!("{}/versions/{}", pipeline_name(pipeline), version.name)
}
