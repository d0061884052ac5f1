//! What is refused, word for word.

use crate::{filter::Filter, model::Resource};

#[track_caller]
fn refuses(filter: &str, because: &str) {
    let told = match Filter::compile(filter, Resource::Records) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    };
    if because.is_empty() {
        eprintln!("@@{filter}@@{told}");
        return;
    }
    assert_eq!(told, because, "{filter}");
}

#[track_caller]
fn refuses_of_results(filter: &str, because: &str) {
    let told = match Filter::compile(filter, Resource::Results) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    };
    if because.is_empty() {
        eprintln!("@@{filter}@@{told}");
        return;
    }
    assert_eq!(told, because, "{filter}");
}

#[test]
fn names_are_known() {
    refuses("dta.kind == 'x'", "");
    refuses("zzzzzz == 'x'", "");
    refuses("data_tpye == 'x'", "");
    refuses("TASKRUN == data_type", "");
    refuses("data.kind.startswith('x')", "");
    refuses("data.kind.frobnicate('x')", "");
    refuses("frobnicate(data.kind)", "");
    refuses("contains(data.kind, 'x')", "");
    refuses("data.kind.timestamp() == create_time", "");
    refuses("summary.status == 1", "");
    refuses_of_results("summary.state == 1", "");
    refuses_of_results("data.kind == 'x'", "");
    refuses_of_results("summary.status == 'FAILED'", "");
    refuses_of_results("summary.status in ['SUCCESS', 'BAD']", "");
}

#[test]
fn types_go_together() {
    refuses("parent == 5", "");
    refuses("parent", "");
    refuses_of_results("parent", "");
    refuses_of_results("annotations['a'] == 5", "");
    refuses("create_time > '2026-01-01T00:00:00Z'", "");
    refuses("create_time == 5 || true", "");
    refuses("parent && true", "");
    refuses("!parent", "");
    refuses("-parent == 'x'", "");
    refuses("parent + 1 == 'x'", "");
    refuses("parent in [1, 2]", "");
    refuses("'x' in parent", "");
    refuses("parent.name == 'x'", "");
    refuses("parent[0] == 'x'", "");
    refuses("parent.startsWith(5)", "");
    refuses("parent.startsWith()", "");
    refuses("create_time.contains('x')", "");
    refuses("parent.getHours() == 1", "");
    refuses("parent.exists(c, true)", "");
    refuses("data.list.exists(1, true)", "");
    refuses("data.list.exists(c)", "");
    refuses("has(data)", "");
    refuses("has(parent.x)", "");
    refuses("size(5) == 1", "");
    refuses("timestamp(1, 2) == create_time", "");
    refuses("['a', 'b'].contains('a')", "");
    refuses("data.list[true] == 1", "");
    refuses("null < 1", "");
    refuses_of_results("summary == 'x'", "");
    refuses_of_results("summary", "");
    refuses_of_results("annotations < annotations", "");
    refuses("data.kind.map(c, c)", "");
}

#[test]
fn constants_make_sense() {
    refuses("create_time > timestamp('yesterday')", "");
    refuses("data.x > duration('5 minutes')", "");
    refuses("data.kind.matches('a(b')", "");
    refuses("data.kind.matches('(a{1000}){1000}')", "");
    refuses("create_time.getHours('Mars/Phobos') == 1", "");
    refuses("int('x') == 1", "");
    refuses("9223372036854775808 == 1", "");
}

#[test]
fn the_language_is_kept_to() {
    refuses("data.kind ==", "");
    refuses("data.kind = 'x'", "");
    refuses("data.kind == 'x' and true", "");
    refuses("data.kind == 'x' & true", "");
    refuses("data.kind == 'x", "");
    refuses("data.kind == '\\d'", "");
    refuses("(data.kind == 'x'", "");
    refuses("data.kind == 'x')", "");
    refuses("data.kind == 'x' 'y'", "");
    refuses("data.kind == \"日本\" @", "");
    refuses("true &&\n  dta.kind == 'x'", "");
    refuses("data.`a$` == 1", "");
    refuses("for == 1", "");
    refuses("Foo{a: 1} == 1", "");
    refuses("data.?kind == 'x'", "");
    refuses("1r'x' == 1", "");
}
