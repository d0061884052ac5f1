//! Comparing the target with the source once all is copied.

use super::{Copy, Event, Source, held::Version};
use crate::{
    seam::Error,
    tools::fsck::{self, Depth, Finding, Kind, fsck},
};

impl Copy<'_> {
    /// Looks for each row of the source in the target, by all that is kept of it and the SHA-256
    /// of its payload; and rebuilds and hashes every payload of the target.
    pub(super) async fn verify(&mut self, source: &mut dyn Source) -> Result<(), Error> {
        let (results, records) = source.totals().await?;
        source.rewind();
        self.stage("compared", results + records);
        while let Some(page) = source.results().await? {
            let names: Vec<_> = page.rows.iter().map(|result| &result.name).collect();
            let held = self.held.results(&names).await?;
            for result in &page.rows {
                self.compare(
                    &result.name.to_string(),
                    held.get(&result.name) == Some(result),
                );
            }
            (self.tell)(Event::Seen(page.count));
        }
        while let Some(page) = source.outlines().await? {
            let names: Vec<_> = page.rows.iter().map(|outline| &outline.name).collect();
            let held = self.held.records(&names).await?;
            for (outline, there) in page.rows.iter().zip(held) {
                let there = there.and_then(|there| there.record);
                self.compare(
                    &outline.name.to_string(),
                    there == Some(Version::of(outline)),
                );
            }
            (self.tell)(Event::Seen(page.count));
        }
        self.compare_pipelines(source).await?;
        self.held.snapshot.refresh().await?;
        let tell = &mut *self.tell;
        let mut told = |event| match event {
            fsck::Event::Stage { what, total } => tell(Event::Stage { what, total }),
            fsck::Event::Seen(more) => tell(Event::Seen(more)),
            fsck::Event::Found(finding) => tell(Event::Found(finding)),
        };
        fsck(&mut self.held.snapshot, Depth::Full, &mut told).await?;
        Ok(())
    }

    /// Of a row that was refused, it was said already that it differs.
    pub(super) fn compare(&mut self, of: &str, is_same: bool) {
        if is_same {
            self.outcome.verified += 1;
            return;
        }
        if !self.refused.contains(of) {
            let what = "the target does not hold it as the source does";
            (self.tell)(Event::Found(Finding::new(Kind::CopyDiffers, of, what)));
        }
    }
}
