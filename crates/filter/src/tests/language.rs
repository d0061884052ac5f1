//! The language, on one TaskRun.

use super::rows::{
    Truth::{No, Unknown, Yes},
    is, judge, record, task_record, truth_on,
};

#[test]
fn blank_filters_match_everything() {
    assert_eq!(judge(" \n ", &task_record()), Ok(true));
}

#[test]
fn values_of_one_type_are_compared() {
    is(
        Yes,
        &[
            "data.kind == 'TaskRun'",
            "'TaskRun' == data[\"kind\"]",
            "data.spec.retries == 3",
            "data.spec.retries == 3.0 && data.spec.retries >= 3u && 2 < data.spec.retries",
            "data.spec.ratio < 1 && data.spec.ratio == 0.5",
            "data.spec.debug && data.spec.debug == true",
            "data.metadata.labels['tier'] == '5'",
            "data.metadata.name > 'nightly' && data.metadata.name != 'Nightly-build'",
            "data.spec.params[2].value == ['fast', 'loud']",
            "data.spec.params[-1].name == 'flags'",
            "data.spec.params[0] == {'name': 'env', 'value': 'prod'}",
            "data.metadata.`name` == 'nightly-build' // a comment",
            "9223372036854775807 < 9223372036854775808.0 && 1u < 2 && -1 < 1u",
        ],
    );
    is(
        No,
        &[
            "data.kind == 'taskrun'",
            "data.spec.retries > 3",
            "data.spec.params[2].value == ['fast']",
            "false",
        ],
    );
}

#[test]
fn what_is_missing_or_of_another_type_is_unknown() {
    is(
        Unknown,
        &[
            "data.metadata.labels['tier'] == 5",
            "data.metadata.labels['tier'] != 5",
            "data.spec.retries == '3'",
            "data.spec.missing == 'x'",
            "data.spec.missing != 'x'",
            "data.spec.missing == null",
            "data.spec.missing != null",
            "data.spec.none == 'x'",
            "data.spec.none != 'x'",
            "data.spec.none < 5",
            "data.spec.missing.deeper in ['x']",
            "data.kind.deeper == 'x'",
            "data.spec.params[7].name == 'x'",
            "data.spec.retries.contains('3')",
            "data.kind",
            "data.spec.retries + 'x' == 'x'",
            "data.spec.params == data.metadata",
            "1 / (data.spec.retries - 3) == 1",
            "9223372036854775807 + data.spec.retries > 0",
            "int(data.kind) == 1",
            "timestamp(data.kind) > timestamp('2026-01-01T00:00:00Z')",
            "data.kind.matches(data.metadata.name + '(')",
            "pipelinerun.metadata.name == 'nightly-build'",
            "has(workflow.metadata.name)",
        ],
    );
}

#[test]
fn null_is_a_value() {
    is(
        Yes,
        &[
            "data.spec.none == null",
            "data.kind != null",
            "has(data.spec.none)",
            "null == null",
        ],
    );
    is(
        No,
        &[
            "data.spec.none != null",
            "data.kind == null",
            "data.kind in [null]",
        ],
    );
}

#[test]
fn unknown_is_absorbed_by_what_decides() {
    is(
        Yes,
        &[
            "data.no == 1 || data.kind == 'TaskRun'",
            "data.kind == 'TaskRun' || data.no == 1",
        ],
    );
    is(
        No,
        &[
            "data.no == 1 && data.kind == 'x'",
            "!(data.no == 1 || true)",
        ],
    );
    is(
        Unknown,
        &[
            "data.no == 1 && true",
            "data.no == 1 || false",
            "data.no == 1 ? true : true",
        ],
    );
    is(
        Yes,
        &["data.spec.debug ? data.spec.retries == 3 : data.no == 1"],
    );
}

#[test]
fn presence_can_be_asked() {
    is(
        Yes,
        &[
            "has(data.status.startTime)",
            "has(data.metadata.labels['app'])",
            "has(taskrun.status.start_time)",
            "!has(data.status.podName)",
            "!has(data.no.such.path)",
            "'app' in data.metadata.labels",
            "!('zzz' in data.metadata.labels)",
        ],
    );
    is(
        No,
        &["has(data.status.podName)", "has(data.metadata.labels.zzz)"],
    );
    let text = record("ci/results/r/records/x", "text/plain", b"no json");
    assert_eq!(truth_on("has(data.kind)", &text), Unknown);
}

