//! What is refused, word for word.

use crate::{
    Filter,
    model::Resource::{self, Records, Results},
};

type Refusals = [(Resource, &'static str, &'static str)];

#[track_caller]
fn refused(refusals: &Refusals) {
    for (resource, filter, because) in refusals {
        let told = match Filter::compile(filter, *resource) {
            Ok(_) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(told, *because, "{filter}");
    }
}

#[test]
fn names_are_known() {
    refused(NAMES_ARE_KNOWN);
}

const NAMES_ARE_KNOWN: &Refusals = &[
    (
        Records,
        "dta.kind == 'x'",
        "filter column 1: unknown name `dta`; did you mean `data`?",
    ),
    (
        Records,
        "zzzzzz == 'x'",
        "filter column 1: unknown name `zzzzzz`; the names here are `parent`, `result_name`, \
         `name`, `data_type`, `uid`, `create_time`, `update_time`, `tier`, `run`, `data`, \
         `pipelinerun`, `taskrun`, `customrun` and `workflow`",
    ),
    (
        Records,
        "data_tpye == 'x'",
        "filter column 1: unknown name `data_tpye`; did you mean `data_type`?",
    ),
    (
        Records,
        "TASKRUN == data_type",
        "filter column 1: unknown name `TASKRUN`; did you mean `taskrun`?",
    ),
    (
        Records,
        "data.kind.startswith('x')",
        "filter column 11: unknown function `startswith`; did you mean `startsWith`?",
    ),
    (
        Records,
        "data.kind.frobnicate('x')",
        "filter column 11: unknown function `frobnicate`; a value has `contains`, \
         `startsWith`, `endsWith`, `matches`, `lowerAscii`, `upperAscii`, `trim`, \
         `split`, `replace`, `substring`, `indexOf`, `lastIndexOf`, `charAt`, \
         `getFullYear`, `getMonth`, `getDate`, `getDayOfMonth`, `getDayOfWeek`, \
         `getDayOfYear`, `getHours`, `getMinutes`, `getSeconds`, `getMilliseconds`, \
         `exists`, `all`, `exists_one`, `existsOne`, `map`, `filter`, `size` and \
         `join`",
    ),
    (
        Records,
        "frobnicate(data.kind)",
        "filter column 1: unknown function `frobnicate`; the functions are `size`, `int`, \
         `uint`, `double`, `string`, `bool`, `bytes`, `dyn`, `type`, `timestamp`, \
         `duration` and `has`",
    ),
    (
        Records,
        "contains(data.kind, 'x')",
        "filter column 1: unknown function `contains`; write it after a value, as in \
         `x.contains(...)`",
    ),
    (
        Records,
        "data.kind.timestamp() == create_time",
        "filter column 11: unknown function `timestamp`; write `timestamp(...)`",
    ),
    (
        Records,
        "summary.status == 1",
        "filter column 1: `summary` is a variable of results; those of records are `parent`, \
         `result_name`, `name`, `data_type`, `uid`, `create_time`, `update_time`, \
         `tier`, `run`, `data`, `pipelinerun`, `taskrun`, `customrun` and `workflow`",
    ),
    (
        Results,
        "summary.state == 1",
        "filter column 9: `summary` has no field `state`; did you mean `status`?",
    ),
    (
        Results,
        "data.kind == 'x'",
        "filter column 1: `data` is a variable of records; those of results are `parent`, \
         `uid`, `annotations`, `summary`, `create_time` and `update_time`",
    ),
    (
        Results,
        "summary.status == 'FAILED'",
        "filter column 19: unknown status `FAILED`; want one of `UNKNOWN`, `SUCCESS`, \
         `FAILURE`, `TIMEOUT` and `CANCELLED`",
    ),
    (
        Results,
        "summary.status in ['SUCCESS', 'BAD']",
        "filter column 31: unknown status `BAD`; want one of `UNKNOWN`, `SUCCESS`, `FAILURE`, \
         `TIMEOUT` and `CANCELLED`",
    ),
];

#[test]
fn types_go_together() {
    refused(TYPES_GO_TOGETHER);
}

const TYPES_GO_TOGETHER: &Refusals = &[
    (
        Records,
        "parent == 5",
        "filter column 8: `parent` is text; put the number in quotes, `\"5\"`",
    ),
    (
        Records,
        "parent",
        "filter column 1: a filter must be true or false, but `parent` is text; compare it, \
         as in `== \"...\"`",
    ),
    (
        Results,
        "parent",
        "filter column 1: a filter must be true or false, but `parent` is text; compare it, \
         as in `== \"...\"`",
    ),
    (
        Results,
        "annotations['a'] == 5",
        "filter column 18: `annotations[\"a\"]` is text; put the number in quotes, `\"5\"`",
    ),
    (
        Records,
        "create_time > '2026-01-01T00:00:00Z'",
        "filter column 13: `create_time` is a timestamp; write the other side as \
         `timestamp(\"2026-01-01T00:00:00Z\")`",
    ),
    (
        Records,
        "create_time == 5 || true",
        "filter column 13: `create_time` is a timestamp and cannot be compared with an \
         integer by `==`",
    ),
    (
        Records,
        "parent && true",
        "filter column 1: `&&` wants tests, but `parent` is text; compare it, as in `== \
         \"...\"`",
    ),
    (
        Records,
        "!parent",
        "filter column 2: `!` wants tests, but `parent` is text; compare it, as in `== \
         \"...\"`",
    ),
    (
        Records,
        "-parent == 'x'",
        "filter column 1: `parent` is text, so it has no `-`",
    ),
    (
        Records,
        "parent + 1 == 'x'",
        "filter column 8: `+` does not combine text with an integer",
    ),
    (
        Records,
        "parent in [1, 2]",
        "filter column 12: `parent` is text, so it is never an integer",
    ),
    (
        Records,
        "'x' in parent",
        "filter column 5: `parent` is text, but `in` wants a list or a map; for a part of a \
         text write `.contains(\"...\")`",
    ),
    (
        Records,
        "parent.name == 'x'",
        "filter column 8: `parent` is text, so it has no field `name`",
    ),
    (
        Records,
        "parent[0] == 'x'",
        "filter column 8: `parent` is text, so it has no elements",
    ),
    (
        Records,
        "parent.startsWith(5)",
        "filter column 19: `startsWith` wants text here, but `5` is an integer",
    ),
    (
        Records,
        "parent.startsWith()",
        "filter column 8: `startsWith` wants 1 argument, not 0",
    ),
    (
        Records,
        "create_time.contains('x')",
        "filter column 13: `create_time` is a timestamp, but `contains` is for text",
    ),
    (
        Records,
        "parent.getHours() == 1",
        "filter column 8: `parent` is text; write `timestamp(...)` around it",
    ),
    (
        Records,
        "parent.exists(c, true)",
        "filter column 8: `parent` is text, so it has no elements",
    ),
    (
        Records,
        "data.list.exists(1, true)",
        "filter column 18: a variable is one name, as in `.exists(c, ...)`",
    ),
    (
        Records,
        "data.list.exists(c)",
        "filter column 11: this wants a variable and what to ask of it, as in `.exists(c, \
         c.reason == \"Failed\")`",
    ),
    (
        Records,
        "has(data)",
        "filter column 5: `has` wants one field, as in `has(data.status.startTime)`",
    ),
    (
        Records,
        "has(parent.x)",
        "filter column 12: `parent` is text, so it has no field `x`",
    ),
    (
        Records,
        "size(5) == 1",
        "filter column 1: `5` is an integer, which `size` does not take",
    ),
    (
        Records,
        "timestamp(1, 2) == create_time",
        "filter column 1: `timestamp` wants one argument, not 2",
    ),
    (
        Records,
        "['a', 'b'].contains('a')",
        "filter column 12: this is a list, but `contains` is for text; write `... in` it",
    ),
    (
        Records,
        "data.list[true] == 1",
        "filter column 11: `data.list` is chosen from by a number or text, not by a boolean",
    ),
    (
        Records,
        "null < 1",
        "filter column 6: `null` is null and cannot be compared with an integer by `<`",
    ),
    (
        Results,
        "summary == 'x'",
        "filter column 9: `summary` is a group of fields; name one, such as `summary.status`",
    ),
    (
        Results,
        "summary",
        "filter column 1: a filter must be true or false, but `summary` is a group of fields; \
         compare it",
    ),
    (
        Records,
        "run == 'x'",
        "filter column 5: `run` is a group of fields; name one, such as `run.outcome`",
    ),
    (
        Records,
        "run.pipelin == 'x'",
        "filter column 5: `run` has no field `pipelin`; did you mean `pipeline`?",
    ),
    (
        Records,
        "run.outcome == 'FAILED'",
        "filter column 16: unknown status `FAILED`; want one of `UNKNOWN`, `SUCCESS`, `FAILURE`, \
         `TIMEOUT` and `CANCELLED`",
    ),
    (
        Results,
        "run.outcome == FAILURE",
        "filter column 1: `run` is a variable of records; those of results are `parent`, `uid`, \
         `annotations`, `summary`, `create_time` and `update_time`",
    ),
    (
        Results,
        "annotations < annotations",
        "filter column 13: `annotations` is a map, so it has no `<`",
    ),
    (
        Records,
        "data.kind.map(c, c)",
        "filter column 1: a filter must be true or false, but `data.kind.map()` is a list; \
         ask for its elements, as in `.size() > 0`",
    ),
];

#[test]
fn constants_make_sense() {
    refused(CONSTANTS_MAKE_SENSE);
}

const CONSTANTS_MAKE_SENSE: &Refusals = &[
    (
        Records,
        "create_time > timestamp('yesterday')",
        "filter column 15: `yesterday` is not a time; write it as `2026-01-02T03:04:05Z`",
    ),
    (
        Records,
        "data.x > duration('5 minutes')",
        "filter column 10: `5 minutes` is not a duration; write it as `1h30m` or `90s`",
    ),
    (
        Records,
        "data.kind.matches('a(b')",
        "filter column 19: the pattern `a(b` is not a regular expression: unclosed group",
    ),
    (
        Records,
        "data.kind.matches('(a{1000}){1000}')",
        "filter column 19: the pattern `(a{1000}){1000}` is too large when compiled; shorten \
         it",
    ),
    (
        Records,
        "create_time.getHours('Mars/Phobos') == 1",
        "filter column 22: unknown time zone `Mars/Phobos`; want a name such as \
         `Europe/Berlin` or an offset such as `+02:00`",
    ),
    (
        Records,
        "int('x') == 1",
        "filter column 1: `x` is not a number of this type",
    ),
    (
        Records,
        "9223372036854775808 == 1",
        "filter column 1: the number does not fit 64 bits with a sign; write it with `.0`",
    ),
];

#[test]
fn the_language_is_kept_to() {
    refused(THE_LANGUAGE_IS_KEPT_TO);
}

const THE_LANGUAGE_IS_KEPT_TO: &Refusals = &[
    (
        Records,
        "data.kind ==",
        "filter column 13: it ends where a value is wanted",
    ),
    (
        Records,
        "data.kind = 'x'",
        "filter column 11: `=` is not an operator; use `==`",
    ),
    (
        Records,
        "data.kind == 'x' and true",
        "filter column 18: `and` is written `&&`",
    ),
    (
        Records,
        "data.kind == 'x' & true",
        "filter column 18: `&` is not an operator; use `&&`",
    ),
    (
        Records,
        "data.kind == 'x",
        "filter column 14: the text that begins here has no closing `'`",
    ),
    (
        Records,
        "data.kind == '\\d'",
        "filter column 15: this escape is unknown; write `\\\\` for a backslash, or put `r` \
         before the text",
    ),
    (
        Records,
        "(data.kind == 'x'",
        "filter column 18: it ends inside brackets; close them",
    ),
    (
        Records,
        "data.kind == 'x')",
        "filter column 17: `)` is not expected here; join tests with `&&` or `||`, and put \
         text in quotes",
    ),
    (
        Records,
        "data.kind == 'x' 'y'",
        "filter column 18: `'y'` is not expected here; join tests with `&&` or `||`, and put \
         text in quotes",
    ),
    (
        Records,
        "data.kind == \"日本\" @",
        "filter column 19: `@` means nothing here",
    ),
    (
        Records,
        "true &&\n  dta.kind == 'x'",
        "filter line 2 column 3: unknown name `dta`; did you mean `data`?",
    ),
    (
        Records,
        "data.`a$` == 1",
        "filter column 6: a name in backticks holds letters, digits, `_.-/` and blanks, and \
         ends with a backtick; for other names write `[\"name\"]`",
    ),
    (
        Records,
        "for == 1",
        "filter column 1: `for` is a reserved word and cannot be a name here",
    ),
    (
        Records,
        "Foo{a: 1} == 1",
        "filter column 4: `Foo{...}` builds a message, which filters cannot do; compare its \
         fields",
    ),
    (
        Records,
        "data.?kind == 'x'",
        "filter column 5: `?` before a field or element is not supported; what is missing is \
         unknown and does not match, and `has(...)` asks for it",
    ),
    (
        Records,
        "duration('-9223372036854775808s') < duration('1s')",
        "filter column 1: `-9223372036854775808s` is not a duration; write it as `1h30m` or `90s`",
    ),
    (
        Records,
        "1r'x' == 1",
        "filter column 3: a text cannot follow a number",
    ),
];
