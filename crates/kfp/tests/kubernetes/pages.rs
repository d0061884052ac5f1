//! Pages of lists.

use hindsight_kfp::{model::NewPipeline, store::PipelineStore};

use crate::fixtures::{
    GROUP, all_pipelines, all_versions, ask, pipeline, pipeline_object, sim, tags, version,
};

#[tokio::test]
async fn kfp_23_pages_neither_skip_nor_repeat_when_items_vanish_between_them() {
    let (sim, store) = sim();
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        sim.create(pipeline_object("ci", name)).unwrap();
    }
    let mut seen = Vec::new();
    let mut token = String::new();
    // Of each page the last item is deleted, of the first one also an item of the next page.
    let mut vanishing = [vec!["b", "c"], vec!["e"], vec!["g"]].into_iter();
    loop {
        let query = all_pipelines("", &ask(2, &token, "name", ""));
        let page = store.pipelines(&query).await.unwrap();
        seen.extend(page.items.into_iter().map(|pipeline| pipeline.name));
        for name in vanishing.next().into_iter().flatten() {
            sim.delete(GROUP, "pipelines", "ci", name).unwrap();
        }
        if page.next.is_empty() {
            break;
        }
        token = page.next;
    }
    assert_eq!(seen, ["a", "b", "d", "e", "f", "g"]);
}

#[tokio::test]
async fn kfp_22_kfp_47_filters_and_orders_are_those_of_a_database() {
    let (_sim, store) = sim();
    for (name, display_name, team) in [
        ("one", "Zeta", "a"),
        ("two", "alpha", "b"),
        ("three", "Beta", "a"),
    ] {
        let new = NewPipeline {
            display_name: display_name.into(),
            tags: tags(&[("team", team)]),
            ..pipeline(name)
        };
        store.create_pipeline(new).await.unwrap();
    }
    let names = async |sort_by: &str, filter: &str| {
        let query = all_pipelines("", &ask(0, "", sort_by, filter));
        let page = store.pipelines(&query).await.unwrap();
        assert_eq!(page.total, page.items.len() as u64);
        let names = page.items.into_iter().map(|pipeline| pipeline.name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("name desc", "").await, ["two", "three", "one"]);
    let tagged = r#"{"predicates":[{"operation":"EQUALS","key":"tags.team","string_value":"a"}]}"#;
    assert_eq!(names("name", tagged).await, ["one", "three"]);
    let part = r#"{"predicates":[{"operation":9,"key":"name","stringValue":"t"}]}"#;
    assert_eq!(names("name", part).await, ["three", "two"]);
    let range = r#"{"predicates":[{"operation":"GREATER_THAN","key":"name","stringValue":"one"}]}"#;
    assert_eq!(names("name", range).await, ["three", "two"]);
}

#[tokio::test]
async fn kfp_48_a_list_of_more_objects_than_one_answer_has_is_whole() {
    let (sim, store) = sim();
    for index in 0..1203 {
        sim.create(pipeline_object("ci", &format!("p{index:04}")))
            .unwrap();
    }
    let page = store
        .pipelines(&all_pipelines("", &ask(1000, "", "name desc", "")))
        .await
        .unwrap();
    assert_eq!((page.total, page.items.len()), (1203, 200));
    assert_eq!(page.items[0].name, "p1202");
}

#[tokio::test]
async fn kfp_23_pages_of_versions_go_on_after_the_last_one() {
    let (_sim, store) = sim();
    let made = store.create_pipeline(pipeline("hello")).await.unwrap();
    for name in ["a", "b", "c"] {
        store.create_version(&made.id, version(name)).await.unwrap();
    }
    let first = store
        .versions(&all_versions(&made.id, &ask(2, "", "name desc", "")))
        .await
        .unwrap();
    let last = store
        .versions(&all_versions(&made.id, &ask(2, &first.next, "", "")))
        .await
        .unwrap();
    let names = first
        .items
        .iter()
        .chain(&last.items)
        .map(|version| version.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["c", "b", "a"]);
    assert_eq!((last.total, last.next.as_str()), (3, ""));
}
