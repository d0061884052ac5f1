//! Finding the rows of a list.

use crate::{
    driver::{Purpose, Reader},
    seam::{Error, ListQuery},
    sql::{
        cells::{Cells as _, Row},
        dialect::Dialect,
        labels,
        lead::{self, Lead},
        list::{self, Part},
        read::Weigh,
        statement::Statement,
        stretch::Stretch,
        way::{self, Way},
    },
};
use hindsight_filter::model::Resource;
use hindsight_filter::order::KeyValue;

/// Finds rows of one list.
pub(super) struct Finder<'f, T> {
    pub(super) reader: &'f mut dyn Reader,
    pub(super) dialect: Dialect,
    pub(super) resource: Resource,
    pub(super) query: &'f ListQuery,
    /// Whether all is read as of one moment already.
    pub(super) in_transaction: bool,
    pub(super) read: &'f (dyn Fn(&Row) -> Result<T, Error> + Sync),
}

impl<'f, T: Send + Weigh> Finder<'f, T> {
    /// Adds rows of one part until the page is full.
    pub(super) async fn fill(&mut self, part: Part, page: &mut Vec<T>) -> Result<(), Error> {
        let Some(limit) = self.left(page) else {
            return Ok(());
        };
        if let Some(near) = way::near(self.dialect, self.resource, self.query) {
            let found = self.rows(self.query, part, near, limit).await?;
            if self.is_enough(&found, limit) {
                page.extend(found);
                return Ok(());
            }
            if let Some(all) = self.all_near(part, near, limit, found).await? {
                page.extend(all);
                return Ok(());
            }
        }
        let found = choose(self.reader, self.dialect, self.resource, self.query).await?;
        if let Some(before) = found.before {
            let farther = self.rows(self.query, part, before, limit).await?;
            if self.is_enough(&farther, limit) {
                page.extend(farther);
                return Ok(());
            }
        }
        if let (Way::Labels(None), Some(descending)) = (found.way, way::by_time(self.query)) {
            return self.stretch_by_stretch(descending, page).await;
        }
        page.extend(self.rows(self.query, part, found.way, limit).await?);
        Ok(())
    }

    /// How many rows the page still takes.
    fn left(&self, page: &[T]) -> Option<i64> {
        let taken = i64::try_from(page.len()).expect("a page is smaller than an i64");
        Some(i64::from(self.query.limit.get()) - taken).filter(|left| *left > 0)
    }

    fn is_enough(&self, found: &[T], limit: i64) -> bool {
        let bytes: usize = found.iter().map(Weigh::bytes).sum();
        i64::try_from(found.len()).is_ok_and(|rows| rows >= limit)
            || self.query.max_bytes.is_some_and(|most| bytes >= most)
    }

    /// Adds rows with labels until the page is full, those of one stretch of time after the other.
    async fn stretch_by_stretch(
        &mut self,
        descending: bool,
        page: &mut Vec<T>,
    ) -> Result<(), Error> {
        let Some(span) = self.reader.row(&labels::span(self.query)).await? else {
            return Ok(());
        };
        let (Some(mut first), Some(mut last)) = (span.int(0)?, span.int(1)?) else {
            return Ok(());
        };
        let after = self.query.after.as_ref();
        if let Some(Some(KeyValue::Int(after))) = after.and_then(|row| row.keys.first()) {
            match descending {
                true => last = last.min(*after),
                false => first = first.max(*after),
            }
        }
        for part in (Stretch { first, last }).parts(descending) {
            let bytes = page.iter().map(Weigh::bytes).sum();
            let (Some(limit), Some(rest)) = (self.left(page), list::rest(self.query, bytes)) else {
                break;
            };
            let way = Way::Labels(Some(part));
            page.extend(self.rows(&rest, Part::With, way, limit).await?);
        }
        Ok(())
    }

    /// The rows that were `found` near if none are beyond; as of one moment, because rows that
    /// go meanwhile would bring others near that were not looked at.
    async fn all_near(
        &mut self,
        part: Part,
        near: Way<'_>,
        limit: i64,
        found: Vec<T>,
    ) -> Result<Option<Vec<T>>, Error> {
        let beyond = list::beyond_near(self.dialect, self.resource, self.query, part, near);
        if self.exists(&beyond).await? {
            return Ok(None);
        }
        if self.in_transaction {
            return Ok(Some(found));
        }
        self.reader.begin(Purpose::List).await?;
        let all = match self.exists(&beyond).await? {
            true => None,
            false => Some(self.rows(self.query, part, near, limit).await?),
        };
        self.reader.end().await?;
        Ok(all)
    }

    /// Whether a statement gives a row.
    async fn exists(&mut self, statement: &Statement) -> Result<bool, Error> {
        Ok(self.reader.row(statement).await?.is_some())
    }

