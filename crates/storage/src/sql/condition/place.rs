//! What stands in a statement for a column.

use crate::sql::{columns::Place, dialect::Dialect, statement::Statement};
use hindsight_filter::model::RecordName;

/// The id of the result that a record belongs to.
pub(in crate::sql) const RESULT_ID: &str =
    "(SELECT results.id FROM results WHERE results.row_id = result_row)";

/// When a run began and ended, of which rows keep what the object does not say.
const RUN_BEGAN: &str = "nullif(coalesce(run_began_us, object_start_us), -9223372036854775807)";
const RUN_ENDED: &str =
    "nullif(coalesce(run_ended_us, object_completion_us), -9223372036854775807)";

/// Appends the value of a column.
pub(in crate::sql) fn value(out: &mut Statement, dialect: Dialect, place: Place<'_>) {
    out.push(match place {
        Place::Nowhere => "NULL",
        Place::Labels => dialect.labels(),
        Place::Column(name) | Place::Word(name) => name,
        Place::Id(column) => return dialect.identifier(out, column),
        Place::Uid(of) => return dialect.identifier(out, dialect.uid(of)),
        Place::ObjectUid => return dialect.identifier(out, dialect.object_uid()),
        Place::Cluster => dialect.cluster(),
        Place::Tier => dialect.tier(),
        Place::RecordName => return record_name(out, dialect),
        Place::SummaryDuration => "(summary_end_us - summary_start_us)",
        Place::ObjectDuration => "(object_completion_us - object_start_us)",
        Place::RunBegan => RUN_BEGAN,
        Place::RunEnded => RUN_ENDED,
        Place::RunDuration => {
            out.push("(").push(RUN_ENDED).push(" - ");
            out.push(RUN_BEGAN).push(")");
            return;
        }
        Place::ObjectNamespace => dialect.object_namespace(),
        Place::ResultOfRecord => return dialect.identifier(out, RESULT_ID),
        Place::Map(name, key) => return dialect.lookup(out, name, key),
    });
}

fn record_name(out: &mut Statement, dialect: Dialect) {
    out.push("(parent || '/results/' || ");
    dialect.identifier(out, RESULT_ID);
    out.push(" || '/records/' || ");
    dialect.identifier(out, "id");
    out.push(")");
}

/// Appends that a record belongs to the result of `name`.
pub(in crate::sql) fn in_result(out: &mut Statement, name: &RecordName) {
    out.push("result_row = (SELECT row_id FROM results WHERE id = ")
        .bind_id(name.result().id());
    out.push(" AND parent = ")
        .bind(name.result().parent().as_str())
        .push(")");
}
