//! Lists are those of the evaluator in plain Rust.

use hindsight_kfp::{
    model::{NewPipeline, NewVersion, Pipeline, PipelineVersion},
    query::{Comparison, Field, Item, ListAsk, Operand, Page, Predicate, Query, Scope, Sort, Test},
    store::PipelineStore,
};
use proptest::{
    prelude::{Just, Strategy, any, prop, prop_oneof},
    strategy::ValueTree as _,
    test_runner::TestRunner,
};

use crate::{at, on_databases, pipeline, spec, tags, version};

/// Texts that databases may order, compare or escape otherwise than Rust does.
const TEXTS: [&str; 17] = [
    "",
    "a",
    "A",
    "ab",
    "aB",
    "b_",
    "b%",
    "é",
    "É",
    "\u{1F600}",
    "\\",
    "z'\"",
    // With parts of three characters and more.
    "Trainer_É%",
    "RAINER_",
    "rainer_É",
    "rainer_é",
    "\u{130}stanbul \u{1F600}x",
];

const TAGS: [(&str, &str); 4] = [("team", "a"), ("team", "A"), ("é", "%"), ("$.a", "1")];

fn namespace() -> Scope {
    Scope::Pipelines {
        namespace: String::new(),
    }
}

fn predicates(fields: &'static [Field]) -> impl Strategy<Value = Vec<Predicate>> {
    let comparison = prop::sample::select(vec![
        Comparison::Equals,
        Comparison::NotEquals,
        Comparison::Greater,
        Comparison::GreaterOrEquals,
        Comparison::Less,
        Comparison::LessOrEquals,
    ]);
    let text = || prop::sample::select(&TEXTS[..]).prop_map(|text| Operand::Text(text.to_owned()));
    let time = || (0_i64..4).prop_map(Operand::Seconds);
    let operand = move || prop_oneof![3 => text(), 1 => time()];
    let test = prop_oneof![
        4 => (comparison, operand()).prop_map(|(how, operand)| Test::Compare(how, operand)),
        1 => prop::collection::vec(operand(), 0..3).prop_map(Test::In),
        2 => prop::sample::select(&TEXTS[..]).prop_map(|part| Test::Substring(part.to_owned())),
    ];
    let plain = (prop::sample::select(fields), test)
        .prop_filter_map("values fit", |(field, test)| Predicate::new(field, test));
    let tag = prop::sample::select(&TAGS[..]).prop_filter_map("tags fit", |(key, value)| {
        let equals = Test::Compare(Comparison::Equals, Operand::Text(value.to_owned()));
        Predicate::new(Field::Tag(key.to_owned()), equals)
    });
    prop::collection::vec(prop_oneof![5 => plain, 1 => tag], 0..3)
}

fn sorts(fields: &'static [Field]) -> impl Strategy<Value = Sort> {
    let sort = |(field, descending)| Sort { field, descending };
    (prop::sample::select(fields), any::<bool>()).prop_map(sort)
}

const OF_PIPELINES: &[Field] = &[
    Field::Id,
    Field::Name,
    Field::DisplayName,
    Field::CreatedAt,
    Field::Description,
    Field::Namespace,
];

const OF_VERSIONS: &[Field] = &[
    Field::Id,
    Field::Name,
    Field::DisplayName,
    Field::CreatedAt,
    Field::Description,
    Field::Status,
    Field::PipelineSpec,
];

/// Thirty pipelines, and a few elsewhere.
async fn pipelines(store: &dyn PipelineStore) -> Vec<Pipeline> {
    let mut all = Vec::new();
    for number in 0..30_usize {
        let text = TEXTS[number % TEXTS.len()];
        let new = NewPipeline {
            display_name: TEXTS[number * 7 % TEXTS.len()].to_owned(),
            description: text.repeat(1 + number % 3 * 200),
            tags: tags(&TAGS[number % 5..(number % 5 + 2).min(TAGS.len()).max(number % 5)]),
            now: at(number as i64 % 4),
            ..pipeline(&format!("{text}{}", number / TEXTS.len()))
        };
        all.push(store.create_pipeline(new).await.unwrap());
    }
    for number in 0..3 {
        let elsewhere = NewPipeline {
            namespace: "elsewhere".to_owned(),
            ..pipeline(&format!("{number}"))
        };
        store.create_pipeline(elsewhere).await.unwrap();
    }
    all
}

/// Every page of a query.
async fn compare<T: Item + Clone + std::fmt::Debug + PartialEq, W>(
    all: &[T],
    query: Query,
    page: impl Fn(Query) -> W,
) where
    W: Future<Output = Page<T>>,
{
    let mut query = query;
    loop {
        let found = page(query.clone()).await;
        let expected = query.page(all.iter().cloned());
        assert_eq!(found, expected, "{query:?}");
        if found.next.is_empty() {
            return;
        }
        let last = found
            .items
            .last()
            .expect("a page that another follows has an item");
        query.after = Some(query.position(last));
    }
}

