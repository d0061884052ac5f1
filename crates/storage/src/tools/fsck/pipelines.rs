//! Looking at pipelines: whether each has as many versions as it says, and is found by its names.

use super::{Check, Finding, Kind, MOST_FOUND};
use crate::{
    seam::Error,
    sql::{dialect::Dialect, pipelines, read::text, row::SqlRow as _},
};

impl Check<'_> {
    pub(super) async fn pipelines(&mut self) -> Result<(), Error> {
        let rows = self
            .snapshot
            .rows(&pipelines::miscounted(MOST_FOUND))
            .await?;
        for row in rows {
            let name = text(&row, 0)?.unwrap_or_default();
            let (says, has) = (row.int(1)?.unwrap_or(0), row.int(2)?.unwrap_or(0));
            let what = format!("it says that it has {says} versions, and has {has}");
            let of = format!("pipelines/{name}");
            self.found(Finding::new(Kind::RowDamaged, of, what));
        }
        if self.snapshot.dialect == Dialect::Sqlite {
            return Ok(());
        }
        let misnamed = pipelines::misnamed(MOST_FOUND);
        for row in self.snapshot.rows(&misnamed).await? {
            let of = format!("pipelines/{}", text(&row, 0)?.unwrap_or_default());
            let what = "pipeline_names does not have what it is called";
            self.found(Finding::new(Kind::RowDamaged, of, what.to_owned()));
        }
        Ok(())
    }
}
