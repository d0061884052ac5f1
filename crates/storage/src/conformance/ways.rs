//! Lists of many: whichever way leads to the rows, they are the same rows in the same order.

mod names;
mod rows;

use std::num::NonZeroU32;

use futures::{StreamExt as _, stream};

use self::rows::{ROWS, SECOND, STEP, began, row};
use super::{
    World,
    fixtures::{self, AT_ONCE, everything, result, test, time},
};
use crate::seam::{Change, ListQuery};
use hindsight_filter::columns::object_columns;
use hindsight_filter::model::Resource;
use hindsight_filter::{
    Order,
    condition::{Column, Condition, Is, ObjectField, Test, Value},
};

/// The list that is asked for with payloads, too, in pages of few bytes. Of its rows some were stored late.
const WITH_PAYLOADS: &str = "a long while, and a label";

fn equal(column: Column, text: &str) -> Condition {
    test(column, Is::Equal(Value::Text(text.to_owned())))
}

type Asked = (&'static str, Vec<Condition>, fn(i64) -> bool);

fn label(key: &str, value: &str) -> Condition {
    equal(Column::Label(key.to_owned()), value)
}

fn object(field: ObjectField, text: &str) -> Condition {
    equal(Column::Object(field), text)
}

/// What the run `at` failed with, which is of a kind that is known.
fn signature(at: i64) -> String {
    let payload = row(at).data.expect("it has a payload");
    object_columns(&payload).signature.expect("it failed")
}

fn failed() -> Condition {
    object(ObjectField::Reason, "Failed")
}

fn labels_and_columns() -> Vec<Asked> {
    vec![
        (
            "a pipeline, of those without a label",
            vec![equal(Column::Pipeline, "pipeline-7")],
            |at| at % 50 == 7 && at >= 40,
        ),
        (
            "a pipeline of a label",
            vec![equal(Column::Pipeline, "labelled")],
            |at| at < 40,
        ),
        (
            "a pipeline and failed",
            vec![equal(Column::Pipeline, "pipeline-7"), failed()],
            |at| at % 200 == 7 && at >= 40,
        ),
        ("a label, 1 in 100", vec![label("tier", "gold")], |at| {
            at % 100 == 47
        }),
        ("a label of old rows", vec![label("era", "old")], |at| {
            at < 400
        }),
        (
            "two labels",
            vec![label("tier", "gold"), label("era", "old")],
            |at| at % 100 == 47 && at < 400,
        ),
        (
            "labels that exclude each other",
            vec![label("tier", "gold"), label("tier", "tin")],
            |_| false,
        ),
        (
            "a label and failed",
            vec![label("tier", "gold"), failed()],
            |at| at % 200 == 47,
        ),
        (
            "a pipeline and failed",
            vec![object(ObjectField::PipelineRef, "pipeline-7"), failed()],
            |at| at % 200 == 7,
        ),
        (
            "a label and a rare outcome",
            vec![label("tier", "tin"), object(ObjectField::Reason, "Rare")],
            |at| at % 40 == 8 && at < 100,
        ),
        (
            "a rare signature",
            vec![equal(Column::Signature, &signature(88))],
            |at| at == 88,
        ),
        (
            "a signature and a label",
            vec![
                equal(Column::Signature, &signature(87)),
                label("tier", "gold"),
            ],
            |at| at % 200 == 47 && at >= 60,
        ),
        (
            "a rare status",
            vec![object(ObjectField::ConditionStatus, "False")],
            |at| at % 40 == 7 || at % 40 == 8 && at < 100,
        ),
    ]
}

/// One of several values, of which each may lead to rows by itself.
fn several() -> Vec<Asked> {
    let one_of = |column, values: &[&str]| {
        let values = values.iter().map(|text| Value::Text((*text).to_owned()));
        test(column, Is::OneOf(values.collect()))
    };
    let tier = |values: &[&str]| one_of(Column::Label("tier".to_owned()), values);
    let types = |values: &[&str]| one_of(Column::DataType, values);
    let old = ["tekton.dev/v1.CustomRun", "tekton.dev/v1.PipelineRun"];
    let both = ["tekton.dev/v1.CustomRun", "tekton.dev/v1.TaskRun"];
    let has = |part: &str, negated| {
        Condition::Test(Test {
            column: Column::Labels,
            is: Is::Contains(part.to_owned()),
            negated,
        })
    };
    let named = |part: &str| {
        let is = Is::Contains(part.to_owned());
        test(Column::Object(ObjectField::Name), is)
    };
    vec![
        (
            "one of some labels, one twice",
            vec![tier(&["gold", "\"$.a\" || 'iron'", "gold"])],
            |at| at % 100 == 47,
        ),
        (
            "one of three pipelines, one twice",
            vec![one_of(
                Column::Pipeline,
                &["pipeline-7", "labelled", "none", "pipeline-7"],
            )],
            |at| at < 40 || at % 50 == 7,
        ),
        ("one of all labels", vec![tier(&["gold", "tin"])], |_| true),
        ("one of no labels", vec![tier(&[])], |_| false),
        (
            "one of some labels, failed",
            vec![tier(&["gold", "iron"]), failed()],
            |at| at % 200 == 47,
        ),
        ("one of two types, one missing", vec![types(&old)], |at| {
            at < 60
        }),
        (
            "one of two types, failed",
            vec![types(&both), failed()],
            |at| at % 40 == 7,
        ),
        (
            "one of two types, and a label",
            vec![types(&both), label("tier", "gold")],
            |at| at % 100 == 47,
        ),
        (
            "one of two types, and one of some labels",
            vec![types(&old), tier(&["gold", "iron"])],
            |at| at == 47,
        ),
        (
            "one of two types, and a part of a name",
            vec![types(&both), named("99")],
            |at| at.to_string().contains("99"),
        ),
        (
            "one of two types, and a part of labels",
            vec![types(&both), has("labelled", false)],
            |at| at < 40,
        ),
        (
            "one of two types, without a part of labels",
            vec![types(&both), has("tin", true)],
            |at| at % 100 == 47,
        ),
        (
            "one of two types, without what all have",
            vec![types(&old), has("tier", true)],
            |_| false,
        ),
    ]
}

/// Why runs are as they are, which a condition or a phase says.
fn reasons() -> Vec<Asked> {
    let one_of = |column| {
        let texts = ["Failed", "Rare", "Failed"].map(|text| Value::Text(text.to_owned()));
        test(column, Is::OneOf(texts.to_vec()))
    };
    vec![
        (
            "a reason or phase",
            vec![equal(Column::Reason, "Failed")],
            |at| matches!(at % 40, 7 | 27),
        ),
        (
            "a reason or phase, and a label",
            vec![equal(Column::Reason, "Failed"), label("tier", "gold")],
            |at| at % 100 == 47 && matches!(at % 40, 7 | 27),
        ),
        (
            "one of two reasons or phases",
            vec![one_of(Column::Reason)],
            |at| matches!(at % 40, 7 | 27) || at % 40 == 8 && at < 100,
        ),
        (
            "one of two reasons, not phases",
            vec![one_of(Column::Object(ObjectField::Reason))],
            |at| at % 40 == 7 || at % 40 == 8 && at < 100,
        ),
    ]
}

/// How runs ended, alone and beside what else leads to rows.
fn outcomes() -> Vec<Asked> {
    let outcome = |outcome| test(Column::Outcome, Is::Equal(Value::Int(outcome)));
    let one_of = |outcomes: &[i64]| {
        let values = outcomes.iter().map(|outcome| Value::Int(*outcome));
        test(Column::Outcome, Is::OneOf(values.collect()))
    };
    let pipeline = || equal(Column::Pipeline, "pipeline-7");
    // Rows before are of a type that is none of runs.
    const RUN: i64 = 60;
    const UNFINISHED: fn(i64) -> bool = |at| at % 40 == 9 && (RUN..200).contains(&at);
    const FAILED: fn(i64) -> bool = |at| at >= RUN && (at % 40 == 7 || at % 40 == 8 && at < 100);
    vec![
        ("failures", vec![outcome(2)], FAILED),
        ("not finished", vec![outcome(0)], UNFINISHED),
        ("of no run", vec![outcome(4)], |_| false),
        ("one of two outcomes", vec![one_of(&[2, 0, 2])], |at| {
            FAILED(at) || UNFINISHED(at)
        }),
        ("success or failure", vec![one_of(&[1, 2])], |at| {
            at >= RUN && !UNFINISHED(at)
        }),
        (
            "one of two outcomes, and a pipeline",
            vec![one_of(&[2, 3]), pipeline()],
            |at| at % 200 == 7 && at >= RUN,
        ),
        (
            "an outcome, a pipeline and a label",
            vec![outcome(2), pipeline(), label("tier", "tin")],
            |at| at % 200 == 7 && at >= RUN,
        ),
        (
            "an outcome, and a label",
            vec![outcome(2), label("tier", "gold")],
            |at| at % 200 == 47 && at >= RUN,
        ),
    ]
}

fn durations() -> Vec<Asked> {
    let longer =
        |column: Column, seconds: i64| test(column, Is::AtLeast(Value::Int(seconds * SECOND)));
    let took = |seconds| longer(Column::ObjectDuration, seconds);
    let run_took = |seconds| longer(Column::Duration, seconds);
    vec![
        ("long, 1 in 140", vec![took(695)], |at| at % 700 >= 695),
        ("long, most", vec![took(300)], |at| at % 700 >= 300),
        ("ten minutes", vec![took(600)], |at| at % 700 >= 600),
        ("runs of ten minutes", vec![run_took(600)], |at| {
            at % 700 >= 600
        }),
        ("long and failed", vec![took(695), failed()], |at| {
            at % 700 >= 695 && at % 40 == 7
        }),
        ("long runs, 1 in 140", vec![run_took(695)], |at| {
            at % 700 >= 695
        }),
        (
            "long runs of a label",
            vec![run_took(695), label("era", "old")],
            |_| false,
        ),
    ]
}

fn started(is: Is) -> Condition {
    test(Column::Object(ObjectField::StartTime), is)
}

/// When what was stored at a step began, if it was neither late nor early.
fn at(step: i64) -> Value {
    Value::Time(time(step * STEP - 3_000 * SECOND))
}

/// Times, of rows with a label of which some were stored late.
fn times_and_labels() -> Vec<Asked> {
    vec![
        (
            WITH_PAYLOADS,
            vec![started(Is::AtMost(at(5_000))), label("tier", "gold")],
            |at| began(at) <= 5_000 * STEP && at % 100 == 47,
        ),
        (
            "ended since, and a part of a label",
            vec![
                test(Column::Ended, Is::AtLeast(at(6_000))),
                test(Column::Labels, Is::Contains("gold".to_owned())),
            ],
            |at| began(at) + at % 700 * SECOND >= 6_000 * STEP && at % 100 == 47,
        ),
    ]
}

fn times_and_names() -> Vec<Asked> {
    let named = |part: &str| {
        test(
            Column::Object(ObjectField::Name),
            Is::Contains(part.to_owned()),
        )
    };
    vec![
        (
            "a while long ago",
            vec![started(Is::AtLeast(at(100))), started(Is::Less(at(200)))],
            |at| (100 * STEP..200 * STEP).contains(&began(at)),
        ),
        (
            "runs of a while long ago",
            vec![
                test(Column::Began, Is::AtLeast(at(100))),
                test(Column::Began, Is::Less(at(200))),
            ],
            |at| (100 * STEP..200 * STEP).contains(&began(at)),
        ),
        (
            "runs that ended before",
            vec![test(Column::Ended, Is::Less(at(100)))],
            |at| at >= 60 && began(at) + at % 700 * SECOND < 100 * STEP,
        ),
        (
            "a while long ago, and a label",
            vec![started(Is::AtMost(at(400))), label("tier", "gold")],
            |at| began(at) <= 400 * STEP && at % 100 == 47,
        ),
        (
            "failed since",
            vec![test(Column::Began, Is::AtLeast(at(6_000))), failed()],
            |at| at >= 12_000 && at % 40 == 7,
        ),
        (
            "began long after it ended",
            vec![
                started(Is::AtLeast(at(5_000))),
                test(Column::Ended, Is::Less(at(1_000))),
            ],
            |_| false,
        ),
        (
            "a time to come",
            vec![started(Is::Greater(at(ROWS)))],
            |_| false,
        ),
        ("a part of a name", vec![named("99")], |at| {
            at.to_string().contains("99")
        }),
        (
            "a part of a name and a label",
            vec![named("-4"), label("era", "old")],
            |at| at < 400 && at.to_string().starts_with('4'),
        ),
        (
            "an old type",
            vec![equal(Column::DataType, "tekton.dev/v1.CustomRun")],
            |at| at < 60,
        ),
        (
            "made long ago",
            vec![test(
                Column::CreateTime,
                Is::Less(Value::Time(time(50 * STEP))),
            )],
            |at| at < 100,
        ),
    ]
}

pub(super) async fn rows_are_the_same_whichever_way_they_are_found(world: World) {
    for parent in 0..3 {
        let result = result(&format!("p{parent}/results/r"), 0);
        world.given([Change::InsertResult(result)]).await;
    }
    let mut rows: Vec<i64> = (0..ROWS).collect();
    for some in rows.chunks(500) {
        let changes = some.iter().map(|at| Change::InsertRecord(row(*at)));
        world.given(changes).await;
    }
    let orders = [
        Order::by(Column::CreateTime, true),
        Order::by(Column::CreateTime, false),
        Order::by(Column::UpdateTime, true),
        Order::by(Column::Object(ObjectField::Name), false),
    ];
    for order in orders {
        let key = &order.keys()[0];
        match key.column {
            Column::UpdateTime => rows.sort_by_key(|at| at * 7_919 % ROWS),
            Column::CreateTime => rows.sort_unstable(),
            _ => rows.sort_by_key(ToString::to_string),
        }
        if key.descending {
            rows.reverse();
        }
        let asked = labels_and_columns().into_iter();
        let asked = asked
            .chain(several())
            .chain(reasons())
            .chain(outcomes())
            .chain(durations())
            .chain(times_and_labels())
            .chain(times_and_names())
            .chain(names::parts());
        let asked = asked.flat_map(|asked| [None, Some(1)].map(|parent| (asked.clone(), parent)));
        let agree = async |((asked, conditions, passes), parent): (Asked, Option<i64>)| {
            let mut query = ListQuery {
                scope: parent
                    .map_or("-/results/-".to_owned(), |p| format!("p{p}/results/-"))
                    .parse()
                    .unwrap(),
                condition: Condition::And(conditions),
                order: order.clone(),
                limit: NonZeroU32::new(97).unwrap(),
                bodies: false,
                ..everything()
            };
            let listed = fixtures::names(&world, Resource::Records, &query).await;
            let wanted = rows
                .iter()
                .filter(|at| passes(**at) && parent.is_none_or(|p| *at % 3 == p));
            let wanted: Vec<_> = wanted
                .map(|at| format!("p{}/results/r/records/{at}", at % 3))
                .collect();
            assert_eq!(listed, wanted, "{asked} by {order:?} of {parent:?}");
            if asked != WITH_PAYLOADS {
                return;
            }
            query.bodies = true;
            for most in [1, 8_000, 20_000, 40_000] {
                query.max_bytes = Some(most);
                let listed = fixtures::names(&world, Resource::Records, &query).await;
                assert_eq!(listed, wanted, "{asked}, {most} bytes, by {order:?}");
            }
        };
        stream::iter(asked)
            .for_each_concurrent(AT_ONCE, agree)
            .await;
    }
    names::renamed(&world).await;
}
