//! What engines are asked, and that their answer and ours make the whole.

use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;

use crate::{
    Body, Filter, Row,
    columns::{object_columns, of_record, of_result},
    condition::{Ability, Column, Condition, Is, Test, Value},
    indexed::Indexed,
    model::{Resource, Tier},
    samples::{record_filter, record_row, result_filter, result_row},
};

pub(super) const EVERYTHING: &str = "left over: the whole filter, on the payload of each row that the engine \
                          returns";

#[track_caller]
fn asks(resource: Resource, filter: &str, engine: &str, rest: &str) {
    let filter = Filter::compile(filter, resource).unwrap_or_else(|e| panic!("{e}"));
    let told = filter.explain(&|_| Ability::Exact);
    assert_eq!(
        told,
        format!("engine: {engine}\n{rest}"),
        "{}",
        filter.text()
    );
}

#[track_caller]
pub(super) fn whole(filter: &str, engine: &str) {
    asks(Resource::Records, filter, engine, "left over: nothing");
}

#[track_caller]
fn part(filter: &str, engine: &str) {
    asks(Resource::Records, filter, engine, EVERYTHING);
}

#[track_caller]
fn of_results(filter: &str, engine: &str) {
    asks(Resource::Results, filter, engine, "left over: nothing");
}

#[test]
fn what_texts_say_of_times_and_labels_is_asked_of_columns() {
    part(
        "data.metadata.labels.contains('a/b')",
        "data.metadata.labels is not set or data.metadata.labels contains \"a/b\"",
    );
    part(
        "!data.metadata.labels.contains('a/b')",
        "data.metadata.labels is not set or data.metadata.labels is set and not contains \"a/b\"",
    );
    part("data.metadata.labels.contains('a: b')", "every row");
    part(
        "data.metadata.creationTimestamp > '2026-03-20T10:00:00Z'",
        "data.metadata.creationTimestamp is not set or \
         data.metadata.creationTimestamp >= 2026-03-18T22:00:00Z",
    );
    part(
        "!(data.metadata.creationTimestamp > '2026-03-20')",
        "data.metadata.creationTimestamp is not set or \
         data.metadata.creationTimestamp < 2026-03-22T02:00:00Z",
    );
    part(
        "data.metadata.creationTimestamp == '2026-03-20T10:00:00Z'",
        "data.metadata.creationTimestamp = 2026-03-20T10:00:00Z",
    );
    part(
        "data.metadata.creationTimestamp == 'soon'",
        "data.metadata.creationTimestamp is not set",
    );
    part(
        "data.metadata.creationTimestamp != '2026-03-20T10:00:00Z'",
        "every row",
    );
}

#[test]
fn engines_answer_tests_of_columns() {
    whole("", "every row");
    whole(
        "data_type in [PIPELINE_RUN] && data.metadata.labels['a'] == 'b'",
        "data_type one of [\"tekton.dev/v1.PipelineRun\"] and data.metadata.labels[\"a\"] = \"b\"",
    );
    whole(
        "data_type == 'a' || data_type == 'b' || 'c' == data_type",
        "data_type one of [\"a\", \"b\", \"c\"]",
    );
    whole(
        "data.metadata.name.contains('x%')",
        "data.metadata.name contains \"x%\"",
    );
    whole(
        "!(data.metadata.name == 'x')",
        "data.metadata.name is set and not = \"x\"",
    );
    whole(
        "data.metadata.name != 'x'",
        "data.metadata.name is set and not = \"x\"",
    );
    whole(
        "!(data.kind in ['x'])",
        "data.kind is set and not one of [\"x\"]",
    );
    whole(
        "!(parent < 'a' || data['status'].conditions[0]['reason'].endsWith('d'))",
        "parent >= \"a\" and data.status.conditions[0].reason is set and not ends with \"d\"",
    );
    whole(
        "timestamp('2026-01-01T00:00:00Z') + duration('1h') <= data.status.startTime",
        "data.status.startTime >= 2026-01-01T01:00:00Z",
    );
    whole("(parent == 'a') != true", "parent is set and not = \"a\"");
    whole(
        "uid == 'a' ? parent == 'b' : parent == 'c'",
        "(uid = \"a\" and parent = \"b\") or (uid is set and not = \"a\" and parent = \"c\")",
    );
    whole("parent == 'a' && false", "no row");
    whole("parent != null", "parent is set");
    whole("parent == null || parent in []", "no row");
}

