//! Lists of pipelines and of versions: pages by key, and how many rows pass.

use crate::{
    seam::{
        PipelineColumn, PipelineComparison, PipelineQuery, PipelineScope, PipelineTest,
        PipelineValue,
    },
    sql::{
        dialect::Dialect,
        statement::{Bind, Statement},
        trigrams,
    },
};

/// What a row is ordered by, and its id.
pub(crate) type Place = (PipelineValue, String);

/// SQLite refuses patterns of 50,000 bytes.
const LONGEST_PATTERN: usize = 10_000;

/// So many next rows in order are looked at, before all short rows are.
const NEAR: i64 = 2000;

/// How rows are found that have a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Each row is looked at, which is fastest where most have it.
    Scan,
    /// By the trigrams of short rows.
    Trigrams,
}

/// Whether trigrams tell which short rows may pass.
pub(crate) fn has_trigrams(query: &PipelineQuery) -> bool {
    sought(query).is_some()
}

/// Whether the short rows of PostgreSQL have all that a list asks of pipelines.
pub(crate) fn is_by_names(dialect: Dialect, query: &PipelineQuery) -> bool {
    let has = |(column, test): &(PipelineColumn, PipelineTest)| match (column, test) {
        (PipelineColumn::Name | PipelineColumn::DisplayName, PipelineTest::Substring(part)) => {
            is_pattern(part)
        }
        (column, PipelineTest::Compare(..)) => *column == PipelineColumn::CreatedAt,
        _ => false,
    };
    dialect == Dialect::Postgres
        && matches!(query.scope, PipelineScope::Namespace(_))
        && query.tests.iter().all(has)
}

/// Appends the table of rows that are counted or numbered, and that they pass.
fn passing(
    out: &mut Statement,
    dialect: Dialect,
    query: &PipelineQuery,
    pipeline: i64,
    parts: Parts,
) {
    match &query.scope {
        PipelineScope::Namespace(namespace) if is_by_names(dialect, query) => {
            match sought(query).filter(|_| parts == Parts::Trigrams) {
                None => out.push(" FROM pipeline_names"),
                Some((column, part)) => with_trigrams(out, column, &part),
            };
            out.push(" WHERE namespace = ").bind(namespace.as_str());
            tests(out, dialect, query, true);
        }
        scope => {
            from(out, scope, pipeline);
            tests(out, dialect, query, false);
        }
    }
}

/// The table of a scope; of versions, the row of their pipeline is known.
fn from(out: &mut Statement, scope: &PipelineScope, pipeline: i64) {
    match scope {
        PipelineScope::Namespace(namespace) => {
            out.push(" FROM pipelines WHERE namespace = ")
                .bind(namespace.as_str());
        }
        PipelineScope::Pipeline(_) => {
            out.push(" FROM pipeline_versions WHERE pipeline_row = ")
                .bind(pipeline);
        }
    }
}

/// The statement that counts the rows that pass; after a place in the order, if one is given.
pub(crate) fn count(
    dialect: Dialect,
    query: &PipelineQuery,
    pipeline: i64,
    after: Option<&Place>,
    parts: Parts,
) -> Statement {
    let mut out = Statement::new("SELECT count(*)");
    match after {
        None => passing(&mut out, dialect, query, pipeline, parts),
        Some(_) => {
            from(&mut out, &query.scope, pipeline);
            tests(&mut out, dialect, query, false);
            beyond(&mut out, dialect, query, after);
        }
    }
    out.planned_anew()
}

/// The statement that gives the numbers of rows that pass, in no order.
pub(crate) fn row_ids(
    dialect: Dialect,
    query: &PipelineQuery,
    pipeline: i64,
    most: i64,
    parts: Parts,
) -> Statement {
    let mut out = Statement::new("SELECT row_id");
    passing(&mut out, dialect, query, pipeline, parts);
    out.push(" LIMIT ").bind(most);
    out.planned_anew()
}

/// The statement for a page, as [`page`] gives it, of pipelines that pass among the next [`NEAR`] in order. PostgreSQL alone.
pub(crate) fn near(query: &PipelineQuery) -> Statement {
    let dialect = Dialect::Postgres;
    let mut out = Statement::new("SELECT id, bytes, ");
    key(&mut out, dialect, query);
    out.push(" FROM (SELECT id, bytes, name, display_name, create_s");
    from(&mut out, &query.scope, 0);
    beyond(&mut out, dialect, query, query.after.as_ref());
    ordered(&mut out, dialect, query);
    out.push(" LIMIT ").bind(NEAR).push(") AS near WHERE TRUE");
    tests(&mut out, dialect, query, false);
    ordered(&mut out, dialect, query);
    limited(&mut out, query);
    out.planned_anew()
}