    /// The rows of a list.
    async fn rows(
        &mut self,
        query: &ListQuery,
        part: Part,
        way: Way<'_>,
        limit: i64,
    ) -> Result<Vec<T>, Error> {
        let statement = list::list(self.dialect, self.resource, query, part, way, limit)?;
        let mut rows = Vec::new();
        let read = self.read;
        let mut take = |row: Row| {
            rows.push(read(&row)?);
            Ok(())
        };
        self.reader.each(&statement, &mut take).await?;
        Ok(rows)
    }
}

/// A way to rows that are not near.
pub(super) struct Found<'q> {
    /// To some, which is worth going first.
    pub(super) before: Option<Way<'q>>,
    /// To all.
    pub(super) way: Way<'q>,
}

impl<'q> From<Way<'q>> for Found<'q> {
    fn from(way: Way<'q>) -> Self {
        Self { before: None, way }
    }
}

/// The way to rows that are not near.
pub(super) async fn choose<'q>(
    reader: &mut dyn Reader,
    dialect: Dialect,
    resource: Resource,
    query: &'q ListQuery,
) -> Result<Found<'q>, Error> {
    let leads = way::indexes(resource, query);
    let mut counter = Counter {
        reader,
        dialect,
        resource,
    };
    match dialect {
        Dialect::Sqlite => fewest(&mut counter, query, &leads).await,
        Dialect::Postgres => beside_statistics(&mut counter, query, leads).await,
    }
}

/// On SQLite, which keeps no statistics, the index that has the fewest rows.
async fn fewest<'q>(
    counter: &mut Counter<'_>,
    query: &'q ListQuery,
    leads: &[Lead<'q>],
) -> Result<Found<'q>, Error> {
    let resource = counter.resource;
    if leads.is_empty() {
        return Ok(way::unled(Dialect::Sqlite, resource, query).into());
    }
    let Some((lead, count)) = counter.best(leads).await? else {
        return Ok(Way::Any.into());
    };
    let before = lead.is_long(count).then(|| way::farther(resource, query));
    Ok(Found {
        before: before.flatten(),
        way: Way::By(lead),
    })
}

/// PostgreSQL knows how many rows have a value and chooses among indexes; but it guesses how many
/// have a label, of which the index is asked in its own way, and knows nothing of promoted fields.
async fn beside_statistics<'q>(
    counter: &mut Counter<'_>,
    query: &'q ListQuery,
    mut leads: Vec<Lead<'q>>,
) -> Result<Found<'q>, Error> {
    leads.retain(|lead| !matches!(lead, Lead::Parent(_)));
    let (promoted, leads): (Vec<Lead<'_>>, Vec<Lead<'_>>) = leads
        .into_iter()
        .partition(|lead| matches!(lead, Lead::Promoted { .. }));
    match counter.best(&promoted).await? {
        Some((lead, rows)) if lead.is_surely_few(rows) || leads.is_empty() => {
            return Ok(Way::By(lead).into());
        }
        _ => {}
    }
    let (labels, columns): (Vec<Lead<'_>>, Vec<Lead<'_>>) = leads
        .into_iter()
        .partition(|lead| matches!(lead, Lead::Label(..)));
    let in_order = columns.iter().any(Lead::is_in_order);
    if labels.is_empty() {
        return Ok(match in_order {
            true => Way::Any.into(),
            false => way::unled(Dialect::Postgres, counter.resource, query).into(),
        });
    }
    if in_order
        && let Some((lead, rows)) = counter.best(&columns).await?
        && lead.is_surely_few(rows)
    {
        return Ok(Way::By(lead).into());
    }
    if let Some(count) = labels::count_searched(query) {
        let row = counter.reader.row(&count).await?;
        let labelled = row.map(|row| row.int(0)).transpose()?.flatten();
        if labelled.is_some_and(labels::is_many) {
            return Ok(Way::Sorted.into());
        }
    }
    Ok(Way::Labels(None).into())
}

/// Counts rows.
struct Counter<'r> {
    reader: &'r mut dyn Reader,
    dialect: Dialect,
    resource: Resource,
}

impl Counter<'_> {
    /// The lead with the fewest rows, which are counted up to some.
    async fn best<'q>(&mut self, leads: &[Lead<'q>]) -> Result<Option<(Lead<'q>, i64)>, Error> {
        if leads.is_empty() {
            return Ok(None);
        }
        let count = lead::count(self.dialect, self.resource, leads);
        let Some(row) = self.reader.row(&count).await? else {
            return Ok(None);
        };
        let counted = (0..leads.len()).map(|at| Ok(row.int(at)?.unwrap_or(i64::MAX)));
        let counted: Vec<i64> = counted.collect::<Result<_, Error>>()?;
        Ok(lead::best(leads, &counted))
    }
}
