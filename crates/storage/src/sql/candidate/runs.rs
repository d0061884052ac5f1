//! Candidates for runs: by their pipeline, and by how long they took.

use super::{conjuncts, text_of, values};
use crate::{
    seam::ListQuery,
    sql::{condition::Writer, dialect::Dialect, statement::Statement},
};
use hindsight_filter::condition::{Column, Is, Test, Value};
use hindsight_filter::model::Resource;
use hindsight_run::keys;

/// Appends a statement for the rows that may be of a pipeline, or one of several: those with its label,
/// and those that refer to it. SQLite alone.
pub(in crate::sql) fn of_pipelines(out: &mut Statement, dialect: Dialect, test: &Test) {
    for (at, name) in values(&test.is).iter().filter_map(text_of).enumerate() {
        out.push(if at == 0 { "" } else { " UNION ALL " });
        out.push("SELECT record_row FROM record_labels WHERE label = ");
        dialect.label(out, keys::PIPELINE, name);
        out.push(" UNION ALL SELECT row_id FROM records INDEXED BY records_by_pipeline WHERE ")
            .push("object_pipeline_ref = ")
            .bind(name);
    }
}

/// Appends a statement for the rows of runs that may have taken so long: those whose objects did, and
/// those that began or ended at another time than their object says. SQLite alone.
pub(in crate::sql) fn of_took(out: &mut Statement, dialect: Dialect, test: &Test) {
    out.push("SELECT row_id FROM records INDEXED BY records_by_took WHERE ");
    let of_object = Test {
        column: Column::ObjectDuration,
        ..test.clone()
    };
    Writer::new(dialect, Resource::Records, out).test(&of_object);
    out.push(" UNION ALL SELECT row_id FROM records INDEXED BY records_of_own_times ")
        .push("WHERE (run_began_us IS NOT NULL OR run_ended_us IS NOT NULL)");
}

/// What the index of what took long has: objects that took ten minutes, and runs with times of their own.
pub(in crate::sql) const LONG: &str = "(object_completion_us - object_start_us >= 600000000 \
                               OR run_began_us IS NOT NULL OR run_ended_us IS NOT NULL)";

/// Whether every row that passes is in the index of what took long.
pub(crate) fn asks_long(query: &ListQuery) -> bool {
    let is_long = |value: &Value| matches!(value, Value::Int(us) if *us >= 600_000_000);
    conjuncts(&query.condition).iter().any(|test| {
        let is_of_time = matches!(test.column, Column::Duration | Column::ObjectDuration);
        is_of_time
            && !test.negated
            && matches!(&test.is, Is::Greater(least) | Is::AtLeast(least) if is_long(least))
    })
}