/// The same of all pipelines that pass, in the order of time, each with how many these are. PostgreSQL alone.
pub(crate) fn counted_page(query: &PipelineQuery, parts: Parts) -> Statement {
    let dialect = Dialect::Postgres;
    let mut out = Statement::new("WITH passed AS MATERIALIZED (SELECT id, create_s");
    passing(&mut out, dialect, query, 0, parts);
    out.push(") SELECT id, bytes, create_s, total FROM (SELECT id AS next FROM passed WHERE TRUE");
    beyond(&mut out, dialect, query, query.after.as_ref());
    ordered(&mut out, dialect, query);
    limited(&mut out, query);
    out.push(") AS page JOIN pipelines ON id = next CROSS JOIN (SELECT count(*) AS total FROM passed) AS all_passed");
    ordered(&mut out, dialect, query);
    out.planned_anew()
}

/// The statement that gives ids of the next rows that pass, how many bytes each has, and by what it is ordered. Which rows
/// these are is looked for in an index alone, as far as one has the columns.
pub(crate) fn page(dialect: Dialect, query: &PipelineQuery, pipeline: i64) -> Statement {
    let mut out = shown(dialect, query);
    out.push("id IN (SELECT id");
    from(&mut out, &query.scope, pipeline);
    tests(&mut out, dialect, query, false);
    beyond(&mut out, dialect, query, query.after.as_ref());
    ordered(&mut out, dialect, query);
    limited(&mut out, query);
    out.push(")");
    ordered(&mut out, dialect, query);
    out.planned_anew()
}

/// The same of rows with these numbers.
pub(crate) fn ids_in(dialect: Dialect, query: &PipelineQuery, rows: Vec<i64>) -> Statement {
    let mut out = shown(dialect, query);
    out.push("row_id");
    dialect.one_of(&mut out, false, Bind::Ints(rows));
    beyond(&mut out, dialect, query, query.after.as_ref());
    ordered(&mut out, dialect, query);
    limited(&mut out, query);
    out.planned_anew()
}

/// The beginning of a statement for rows that a page needs.
fn shown(dialect: Dialect, query: &PipelineQuery) -> Statement {
    let mut out = Statement::new("SELECT id, bytes, ");
    key(&mut out, dialect, query);
    out.push(match query.scope {
        PipelineScope::Namespace(_) => " FROM pipelines WHERE ",
        PipelineScope::Pipeline(_) => " FROM pipeline_versions WHERE ",
    });
    out
}

/// Appends that rows come after a place in the order.
fn beyond(out: &mut Statement, dialect: Dialect, query: &PipelineQuery, place: Option<&Place>) {
    let Some((value, id)) = place else {
        return;
    };
    let than = if query.descending { " < " } else { " > " };
    if query.order == PipelineColumn::Id {
        out.push(" AND id").push(than).bind(id.as_str());
        return;
    }
    out.push(" AND (");
    key(out, dialect, query);
    out.push(", id)").push(than).push("(");
    out.bind(bound(value)).push(", ");
    out.bind(id.as_str()).push(")");
}

fn ordered(out: &mut Statement, dialect: Dialect, query: &PipelineQuery) {
    out.push(" ORDER BY ");
    if query.order != PipelineColumn::Id {
        key(out, dialect, query);
        out.push(if query.descending { " DESC, " } else { ", " });
    }
    out.push(if query.descending { "id DESC" } else { "id" });
}

/// Appends where the page ends. One row more than is wanted tells whether more follow.
fn limited(out: &mut Statement, query: &PipelineQuery) {
    out.push(" LIMIT ").bind(i64::from(query.limit) + 1);
}

/// Appends what rows are ordered by. Names are shorter than what orders compare, so that indexes give their order.
fn key(out: &mut Statement, dialect: Dialect, query: &PipelineQuery) {
    let column = name(&query.order);
    match query.order {
        PipelineColumn::Description | PipelineColumn::Spec => {
            let (before, between) = dialect.first();
            let chars = i64::try_from(query.order_chars).unwrap_or(i64::MAX);
            out.push(before).push(column).push(between).bind(chars);
            out.push(match dialect {
                Dialect::Sqlite => ")",
                Dialect::Postgres => "::integer)",
            });
        }
        _ => {
            out.push(column);
        }
    }
}

fn name(column: &PipelineColumn) -> &'static str {
    match column {
        PipelineColumn::Id => "id",
        PipelineColumn::Name => "name",
        PipelineColumn::DisplayName => "display_name",
        PipelineColumn::CreatedAt => "create_s",
        PipelineColumn::Description => "description",
        PipelineColumn::Namespace => "namespace",
        PipelineColumn::Spec => "spec",
        PipelineColumn::Tag(_) => "tags",
    }
}