#[test]
fn a_null_that_is_not_written_as_one_equals_no_value_of_a_column() {
    for filter in [
        "parent != dyn(null)",
        "parent == dyn(null)",
        "!(create_time == dyn(null))",
        "parent != [null, 1][0]",
        "data.kind != dyn(null)",
    ] {
        whole(filter, "no row");
    }
    part("data.kind == dyn(null)", "data.kind is not set");
}

#[test]
fn times_of_two_kinds_have_no_difference() {
    part(
        "taskrun.status.completionTime - pipelinerun.status.startTime > duration('1s')",
        "data_type one of [\"tekton.dev/v1.TaskRun\", \"tekton.dev/v1beta1.TaskRun\", \
         \"tekton.pipelines.v1.TaskRun\", \"pipeline.tekton.dev/TaskRun\"]",
    );
}

#[test]
fn names_are_asked_for_by_their_parts() {
    whole("name == 'u'", "record id = \"u\"");
    whole("name in ['u', 'v']", "record id one of [\"u\", \"v\"]");
    whole(
        "name == 'a/results/b/records/c'",
        "parent = \"a\" and result id = \"b\" and record id = \"c\"",
    );
    whole(
        "name != 'a/results/b/records/c'",
        "parent is set and not = \"a\" or result id is set and not = \"b\" or record id is set \
         and not = \"c\"",
    );
    whole("name == 'a/b'", "no row");
    whole("name != 'a/b'", "every row");
    whole(
        "name.endsWith('records/u')",
        "record id = \"u\" and name ends with \"records/u\"",
    );
    whole("name.endsWith('u')", "name ends with \"u\"");
    whole("name.startsWith('u')", "record id starts with \"u\"");
    whole("name.startsWith('a/')", "name starts with \"a/\"");
    whole(
        "result_name == 'a/results/b'",
        "parent = \"a\" and result id = \"b\"",
    );
}

#[test]
fn aliases_ask_for_their_types() {
    let types = "data_type one of [\"tekton.dev/v1.TaskRun\", \"tekton.dev/v1beta1.TaskRun\", \
                 \"tekton.pipelines.v1.TaskRun\", \"pipeline.tekton.dev/TaskRun\"]";
    whole(
        "taskrun.metadata.name.startsWith('n')",
        &format!("{types} and data.metadata.name starts with \"n\""),
    );
    whole(
        "taskrun.metadata.creation_timestamp > timestamp('2026-01-01T00:00:00Z')",
        &format!("{types} and data.metadata.creationTimestamp > 2026-01-01T00:00:00Z"),
    );
    part("taskrun.status.steps.exists(s, s.name == 'x')", types);
    part("(taskrun.spec.x || true) == data.y", "every row");
}

#[test]
fn what_has_no_column_is_left_over() {
    part("data.spec.x == 'a'", "every row");
    part(
        "data_type == 'a' && data.spec.x == 'a'",
        "data_type = \"a\"",
    );
    part("data_type == 'a' || data.spec.x == 'a'", "every row");
    part("data.metadata.creationTimestamp > '2026'", "every row");
    part(
        "data.metadata.name == 5 && data.metadata.name != null",
        "every row",
    );
    part("has(data.metadata.name)", "every row");
    part("!has(data.metadata.name)", "data.metadata.name is not set");
    part(
        "data.metadata.name == null",
        "data.metadata.name is not set",
    );
    part("data.metadata.name.matches('x')", "every row");
    part("data.metadata.name in ['a', 5]", "every row");
    asks(
        Resource::Records,
        "data_type.matches('x') && parent == 'a'",
        "parent = \"a\"",
        "left over: the whole filter, on each row that the engine returns",
    );
}

