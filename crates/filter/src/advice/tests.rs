//! What is said of members that are not there, and of values of another type.

use serde_json::json;

use crate::{Filter, model::Resource};

#[track_caller]
fn told(filter: &str, expected: &[&str]) {
    let payloads = [
        json!({"kind": "TaskRun", "status": {"phase": "x", "conditions": []}}),
        json!({"spec": {"num": 5, "flag": true, "text": "7", "list": ["a"], "none": null},
            "status": {"conditions": [{"reason": "Failed", "code": 1}]}}),
    ];
    let filter = Filter::compile(filter, Resource::Records).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(filter.advice(&payloads), expected, "{}", filter.text());
}

#[test]
fn a_member_that_no_payload_has_is_told_with_the_nearest_that_is_there() {
    told(
        "data.statsu.conditions[0].raeson == 'Failed'",
        &["none of the records that were looked at has `data.statsu`; did you mean `data.status`?"],
    );
    told(
        "data.status.conditions.exists(c, c.raeson == 'Failed') || has(data.spec.zzzzzz)",
        &[
            "none of the records that were looked at has `data.spec.zzzzzz`",
            "none of the records that were looked at has `data.status.conditions[].raeson`; \
             did you mean `data.status.conditions[].reason`?",
        ],
    );
    told(
        "data.status.conditions.reason.startsWith('F')",
        &[
            "none of the records that were looked at has `data.status.conditions.reason`; \
           `data.status.conditions` is a list: write `data.status.conditions.exists(e, e...)`, \
           or choose one, as in `data.status.conditions[0]`",
        ],
    );
}

#[test]
fn a_value_of_another_type_is_told_with_what_to_write() {
    let looked = "in the records that were looked at, and is compared with";
    told(
        "data.spec.num == '5'",
        &[&format!(
            "`data.spec.num` is a number {looked} text; write the number without quotes, or \
             `string(data.spec.num)`"
        )],
    );
    told(
        "'true' == data.spec.flag",
        &[&format!(
            "`data.spec.flag` is a boolean {looked} text; write `true` or `false`, without quotes"
        )],
    );
    told(
        "data.spec.text > 5",
        &[&format!(
            "`data.spec.text` is text {looked} a number; write it in quotes, or \
             `double(data.spec.text)`"
        )],
    );
    told(
        "data.status == 'Failed'",
        &[&format!(
            "`data.status` is an object {looked} text; name one of its members, such as `phase`, \
             `conditions`"
        )],
    );
    told(
        "data.spec.list in ['a']",
        &[&format!(
            "`data.spec.list` is a list {looked} text; write `data.spec.list.exists(e, e == ...)`, \
             or choose one, as in `data.spec.list[0]`"
        )],
    );
    told(
        "data.status.conditions.exists(i, c, c.code in ['1', '2'])",
        &[&format!(
            "`data.status.conditions[].code` is a number {looked} text; write the number without \
             quotes, or `string(data.status.conditions[].code)`"
        )],
    );
}

#[test]
fn what_is_there_and_of_its_type_is_not_told() {
    for filter in [
        "data.spec.num == 7 && data.kind == 'x' && data.spec.none == 'x'",
        "data.status.conditions[7].reason == 'x'",
        "data.status.conditions[0].reason.matches('x') || 'x' in data.spec.list",
        "data_type == 'x' && parent.startsWith('q')",
        "size(data.status.conditions) > 7",
    ] {
        told(filter, &[]);
    }
}

#[test]
fn without_payloads_nothing_is_told() {
    let filter = Filter::compile("data.statsu == 'x'", Resource::Records).unwrap();
    assert_eq!(filter.advice(&[]), [""; 0]);
}