#[tokio::test]
async fn kfp_22_lists_of_pipelines_are_those_of_the_model() {
    on_databases(async |store| {
        let all = pipelines(&*store).await;
        let asked = (
            predicates(OF_PIPELINES),
            sorts(OF_PIPELINES),
            1_u32..12,
            prop_oneof![Just(usize::MAX), 0..3000_usize],
        );
        let mut runner = TestRunner::deterministic();
        for _ in 0..150 {
            let (predicates, sort, size, room) = asked.new_tree(&mut runner).unwrap().current();
            let query = Query {
                scope: namespace(),
                predicates,
                sort,
                after: None,
                size,
                room,
            };
            let page = async |query: Query| store.pipelines(&query).await.unwrap();
            compare(&all, query, page).await;
        }
    })
    .await;
}

/// Each text as a part of either name, in the orders in which parts are looked for in different ways.
#[tokio::test]
async fn kfp_22_parts_of_names_are_found_whatever_their_characters() {
    on_databases(async |store| {
        let all = pipelines(&*store).await;
        let page = async |query: Query| store.pipelines(&query).await.unwrap();
        for part in TEXTS {
            for field in [Field::Name, Field::DisplayName] {
                for order in [Field::CreatedAt, Field::Name, Field::Description] {
                    let test = Test::Substring(part.to_owned());
                    let query = Query {
                        scope: namespace(),
                        predicates: vec![Predicate::new(field.clone(), test).unwrap()],
                        sort: Sort {
                            field: order,
                            descending: false,
                        },
                        after: None,
                        size: 20,
                        room: usize::MAX,
                    };
                    compare(&all, query, page).await;
                }
            }
        }
    })
    .await;
}

async fn versions(store: &dyn PipelineStore) -> (String, Vec<PipelineVersion>) {
    let of = store.create_pipeline(pipeline("of")).await.unwrap();
    let other = store.create_pipeline(pipeline("other")).await.unwrap();
    let mut all = Vec::new();
    for number in 0..20_usize {
        let text = TEXTS[number % TEXTS.len()];
        let new = || NewVersion {
            display_name: TEXTS[number * 5 % TEXTS.len()].to_owned(),
            description: text.to_owned(),
            tags: tags(&TAGS[number % 4..=number % 4]),
            spec: spec(text),
            now: at(number as i64 % 4),
            ..version(&format!("{text}{}", number / TEXTS.len()))
        };
        all.push(store.create_version(&of.id, new()).await.unwrap());
        store.create_version(&other.id, new()).await.unwrap();
    }
    (of.id, all)
}

#[tokio::test]
async fn kfp_22_lists_of_versions_are_those_of_the_model() {
    on_databases(async |store| {
        let (pipeline_id, all) = versions(&*store).await;
        let asked = (predicates(OF_VERSIONS), sorts(OF_VERSIONS), 1_u32..9);
        let mut runner = TestRunner::deterministic();
        for _ in 0..150 {
            let (predicates, sort, size) = asked.new_tree(&mut runner).unwrap().current();
            let query = Query {
                scope: Scope::Versions {
                    pipeline_id: pipeline_id.clone(),
                },
                predicates,
                sort,
                after: None,
                size,
                room: usize::MAX,
            };
            let page = async |query: Query| store.versions(&query).await.unwrap();
            compare(&all, query, page).await;
        }
    })
    .await;
}

/// Of more rows than are sorted at once, which are then looked for in order.
#[tokio::test]
async fn kfp_23_a_walk_over_many_pipelines_skips_and_repeats_none_that_stays() {
    on_databases(async |store| {
        let mut left = Vec::new();
        for number in 0..1100_i64 {
            let new = NewPipeline {
                now: at(number % 7),
                ..pipeline(&format!("common-{number}"))
            };
            left.push(store.create_pipeline(new).await.unwrap());
        }
        let filter =
            r#"{"predicates":[{"operation":"IS_SUBSTRING","key":"name","string_value":"MON-"}]}"#;
        let mut ask = ListAsk {
            page_size: 200,
            sort_by: "created_at desc".to_owned(),
            filter: filter.to_owned(),
            ..ListAsk::default()
        };
        let mut seen = Vec::new();
        loop {
            let query = Query::new(namespace(), &ask, usize::MAX).unwrap();
            let page = store.pipelines(&query).await.unwrap();
            let stayed = left.iter().cloned();
            assert_eq!(page, query.page(stayed));
            let last = page.items.last().unwrap().id.clone();
            seen.extend(page.items.into_iter().map(|item| item.id));
            if page.next.is_empty() {
                break;
            }
            store.delete_pipeline(&last, false).await.unwrap();
            left.retain(|item| item.id != last);
            ask = ListAsk {
                page_size: 200,
                page_token: page.next,
                ..ListAsk::default()
            };
        }
        assert_eq!(seen.len(), 1100);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1100);
    })
    .await;
}