#[test]
fn records_are_asked_for_by_what_is_kept_of_a_run() {
    whole(
        "run.outcome in ['FAILURE', TIMEOUT] && run.pipeline == 'a'",
        "outcome one of [2, 3] and pipeline = \"a\"",
    );
    whole(
        "!has(run.pipeline) || run.pipeline != 'a'",
        "pipeline is not set or pipeline is set and not = \"a\"",
    );
    whole(
        "has(run.labels['a']) && !('b' in run.labels) && run.labels.c.startsWith('d')",
        "data.metadata.labels[\"a\"] is set and data.metadata.labels[\"b\"] is not set and \
         data.metadata.labels[\"c\"] starts with \"d\"",
    );
    whole(
        "run.startTime >= timestamp('2026-01-01T00:00:00Z') && !has(run.end_time)",
        "started >= 2026-01-01T00:00:00Z and ended is not set",
    );
    whole(
        "run.end_time - run.start_time > duration('10m')",
        "duration > 10m",
    );
    whole(
        "run.reason == 'a' || run.phase == 'b' || run.task.contains('c')",
        "reason = \"a\" or data.status.phase = \"b\" or \
         data.spec.taskRef.name contains \"c\"",
    );
    whole("run != null && has(run.labels)", "outcome is set");
    whole("run == null || !has(run.labels)", "no row");
    part("run.labels.contains('a')", "every row");
}

#[test]
fn results_are_asked_for_by_summary_and_annotations() {
    of_results("summary.status == 'FAILURE'", "summary.status = 2");
    of_results(
        "summary.status in [1u, TIMEOUT]",
        "summary.status one of [1, 3]",
    );
    of_results("summary.status > 1", "summary.status > 1");
    of_results("annotations['a'] == 'b'", "annotations[\"a\"] = \"b\"");
    of_results("!('a' in annotations)", "annotations[\"a\"] is not set");
    of_results(
        "!('a' in summary.annotations) || !has(summary.end_time)",
        "(summary.status is set and summary.annotations[\"a\"] is not set) or summary.end_time \
         is not set",
    );
    of_results(
        "has(summary.annotations.a)",
        "summary.annotations[\"a\"] is set",
    );
    of_results(
        "summary != null && uid.contains('x')",
        "summary.status is set and uid contains \"x\"",
    );
    of_results("summary.end_time == null", "no row");
}

#[test]
fn an_engine_is_asked_only_what_it_can_answer() {
    let filter = "parent == 'a' && uid == 'b' && data_type == 'c'";
    let filter = Filter::compile(filter, Resource::Records).unwrap();
    let split = filter.split(&|test| match test.column {
        Column::Parent => Ability::Exact,
        Column::Uid => Ability::Superset,
        _ => Ability::None,
    });
    assert_eq!(
        split.condition.to_string(),
        "parent = \"a\" and uid = \"b\""
    );
    assert!(split.residual);
}

#[test]
fn an_engine_is_not_asked_too_much_at_once() {
    let many: Vec<_> = (0..600)
        .map(|n| format!("data.metadata.name.contains('{n}')"))
        .collect();
    part(&many.join(" || "), "every row");
    part(
        &format!("parent == 'a' && ({})", many.join(" || ")),
        "parent = \"a\"",
    );
}

fn columns_of(condition: &Condition, visit: &mut dyn FnMut(&Test)) {
    match condition {
        Condition::All | Condition::Nothing => {}
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().for_each(|part| columns_of(part, visit));
        }
        Condition::Test(test) => visit(test),
    }
}