#[test]
fn elements_are_gone_over() {
    is(
        Yes,
        &[
            "data.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
            "data.status.steps.all(s, s.terminated.exitCode < 2)",
            "data.status.steps.exists_one(s, s.terminated.exitCode != 0)",
            "data.status.steps.existsOne(s, s.name == 'clone')",
            "data.status.steps.filter(s, s.terminated.exitCode == 1).map(s, s.name) == ['compile']",
            "data.status.steps.map(s, s.terminated.exitCode == 0, s.name)[0] == 'clone'",
            "data.metadata.labels.exists(key, key.startsWith('tekton.dev/'))",
            "data.metadata.labels.exists(key, value, key == 'app' && value == 'shop')",
            "data.spec.params.exists(p, p.name == 'env' && p.value == 'prod')",
            "data.spec.params.exists(p, data.status.steps.exists(s, s.name == 'clone' && p.name == 'env'))",
            "['a', 'b'].exists(x, x == 'b') && [1, 2].all(i, x, i + 1 == x)",
            "data.status.conditions.exists(c, c.reason == 'Failed')",
            "data.spec.params.map(p, p.name).join(',') == 'env,count,flags'",
            "size(data.status.steps) >= 2 && data.status.steps.size() == 2",
            "{'a': 1}['a'] == 1 && {'a': 1}.a == 1 && {1: 'x'}[1] == 'x' && 'a' in {'a': 1}",
        ],
    );
    is(
        No,
        &["data.status.steps.all(s, s.terminated.exitCode == 0)"],
    );
    // The second condition has no reason.
    is(
        Unknown,
        &[
            "data.status.conditions.exists(c, c.reason == 'Nope')",
            "data.status.conditions.all(c, c.reason == 'Failed')",
            "data.status.conditions.exists_one(c, c.reason == 'Failed')",
            "data.kind.exists(c, true)",
        ],
    );
}

#[test]
fn times_are_times() {
    is(
        Yes,
        &[
            "data.status.completionTime > timestamp('2026/03/01T09:10:00.000Z')",
            "timestamp('2026-03-01T10:10:02+01:00') > data.status.completionTime",
            "data.status.completionTime - data.status.startTime == duration('10m')",
            "data.status.completionTime - data.status.startTime > duration('5m')",
            "timestamp(data.status.startTime) + duration('599.9s') < data.status.completionTime",
            "data.status.startTime + duration('1m') == timestamp('2026-03-01T09:01:01Z')",
            "data.spec.timeout == duration('60m') && duration(data.spec.timeout).getMinutes() == 60",
            "create_time == timestamp('2026-03-01T10:00:00Z') && update_time - create_time == duration('5m')",
            "data.metadata.creationTimestamp > \"2026-02-28T00:00:00Z\"",
            "data.status.completionTime.getDate() == 1 && data.status.completionTime.getDayOfMonth() == 0",
            "create_time.getDayOfWeek() == 0 && create_time.getDayOfYear() == 59",
            "create_time.getFullYear() == 2026 && create_time.getMonth() == 2",
            "create_time.getHours() == 10 && create_time.getHours('+02:00') == 12",
            "create_time.getHours('-10:30') == 23 && create_time.getMinutes('-10:30') == 30",
            "create_time.getHours('Europe/Berlin') == 11 && update_time.getMinutes() == 5",
            "timestamp('2026-01-01T00:00:00.123456789Z').getMilliseconds() == 123",
            "timestamp('2026-01-01T00:00:00.123456789Z') == timestamp('2026-01-01T00:00:00.123456Z')",
            "timestamp(0) == timestamp('1970-01-01') && int(timestamp('1970-01-01T00:01:00Z')) == 60",
            "duration('1h30m').getMinutes() == 90 && duration('-1.5s') < duration('0')",
            "string(duration('90.5s')) == '90.5s' && string(create_time) == '2026-03-01T10:00:00Z'",
            "duration('1h') - duration('30m') == duration('1800s')",
        ],
    );
    is(No, &["data.status.startTime > data.status.completionTime"]);
}

