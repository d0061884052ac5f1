//! The planner: which access path leads to the rows of a list.

use crate::{
    driver::Reader,
    seam::{Error, ListQuery},
    sql::{
        access_path::{self, AccessPath},
        candidate::{self, IndexCandidate},
        dialect::Dialect,
        labels,
        row::SqlRow as _,
    },
};
use hindsight_filter::model::{ParentPattern, Resource};

/// The access path that was chosen.
pub(super) struct Choice<'q> {
    /// To some of the rows, which is worth going first.
    pub(super) first: Option<AccessPath<'q>>,
    pub(super) path: AccessPath<'q>,
    /// What was considered, with the number of rows as far as they were counted.
    pub(super) considered: Vec<(IndexCandidate<'q>, i64)>,
}

/// Chooses the path to rows that a prefix scan did not find.
pub(super) async fn choose<'q>(
    reader: &mut dyn Reader,
    dialect: Dialect,
    resource: Resource,
    query: &'q ListQuery,
) -> Result<Choice<'q>, Error> {
    let candidates = access_path::candidates(resource, query);
    let mut planner = Planner {
        reader,
        dialect,
        resource,
        query,
        considered: Vec::new(),
    };
    let (first, path) = match dialect {
        Dialect::Sqlite => planner.fewest_rows(&candidates).await?,
        Dialect::Postgres => (None, planner.beside_statistics(candidates).await?),
    };
    Ok(Choice {
        first,
        path,
        considered: planner.considered,
    })
}

struct Planner<'p, 'q> {
    reader: &'p mut dyn Reader,
    dialect: Dialect,
    resource: Resource,
    query: &'q ListQuery,
    considered: Vec<(IndexCandidate<'q>, i64)>,
}

impl<'q> Planner<'_, 'q> {
    /// SQLite keeps no statistics: the index that has the fewest rows, which are counted.
    async fn fewest_rows(
        &mut self,
        candidates: &[IndexCandidate<'q>],
    ) -> Result<(Option<AccessPath<'q>>, AccessPath<'q>), Error> {
        if candidates.is_empty() {
            return Ok((None, self.without_index()));
        }
        let Some((candidate, rows)) = self.fewest(candidates).await? else {
            return Ok((None, AccessPath::DatabaseChoice));
        };
        let candidate = self.rarest_label(candidates, candidate, rows).await?;
        if matches!(candidate, IndexCandidate::Labels(_)) && candidate.is_many(rows) {
            // Their rows would be gathered; in order there are enough soon.
            return Ok((None, self.without_index()));
        }
        let by_time = access_path::by_time(self.query).is_some();
        let first = candidate.is_long(rows, by_time);
        let first = first.then(|| access_path::long_prefix_scan(self.resource, self.query));
        Ok((first.flatten(), AccessPath::Index(candidate)))
    }

    /// The label of which the newest rows reach back farthest, if the fewest rows are those of a
    /// label, and too many to be counted.
    async fn rarest_label(
        &mut self,
        candidates: &[IndexCandidate<'q>],
        fewest: IndexCandidate<'q>,
        rows: i64,
    ) -> Result<IndexCandidate<'q>, Error> {
        let labels = candidates.iter().copied();
        let labels: Vec<_> = labels
            .filter(|one| matches!(one, IndexCandidate::Label(..)))
            .collect();
        if labels.len() < 2 || !fewest.is_many(rows) || !labels.contains(&fewest) {
            return Ok(fewest);
        }
        let Some(row) = self.reader.row(&candidate::reach(&labels)).await? else {
            return Ok(fewest);
        };
        let mut rarest = (i64::MAX, fewest);
        for (at, label) in labels.into_iter().enumerate() {
            let since = row.int(at)?.unwrap_or(i64::MIN);
            if since < rarest.0 {
                rarest = (since, label);
            }
        }
        Ok(rarest.1)
    }

    /// PostgreSQL knows how many rows have a value and chooses among indexes; but it guesses
    /// how many have a label, of which the index is asked in its own way, and knows nothing
    /// of indexed paths.
    async fn beside_statistics(
        &mut self,
        mut candidates: Vec<IndexCandidate<'q>>,
    ) -> Result<AccessPath<'q>, Error> {
        let by_time = access_path::by_time(self.query).is_some();
        let is_led = !candidates.is_empty()
            && self.resource == Resource::Records
            && labels::leads(self.query, by_time);
        candidates
            .retain(|one| !matches!(one, IndexCandidate::Parent(_) | IndexCandidate::Labels(_)));
        let (indexed, others): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .partition(|one| matches!(one, IndexCandidate::Indexed { .. }));
        match self.fewest(&indexed).await? {
            Some((one, rows)) if one.is_surely_few(rows) || others.is_empty() => {
                return Ok(AccessPath::Index(one));
            }
            _ => {}
        }
        // The index of labels knows types.
        let is_other = |one: &IndexCandidate<'_>| {
            !(matches!(one, IndexCandidate::Label(..)) || is_led && one.is_of_type())
        };
        let columns: Vec<_> = others.into_iter().filter(is_other).collect();
        let in_order = columns.iter().any(IndexCandidate::is_in_order);
        if !is_led {
            return Ok(match in_order {
                true => AccessPath::DatabaseChoice,
                false => self.without_index(),
            });
        }
        // Of one parent those that did not go well are few enough.
        let is_small = matches!(self.query.scope.parent, ParentPattern::Exact(_))
            && labels::is_unwell_of_type(self.query);
        if in_order
            && !is_small
            && let Some((one, rows)) = self.fewest(&columns).await?
            && one.is_surely_few(rows)
        {
            return Ok(AccessPath::Index(one));
        }
        if let Some(count) = labels::count_searched(self.query) {
            let row = self.reader.row(&count).await?;
            let labelled = row.map(|row| row.int(0)).transpose()?.flatten();
            if labelled.is_some_and(labels::is_many) {
                return Ok(AccessPath::FullSort);
            }
        }
        Ok(AccessPath::LabelIndex(None))
    }

    fn without_index(&self) -> AccessPath<'q> {
        access_path::without_index(self.dialect, self.resource, self.query)
    }

    /// The candidate with the fewest rows, which are counted as far as that matters.
    async fn fewest(
        &mut self,
        candidates: &[IndexCandidate<'q>],
    ) -> Result<Option<(IndexCandidate<'q>, i64)>, Error> {
        if candidates.is_empty() {
            return Ok(None);
        }
        let count = candidate::count(self.dialect, self.resource, candidates);
        let Some(row) = self.reader.row(&count).await? else {
            return Ok(None);
        };
        let mut counted = Vec::with_capacity(candidates.len());
        for (at, candidate) in candidates.iter().enumerate() {
            counted.push((*candidate, row.int(at)?.unwrap_or(i64::MAX)));
        }
        self.considered.extend(&counted);
        Ok(counted.into_iter().min_by_key(|(_, rows)| *rows))
    }
}
