//! The planner: which access path leads to the rows of a list.

use crate::{
    driver::Reader,
    seam::{Error, ListQuery},
    sql::{
        access_path::{self, AccessPath},
        candidate::{self, IndexCandidate},
        cost,
        dialect::Dialect,
        labels,
        row::SqlRow as _,
        stored_time,
    },
};
use hindsight_filter::model::{ParentPattern, Resource};

/// The access path that was chosen.
pub(super) struct Choice<'q> {
    /// To some of the rows each, which are worth going first.
    pub(super) first: Vec<AccessPath<'q>>,
    pub(super) path: AccessPath<'q>,
    /// Whether several indexes narrow the rows down, which PostgreSQL combines.
    pub(super) combines: bool,
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
    let candidates = access_path::candidates(dialect, resource, query);
    let mut planner = Planner {
        reader,
        dialect,
        resource,
        query,
        combines: false,
        considered: Vec::new(),
    };
    // By these PostgreSQL finds few rows in no order, and does not know how many there are.
    let ranges = candidates
        .iter()
        .copied()
        .find(|one| one.is_prefix() || one.is_of_cluster());
    let (first, path) = match dialect {
        Dialect::Sqlite => planner.fewest_rows(&candidates).await?,
        Dialect::Postgres => (None, planner.beside_statistics(candidates).await?),
    };
    let has_many = match (dialect, path, ranges) {
        (Dialect::Postgres, AccessPath::FullSort, Some(range)) => {
            let counted = planner.fewest(&[range]).await?;
            counted.is_some_and(|(one, rows)| !one.is_surely_few(rows))
        }
        _ => false,
    };
    let few = |one: IndexCandidate<'q>| {
        let counted = planner.considered.iter().find(|(known, _)| *known == one);
        counted.is_some_and(|(_, rows)| one.is_surely_few(*rows))
    };
    let first = match (dialect, path) {
        (Dialect::Postgres, AccessPath::Index(one)) if one.has_own_order() && !few(one) => {
            cost::NEXT_OF
                .map(|rows| AccessPath::NextOf(one, rows))
                .into()
        }
        // The newest are near, unless all of these are old.
        _ if has_many => access_path::long_prefix_scan(dialect, resource, query)
            .into_iter()
            .collect(),
        _ => first.into_iter().collect(),
    };
    Ok(Choice {
        first,
        path,
        combines: planner.combines,
        considered: planner.considered,
    })
}

/// The candidates with their rows, as far as that matters, where choosing among them counted none.
pub(super) async fn counted<'q>(
    reader: &mut dyn Reader,
    dialect: Dialect,
    resource: Resource,
    query: &'q ListQuery,
) -> Result<Vec<(IndexCandidate<'q>, i64)>, Error> {
    let mut planner = Planner {
        reader,
        dialect,
        resource,
        query,
        combines: false,
        considered: Vec::new(),
    };
    let candidates = access_path::candidates(dialect, resource, query);
    planner.fewest(&candidates).await?;
    Ok(planner.considered)
}