#[test]
fn text_has_its_functions() {
    is(
        Yes,
        &[
            "data.metadata.name.startsWith('nightly') && data.metadata.name.endsWith('build')",
            "data.metadata.name.contains('ly-b') && data.metadata.name.matches('^n.*d$')",
            "matches(data.metadata.name, '[a-z]+-build')",
            "data.metadata.annotations['build.note'].contains('% of _')",
            "data.metadata.labels.contains('pipelineRun') && data.metadata.labels.contains('\"app\": \"shop\"')",
            "data.metadata.labels.contains('\"app\":\"shop\"') && data.spec.params.contains('prod')",
            "data.kind.lowerAscii() == 'taskrun' && data.kind.upperAscii() == 'TASKRUN'",
            "data.metadata.name.split('-') == ['nightly', 'build'] && 'a,b,c'.split(',', 2)[1] == 'b,c'",
            "' x '.trim() == 'x' && 'aaa'.replace('a', 'b', 2) == 'bba' && 'aa'.replace('a', '') == ''",
            "'日本語'.substring(1) == '本語' && '日本語'.substring(0, 2) == '日本' && size('日本語') == 3",
            "'日本語'.indexOf('語') == 2 && 'abab'.lastIndexOf('ab') == 2 && 'abab'.indexOf('ab', 1) == 2",
            "'日本語'.charAt(1) == '本' && 'abc'.charAt(3) == '' && 'abc'.indexOf('x') == -1",
            "data.kind + '!' == 'TaskRun!' && string(data.spec.retries) == '3' && int('42') == 42",
            "double('1.5') == 1.5 && uint(3) == 3u && bool('true') && bytes('é') == b'\\xc3\\xa9'",
            "type(data.spec.retries) == int && type(data.kind) == string && type(null) == null_type",
            "type(create_time) == google.protobuf.Timestamp && dyn(1) == 1",
            "10 / 3 == 3 && 10 % 3 == 1 && -data.spec.retries == -3 && 2 * 3.5 == 7.0",
            "data.metadata.name in ['x', 'nightly-build'] && data.spec.retries in [1, 3.0]",
        ],
    );
    is(
        No,
        &[
            "data.metadata.annotations['build.note'].contains('X of')",
            "data.metadata.name.startsWith('nightly%')",
            "data.metadata.labels.contains('absent')",
        ],
    );
    is(
        Unknown,
        &[
            "'abc'.substring(data.spec.retries + 1) == ''",
            "data.kind in ['x', 5]",
        ],
    );
}

#[test]
fn the_end_of_the_year_9999_is_a_time() {
    let for_ever = r#"{"status":{"completionTime":"9999-12-31T23:59:59Z"}}"#;
    let row = record("p/results/a/records/b", "x", for_ever.as_bytes());
    for filter in [
        "create_time < timestamp('9999-12-31T23:59:59Z')",
        "create_time < timestamp('9999/12/31')",
        "create_time < timestamp(253402300799)",
        "data.status.completionTime > timestamp('2020-01-01T00:00:00Z')",
        "data.status.completionTime == timestamp('9999-12-31T23:59:59Z')",
    ] {
        assert_eq!(truth_on(filter, &row), Yes, "{filter}");
    }
}

#[test]
fn a_difference_of_times_is_always_a_duration() {
    for (start, truth) in [
        ("0000-01-01T00:00:00Z", Yes),
        ("-000001-10-16T00:00:00Z", Unknown),
    ] {
        let status = format!(
            r#"{{"status":{{"startTime":"{start}","completionTime":"9999-12-31T23:59:59Z"}}}}"#
        );
        let row = record("p/results/a/records/b", "x", status.as_bytes());
        let filter = "data.status.completionTime - data.status.startTime > duration('1s')";
        assert_eq!(truth_on(filter, &row), truth, "{start}");
    }
}
