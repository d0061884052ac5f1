//! Which tests an index of a part of the payload answers.

use super::splits::EVERYTHING;
use crate::{
    Filter,
    condition::{Ability, Column},
    model::Resource,
};

#[track_caller]
fn with_an_index(filter: &str, engine: &str) {
    let compiled = Filter::compile(filter, Resource::Records).unwrap_or_else(|e| panic!("{e}"));
    let told = compiled.explain(&|test| match &test.column {
        Column::Indexed(of) if of.path.to_string().contains("[value==") => Ability::None,
        Column::Indexed(_) => Ability::Superset,
        _ => Ability::Exact,
    });
    assert_eq!(told, format!("engine: {engine}\n{EVERYTHING}"), "{filter}");
}

#[test]
fn an_engine_with_an_index_of_a_part_of_the_payload_is_asked_for_it() {
    with_an_index(
        "data.spec.serviceAccountName == 'bot'",
        "data.spec.serviceAccountName (indexed) = \"bot\"",
    );
    let env = "data.spec.params[name==\"env\"].value (indexed)";
    with_an_index(
        "data.spec.params.exists(p, p.name == 'env' && p.value == 'prod')",
        &format!("{env} = \"prod\""),
    );
    with_an_index(
        "data.spec.params.exists(p, p.value in ['a', 'b'] && 'env' == p.name)",
        &format!("{env} one of [\"a\", \"b\"]"),
    );
    with_an_index(
        "data.spec.params.exists(p, p.name == 'env' && (p.value == 'a' || p.value == 'b'))",
        &format!("{env} one of [\"a\", \"b\"]"),
    );
    with_an_index(
        "data.spec.params.exists(p, p.name == 'env' && p.value.startsWith('pr'))",
        &format!("{env} starts with \"pr\""),
    );
    with_an_index(
        "data.spec.params.filter(p, p.name == 'env')[0].value != 'prod'",
        &format!("{env} is set and not = \"prod\""),
    );
    with_an_index(
        "taskrun.spec.params.exists(p, p.name == 'env' && p.value == 'prod') && parent == 'a'",
        &format!(
            "data_type one of [\"tekton.dev/v1.TaskRun\", \"tekton.dev/v1beta1.TaskRun\", \
             \"tekton.pipelines.v1.TaskRun\", \"pipeline.tekton.dev/TaskRun\"] and {env} = \
             \"prod\" and parent = \"a\""
        ),
    );
    with_an_index(
        "data.spec.n > 5 && data.spec.n <= 7.5",
        "data.spec.n (indexed) >= 5 and \
         data.spec.n (indexed) <= 7.5",
    );
    with_an_index("data.spec.flag", "data.spec.flag (indexed) = true");
    with_an_index(
        "data.spec.at < timestamp('2026-01-01T00:00:00Z')",
        "data.spec.at (indexed) <= 2026-01-01T00:00:00Z",
    );
}

#[test]
fn an_index_is_not_asked_for_what_it_may_lack() {
    let whole = "every row";
    for filter in [
        "data.spec.params.exists(p, p.name == 'env' && p.value.contains('x'))",
        "!data.spec.params.exists(p, p.name == 'env' && p.value == 'x')",
        "data.spec.params.exists(p, p.name == 'env' && p.value == null)",
        "data.spec.params.exists(k, p, p.name == 'env' && p.value == 'x')",
        "data.spec.params.all(p, p.name == 'env' && p.value == 'x')",
        "data.spec.params.exists(p, p.value == 'x' || p.name == 'env')",
        "data.spec.n != 9007199254740993",
        "data.spec.steps[-1].name == 'x'",
        "data.a == data.b",
    ] {
        with_an_index(filter, whole);
    }
    let long = "x".repeat(128);
    with_an_index(&format!("data.spec.a != '{long}'"), whole);
    with_an_index(&format!("data.spec.a == '{long}'"), whole);
}