struct Planner<'p, 'q> {
    reader: &'p mut dyn Reader,
    dialect: Dialect,
    resource: Resource,
    query: &'q ListQuery,
    combines: bool,
    considered: Vec<(IndexCandidate<'q>, i64)>,
}

impl<'q> Planner<'_, 'q> {
    /// SQLite keeps no statistics: the index whose rows reach farthest in the order of the list, or
    /// that has the fewest, which are counted.
    async fn fewest_rows(
        &mut self,
        candidates: &[IndexCandidate<'q>],
    ) -> Result<(Option<AccessPath<'q>>, AccessPath<'q>), Error> {
        if candidates.is_empty() {
            return Ok((None, self.without_index()));
        }
        let by_time = stored_time::by_time(self.query);
        let is_ordered = |one: &IndexCandidate<'_>| one.has_order() || one.is_search();
        if by_time.is_some()
            && candidates.iter().all(is_ordered)
            && let Some(candidate) = self.farthest(candidates, by_time).await?
        {
            return Ok(self.by_index(candidate, i64::MAX));
        }
        let Some((candidate, rows)) = self.fewest(candidates).await? else {
            return Ok((None, AccessPath::DatabaseChoice));
        };
        // Of a parent, or of what else is asked for, few rows of all that took long are.
        let is_alone = candidates.len() == 1 && by_time.is_some() && candidate.is_of_duration();
        if is_alone && candidate::asks_long(self.query) && rows > cost::model(self.dialect).gathered
        {
            return Ok((None, AccessPath::Index(IndexCandidate::Long)));
        }
        if !candidate.is_many(rows) {
            return Ok(self.by_index(candidate, rows));
        }
        Ok(match self.farthest(candidates, by_time).await? {
            Some(farthest) => self.by_index(farthest, i64::MAX),
            // Their rows would be gathered; in order there are enough soon.
            None if matches!(candidate, IndexCandidate::Labels(_)) => (None, self.without_index()),
            None if matches!(
                candidate,
                IndexCandidate::Names(_) | IndexCandidate::NameParts(_)
            ) && self.without_index() == AccessPath::IndexScan =>
            {
                (None, AccessPath::IndexScan)
            }
            None => self.by_index(candidate, rows),
        })
    }

    /// The path by a candidate of so many rows, and what is worth trying before.
    fn by_index(
        &self,
        candidate: IndexCandidate<'q>,
        rows: i64,
    ) -> (Option<AccessPath<'q>>, AccessPath<'q>) {
        let by_time = stored_time::by_time(self.query).is_some();
        let first = candidate.is_long(rows, by_time);
        let first =
            first.then(|| access_path::long_prefix_scan(self.dialect, self.resource, self.query));
        (first.flatten(), AccessPath::Index(candidate))
    }

    /// The candidate of which the next rows reach farthest, among those that have them in the order
    /// of the list. In another order it is sought among labels and a parent, where there is a label: those whose rows lie
    /// farthest apart are the fewest. None if there are none.
    async fn farthest(
        &mut self,
        candidates: &[IndexCandidate<'q>],
        by_time: Option<bool>,
    ) -> Result<Option<IndexCandidate<'q>>, Error> {
        let fits = |one: &IndexCandidate<'_>| match by_time {
            Some(_) => one.has_order() || one.is_search(),
            None => matches!(one, IndexCandidate::Label(..) | IndexCandidate::Parent(_)),
        };
        let fitting: Vec<_> = candidates.iter().copied().filter(fits).collect();
        let is_other = |one: &&IndexCandidate<'_>| !matches!(one, IndexCandidate::Parent(_));
        match fitting
            .iter()
            .filter(is_other)
            .collect::<Vec<_>>()
            .as_slice()
        {
            [] => return Ok(by_time.and(fitting.first().copied())),
            // Of a parent it has fewer rows than the parent.
            [one] if fitting.len() == 1 || matches!(one, IndexCandidate::ParentType(..)) => {
                return Ok(Some(**one));
            }
            _ => {}
        }
        let descending = by_time.unwrap_or(true);
        let reach = candidate::reach(self.resource, &fitting, descending);
        let Some(row) = self.reader.row(&reach).await? else {
            return Ok(None);
        };
        let mut farthest = None;
        for (at, candidate) in fitting.into_iter().enumerate() {
            // Rows that end before reach farther than any.
            let reach = match (row.int(at)?, descending) {
                (None, _) => i64::MAX,
                (Some(at), true) => at.saturating_neg(),
                (Some(at), false) => at,
            };
            if farthest.is_none_or(|(most, _)| reach > most) {
                farthest = Some((reach, candidate));
            }
        }
        Ok(farthest.map(|(_, candidate)| candidate))
    }

    /// PostgreSQL knows how many rows have a value and chooses among indexes; but it guesses
    /// how many have a label, of which the index is asked in its own way, and knows nothing
    /// of indexed paths.
    async fn beside_statistics(
        &mut self,
        mut candidates: Vec<IndexCandidate<'q>>,
    ) -> Result<AccessPath<'q>, Error> {
        let by_time = stored_time::by_time(self.query).is_some();
        let is_led = !candidates.is_empty()
            && self.resource == Resource::Records
            && labels::leads(self.query, by_time);
        candidates.retain(|one| {
            !matches!(
                one,
                IndexCandidate::Parent(_)
                    | IndexCandidate::Labels(_)
                    | IndexCandidate::Pipeline(_)
                    | IndexCandidate::Took(_)
            )
        });
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
        let own = |one: &IndexCandidate<'_>| one.has_own_order() || one.is_of_duration();
        let rare: Vec<_> = columns.iter().copied().filter(own).collect();
        let is_of_parent = matches!(self.query.scope.parent, ParentPattern::Exact(_));
        self.combines = rare.len() > 1 || is_of_parent;
        if let (false, true, [_, _, ..]) = (is_led, by_time, rare.as_slice())
            && let Some((one, rows)) = self.fewest(&rare).await?
            && one.is_surely_few(rows)
        {
            return Ok(AccessPath::Index(one));
        }
        let ordered = columns.iter().filter(|one| one.has_own_order());
        let ordered = ordered.min_by_key(|one| one.has_values());
        if let (false, true, Some(one)) = (is_led, by_time, ordered) {
            return Ok(AccessPath::Index(*one));
        }
        let is_part = |one: &&IndexCandidate<'_>| matches!(one, IndexCandidate::NameParts(_));
        if let (false, Some(parts)) = (is_led, columns.iter().find(is_part)) {
            return Ok(AccessPath::Index(*parts));
        }
        if !is_led {
            let is_of_type = access_path::is_of_parent_and_type(self.resource, self.query);
            return Ok(match (in_order, is_of_type) {
                (true, _) => AccessPath::DatabaseChoice,
                (false, true) => AccessPath::LabelIndex(None),
                (false, false) => self.without_index(),
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