fn bound(value: &PipelineValue) -> Bind {
    match value {
        PipelineValue::Number(number) => (*number).into(),
        PipelineValue::Text(text) => text.as_str().into(),
    }
}

/// Appends what rows have to pass, of the short ones or others.
fn tests(out: &mut Statement, dialect: Dialect, query: &PipelineQuery, short: bool) {
    for (column, test) in &query.tests {
        out.push(" AND ");
        match (column, test) {
            (PipelineColumn::Tag(tag), test) => tagged(out, dialect, &query.scope, tag, test),
            (column, PipelineTest::Compare(how, value)) => {
                out.push(name(column)).push(sign(*how)).bind(bound(value));
            }
            (column, PipelineTest::In(values)) => {
                out.push(name(column));
                one_of(out, values);
            }
            (column, PipelineTest::Substring(part)) => {
                has_part(out, dialect, short, name(column), part);
            }
        }
    }
}

/// Appends that a column has this text in it, whichever the case of ASCII letters, which short rows are without.
fn has_part(out: &mut Statement, dialect: Dialect, short: bool, column: &'static str, part: &str) {
    if !is_pattern(part) {
        out.push(dialect.position())
            .push("lower(")
            .push(column)
            .push("), ");
        out.bind(part.to_ascii_lowercase().as_str()).push(") > 0");
        return;
    }
    // That of SQLite ignores this case.
    match short || dialect == Dialect::Sqlite {
        true => out.push(column),
        false => out.push("lower(").push(column).push(")"),
    };
    let mut pattern = "%".to_owned();
    for c in part.to_ascii_lowercase().chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    out.push(" LIKE ")
        .bind(pattern.as_str())
        .push(" ESCAPE '\\'");
}

/// The longest part that is looked for, by its trigrams. What other parts there are is compared in the rows that have these.
fn sought(query: &PipelineQuery) -> Option<(&PipelineColumn, String)> {
    let parts = query.tests.iter().filter_map(|(column, test)| match test {
        PipelineTest::Substring(part) => Some((column, trigrams::end(part)?.to_ascii_lowercase())),
        _ => None,
    });
    parts.max_by_key(|(_, part)| part.chars().count())
}

/// Appends the short rows that have the trigrams of a part.
fn with_trigrams<'o>(
    out: &'o mut Statement,
    column: &PipelineColumn,
    part: &str,
) -> &'o mut Statement {
    out.push(" FROM (SELECT * FROM pipeline_names WHERE ");
    trigrams::has_all(out, name(column), part);
    out.push(") AS alike")
}

/// Whether a part of a text can be looked for by `LIKE`, which makes no copy of each text. That of SQLite ends a pattern at NUL.
fn is_pattern(part: &str) -> bool {
    part.len() <= LONGEST_PATTERN && !part.contains('\0')
}

fn one_of(out: &mut Statement, values: &[PipelineValue]) {
    if values.is_empty() {
        out.push(" IS NULL");
        return;
    }
    out.push(" IN (");
    for (number, value) in values.iter().enumerate() {
        out.push(if number == 0 { "" } else { ", " })
            .bind(bound(value));
    }
    out.push(")");
}

fn sign(how: PipelineComparison) -> &'static str {
    match how {
        PipelineComparison::Equal => " = ",
        PipelineComparison::NotEqual => " <> ",
        PipelineComparison::Greater => " > ",
        PipelineComparison::GreaterOrEqual => " >= ",
        PipelineComparison::Less => " < ",
        PipelineComparison::LessOrEqual => " <= ",
    }
}

/// Appends that a tag has a value: of pipelines by the table of tags, of the few versions of one pipeline by their own.
fn tagged(
    out: &mut Statement,
    dialect: Dialect,
    scope: &PipelineScope,
    tag: &str,
    test: &PipelineTest,
) {
    let value = match test {
        PipelineTest::Compare(PipelineComparison::Equal, PipelineValue::Text(value)) => value,
        // No filter asks this of a tag.
        _ => {
            out.push("1 = 0");
            return;
        }
    };
    match scope {
        PipelineScope::Namespace(_) => {
            out.push("row_id IN (SELECT pipeline_row FROM pipeline_tags WHERE key = ");
            out.bind(tag)
                .push(" AND value = ")
                .bind(value.as_str())
                .push(")");
        }
        PipelineScope::Pipeline(_) => {
            let column = match dialect {
                Dialect::Sqlite => "tags",
                Dialect::Postgres => "tags::jsonb",
            };
            dialect.lookup(out, column, tag);
            out.push(" = ").bind(value.as_str());
        }
    }
}
