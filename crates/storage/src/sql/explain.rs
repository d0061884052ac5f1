//! Statements that ask a database how it would answer a list, and what it says.

use super::{access_path, condition::Writer, dialect::Dialect, statement::Statement};
use crate::seam::ListQuery;
use hindsight_filter::condition::Condition;
use hindsight_filter::model::Resource;

/// The statement for the rows that a list goes over; with `most`, for how many these are, which
/// is not counted further.
pub(crate) fn rows(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
    most: Option<i64>,
) -> Statement {
    let mut out = Statement::new("SELECT ");
    if most.is_some() {
        out.push("count(*) FROM (SELECT ");
    }
    out.push(match resource {
        Resource::Results => "1 AS one FROM results WHERE 1 = 1",
        Resource::Records => "1 AS one FROM records WHERE 1 = 1",
    });
    access_path::scope(&mut out, resource, &query.scope, "parent");
    if query.condition != Condition::All {
        out.push(" AND ");
        Writer::new(dialect, resource, &mut out).condition(&query.condition);
    }
    if let Some(most) = most {
        out.push(" LIMIT ").bind(most).push(") AS found");
    }
    out
}

/// The index that a line of a plan names.
pub(crate) fn index_of(line: &str) -> Option<String> {
    const BEFORE: [&str; 4] = [
        "USING INDEX ",
        "USING COVERING INDEX ",
        "Scan using ",
        "Bitmap Index Scan on ",
    ];
    let found = BEFORE.into_iter().find_map(|before| {
        let (_, rest) = line.split_once(before)?;
        rest.split_whitespace().next()
    });
    found
        .or_else(|| {
            let (_, rest) = line.split_once("Scan Backward using ")?;
            rest.split_whitespace().next()
        })
        .map(str::to_owned)
}

/// What a line of PostgreSQL's plan says that the node costs in all, and how many rows it gives:
/// `(cost=0.15..8.17 rows=1 width=32)`.
pub(crate) fn estimates(line: &str) -> Option<(f64, u64)> {
    let (_, rest) = line.split_once("(cost=")?;
    let (cost, rest) = rest.split_once(" rows=")?;
    let (_, cost) = cost.split_once("..")?;
    let (rows, _) = rest.split_once(' ')?;
    Some((cost.parse().ok()?, rows.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_name_their_indexes_and_estimates() {
        for (line, index) in [
            (
                "SEARCH records USING INDEX records_by_create (create_us<?)",
                Some("records_by_create"),
            ),
            (
                "SCAN records USING COVERING INDEX records_by_type",
                Some("records_by_type"),
            ),
            ("SCAN records", None),
            ("USE TEMP B-TREE FOR ORDER BY", None),
            (
                "  ->  Index Scan Backward using results_by_create on results  (cost=0.15..8.17 rows=1 width=32)",
                Some("results_by_create"),
            ),
            (
                "  ->  Index Only Scan using a on b  (cost=0.1..1 rows=1 width=0)",
                Some("a"),
            ),
            (
                "  ->  Bitmap Index Scan on a  (cost=0.1..1 rows=1 width=0)",
                Some("a"),
            ),
            (
                "Seq Scan on records  (cost=0.00..10.70 rows=70 width=4)",
                None,
            ),
        ] {
            assert_eq!(index_of(line).as_deref(), index, "{line}");
        }
        let line = "Seq Scan on records  (cost=0.00..10.70 rows=70 width=4)";
        assert_eq!(estimates(line), Some((10.7, 70)));
        assert_eq!(estimates("  Filter: (a = 'b')"), None);
    }
}
