//! Questions that make no sense are refused with what would.

use super::{AggregateAsk, plan};
use hindsight_filter::CostBudget;

fn ask(group_by: &[String], measures: &[String]) -> AggregateAsk {
    AggregateAsk {
        group_by: group_by.to_vec(),
        measures: measures.to_vec(),
        ..AggregateAsk::default()
    }
}

#[track_caller]
fn refuses(ask: AggregateAsk, says: &[&str]) {
    let error = plan(&ask, &mut CostBudget::default())
        .unwrap_err()
        .to_string();
    for part in says {
        assert!(error.contains(part), "{error}");
    }
}

fn texts(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

#[test]
fn groups_that_are_none_are_refused() {
    for (by, says) in [
        (
            "fortnight",
            [
                "group_by `fortnight`: filter column 1",
                "want one of minute, hour",
            ],
        ),
        (
            "day(finished)",
            [
                "`finished` is no time of a record",
                "created, started, ended",
            ],
        ),
        (
            "data.metadata.labels.size() + 'a'",
            ["group_by `data", "column"],
        ),
        ("[1, 2]", ["it is a list", "name one value"]),
        (
            "signatures",
            ["`signatures` is not known", "did you mean `signature`?"],
        ),
        (
            "lable(team)",
            ["`lable(team)` is not known", "did you mean `label(team)`?"],
        ),
        ("label(a", ["ends inside", "group_by"]),
    ] {
        refuses(ask(&texts(by), &[]), &says);
    }
    let many: Vec<_> = (0..9).map(|n| format!("label(l{n})")).collect();
    refuses(ask(&many, &[]), &["more than 8 are given"]);
}

#[test]
fn measures_that_are_none_are_refused() {
    for (measure, says) in [
        (
            "p100(duration)",
            ["`p100(duration)` is not known", "p95(duration)"],
        ),
        ("p(duration)", ["is not known", "count"]),
        ("median", ["`median` is not known", "success_rate"]),
        (
            "avg(count)",
            ["`count` is no length of time", "duration or queue"],
        ),
        (
            "last(duration)",
            ["`duration` is no time of a record", "started"],
        ),
    ] {
        refuses(ask(&[], &texts(measure)), &says);
    }
}

#[test]
fn other_parts_are_refused_with_their_place() {
    let by = texts("day");
    let measures = texts("count,p95(duration)");
    let right = ask(&by, &measures);
    for (having, says) in [
        (
            "count > 3 && ",
            ["having column 14: `` compares nothing", "joined by `&&`"],
        ),
        (
            "count > many",
            [
                "having column 1: `many` cannot be compared with count",
                "a number",
            ],
        ),
        (
            "count > 1 && p95(duration) > x",
            ["column 14: `x` cannot", "`90s`"],
        ),
        ("max > 1", ["having column 1", "`max` is not known"]),
    ] {
        let having = having.to_owned();
        let right = right.clone();
        refuses(AggregateAsk { having, ..right }, &says);
    }
    let order_by = "count desc, p50(duration)".to_owned();
    refuses(
        AggregateAsk {
            order_by,
            ..right.clone()
        },
        &[
            "order_by column 13: `p50(duration)` is neither",
            "`day`, `count`, `p95(duration)`",
        ],
    );
    let time_zone = "Mars/Olympus".to_owned();
    refuses(
        AggregateAsk {
            time_zone,
            ..right.clone()
        },
        &["time_zone `Mars/Olympus` is not known", "Europe/Berlin"],
    );
    for limit in [-1, 10_001] {
        let right = right.clone();
        refuses(AggregateAsk { limit, ..right }, &["want 1 to 10000"]);
    }
}

#[test]
fn lists_may_be_in_one_text_or_many_and_name_a_thing_twice() {
    let by = [
        "label('a,b'), day(started)".to_owned(),
        "day(started)".to_owned(),
    ];
    let measures = texts(" p99.9(queue),count , count,last(ended)");
    let ask = AggregateAsk {
        having:
            "success_rate >= 95% && p95(duration) > 1h30m && last(ended) > '2026-01-01T00:00:00Z'"
                .to_owned(),
        order_by: "day(started) desc, count asc, label('a,b')".to_owned(),
        time_zone: "Asia/Kolkata".to_owned(),
        ..ask(&by, &measures)
    };
    let plan = plan(&ask, &mut CostBudget::default()).unwrap();
    let keys: Vec<_> = plan.keys.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(keys, ["label('a,b')", "day(started)"]);
    let names: Vec<_> = plan.measures.iter().map(super::Measure::name).collect();
    assert_eq!(names, ["p99.9(queue)", "count", "last(ended)"]);
    assert_eq!(plan.order.len(), 3);
}

#[test]
fn texts_cost_no_more_than_their_length() {
    // Each of these took time in the square of its length, or memory without end.
    let joined = "count>1&&".repeat(400) + "count>1";
    let right = ask(&texts("day"), &[]);
    let having = AggregateAsk {
        having: joined,
        ..right.clone()
    };
    refuses(having, &["having column 451: more than 50 comparisons"]);
    let long = "count>1&&".repeat(1_000_000);
    for field in ["having", "order_by", "time_zone"] {
        let mut asked = right.clone();
        *match field {
            "having" => &mut asked.having,
            "order_by" => &mut asked.order_by,
            _ => &mut asked.time_zone,
        } = long.clone();
        refuses(asked, &[field, "has 9000000 bytes, at most 4096 are read"]);
    }
    let labels: Vec<_> = (0..1_000_000).map(|n| format!("label(a{n})")).collect();
    refuses(
        ask(&labels, &[]),
        &["group_by has", "at most 20000 are read"],
    );
    refuses(ask(&labels[..1_000], &[]), &["more than 8 are given"]);
    let percentiles: Vec<_> = (1..1_000)
        .map(|n| format!("p{}.{}(duration)", n / 10, n % 10))
        .collect();
    refuses(ask(&[], &percentiles), &["more than 50 are asked for"]);
    let nothing = vec![String::new(); 1_000_000];
    refuses(ask(&nothing, &[]), &["group_by has 1000000 bytes"]);
}