/// Whether an engine that has an index of every part of payloads returns the row.
fn returns(
    condition: &Condition,
    column: &dyn Fn(&Column) -> Option<Value>,
    body: Option<&serde_json::Value>,
) -> bool {
    let keys = |of: &Indexed| {
        let values = body.map_or_else(Vec::new, |body| of.path.values(body));
        let keys = values.into_iter().filter_map(|value| of.kind.key(value));
        keys.map(Value::Text).collect::<Vec<_>>()
    };
    match condition {
        Condition::And(parts) => parts.iter().all(|part| returns(part, column, body)),
        Condition::Or(parts) => parts.iter().any(|part| returns(part, column, body)),
        Condition::Test(test) => match &test.column {
            Column::Indexed(of) => match test.is {
                Is::Present => keys(of).is_empty(),
                _ => keys(of).iter().any(|key| test.passes(Some(key))),
            },
            _ => condition.passes(column),
        },
        Condition::All | Condition::Nothing => condition.passes(column),
    }
}

/// What an engine makes of a test: anything, but always the same. It has an index of every part
/// of payloads, and one of two kinds of tests is answered by that.
fn ability(seed: u64, test: &Test) -> Ability {
    let mut hasher = DefaultHasher::new();
    if matches!(test.column, Column::Indexed(_)) {
        return match seed % 4 {
            0 => Ability::None,
            _ => Ability::Superset,
        };
    }
    seed.hash(&mut hasher);
    test.column.hash(&mut hasher);
    test.negated.hash(&mut hasher);
    std::mem::discriminant(&test.is).hash(&mut hasher);
    match hasher.finish() % 4 {
        0 => Ability::None,
        1 => Ability::Superset,
        _ => Ability::Exact,
    }
}

/// The engine returns every match, and if nothing is left over nothing else.
fn agree(
    text: &str,
    resource: Resource,
    row: &Row<'_>,
    column: &dyn Fn(&Column) -> Option<Value>,
    body: Option<&serde_json::Value>,
    seed: u64,
) -> Result<(), TestCaseError> {
    let filter = match Filter::compile(text, resource) {
        Ok(filter) => filter,
        Err(error) => return Err(TestCaseError::fail(format!("{text}: {error}"))),
    };
    let matched = filter
        .matches(row)
        .map_err(|e| TestCaseError::fail(e.to_string()))?;
    for seed in [None, Some(seed)] {
        let ability = |test: &Test| seed.map_or(Ability::Exact, |seed| ability(seed, test));
        let split = filter.split(&ability);
        let returned = returns(&split.condition, column, body);
        prop_assert!(
            returned || !matched,
            "{text}\n{}: too little",
            split.condition
        );
        prop_assert!(
            split.residual || returned == matched,
            "{text}\n{}: {returned}, but {matched}",
            split.condition
        );
        let mut able = true;
        columns_of(&split.condition, &mut |test| {
            able &= ability(test) != Ability::None
        });
        prop_assert!(able, "{text}\n{}: not asked for", split.condition);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn the_halves_of_a_filter_of_records_agree(
        text in record_filter(), row in record_row(), seed in any::<u64>()
    ) {
        let object = row.data.as_ref().map(object_columns).unwrap_or_default();
        let body = Body::of(&row);
        let column = |column: &Column| of_record(&row, Tier::Hot, &object, column);
        let record = Row::Record { record: &row, tier: Tier::Hot, body: &body };
        agree(&text, Resource::Records, &record, &column, body.json(), seed)?;
    }

    #[test]
    fn a_filter_judges_what_it_reads_as_it_judges_the_whole(
        text in record_filter(), row in record_row()
    ) {
        let filter = Filter::compile(&text, Resource::Records).unwrap();
        let on = |body: &Body| filter.matches(&Row::Record { record: &row, tier: Tier::Hot, body });
        prop_assert_eq!(on(&filter.body(&row)), on(&Body::of(&row)));
    }

    #[test]
    fn the_halves_of_a_filter_of_results_agree(
        text in result_filter(), row in result_row(), seed in any::<u64>()
    ) {
        let column = |column: &Column| of_result(&row, column);
        agree(&text, Resource::Results, &Row::Result(&row), &column, None, seed)?;
    }
}
