//! Filters, orders and pages over REST.

use serde_json::{Value, json};

use super::{PIPELINES, Scene, encoded, id, on_each};

fn names(page: &Value) -> Vec<&str> {
    let of = page["pipelines"]
        .as_array()
        .or(page["pipeline_versions"].as_array());
    let of = of.map(Vec::as_slice).unwrap_or_default();
    of.iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}

/// The request of `kfp.Client().get_pipeline_id`, and that of the UI, which encodes a filter twice.
#[tokio::test]
async fn kfp_47_a_filter_is_found_encoded_once_and_twice() {
    on_each(async |scene: Scene| {
        for name in ["hello", "hello-2", "other"] {
            scene.made(name).await;
        }
        let filter =
            r#"{"predicates": [{"operation": 1, "key": "display_name", "stringValue": "hello"}]}"#;
        let form: String = form_urlencoded(filter);
        for text in [encoded(filter), encoded(&encoded(filter)), form] {
            let page = scene.get(&format!("{PIPELINES}?filter={text}")).await;
            assert_eq!(
                (names(&page), &page["total_size"]),
                (vec!["hello"], &json!(1)),
                "{text}"
            );
        }
        let part =
            r#"{"predicates":[{"operation":"IS_SUBSTRING","key":"name","string_value":"HEL"}]}"#;
        let page = scene
            .get(&format!(
                "{PIPELINES}?sort_by=name+desc&filter={}",
                encoded(part)
            ))
            .await;
        assert_eq!(names(&page), ["hello-2", "hello"]);
        let none = r#"{"predicates":[{"operation":"EQUALS","key":"name","string_value":"none"}]}"#;
        let page = scene
            .get(&format!("{PIPELINES}?filter={}", encoded(none)))
            .await;
        assert_eq!(page, json!({}));
        scene
    })
    .await;
}

/// As Python's `urlencode` writes it: blanks are `+`.
fn form_urlencoded(text: &str) -> String {
    encoded(text).replace("%20", "+")
}

#[tokio::test]
async fn kfp_48_pages_follow_their_tokens() {
    on_each(async |scene: Scene| {
        for name in ["a", "b", "c", "d", "e"] {
            scene.made(name).await;
        }
        let mut seen = Vec::new();
        let mut token = String::new();
        loop {
            let target = format!(
                "{PIPELINES}?page_token={token}&page_size=2&sort_by=name+desc&filter=&namespace="
            );
            let page = scene.get(&target).await;
            assert_eq!(page["total_size"], 5);
            seen.extend(names(&page).into_iter().map(str::to_owned));
            match page["next_page_token"].as_str() {
                Some(next) => token = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, ["e", "d", "c", "b", "a"]);
        // With a token the order may be left out, and another one is refused.
        let page = scene
            .get(&format!("{PIPELINES}?page_size=2&sort_by=name"))
            .await;
        let token = page["next_page_token"].as_str().unwrap();
        let next = scene
            .get(&format!("{PIPELINES}?page_size=9&page_token={token}"))
            .await;
        assert_eq!(names(&next), ["c", "d", "e"]);
        let target = format!("{PIPELINES}?sort_by=id&page_token={token}");
        let other = scene.ask("GET", &target, &Value::Null).await;
        scene.refused(
            &other,
            400,
            3,
            "page token does not match the supplied sort by",
        );
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_48_what_a_list_cannot_be_asked_is_refused() {
    on_each(async |scene: Scene| {
        let made = scene.made("a").await;
        for target in [
            PIPELINES.to_owned(),
            format!("{PIPELINES}/{}/versions", id(&made)),
        ] {
            let of = if target == PIPELINES {
                "Pipeline"
            } else {
                "PipelineVersion"
            };
            for (query, why) in [
                (
                    "page_size=-1",
                    "The page size should be greater than 0. Got -1",
                ),
                ("page_token=x", "Invalid page token"),
                (
                    "sort_by=name+up",
                    "Received invalid sort by format \"name up\"",
                ),
                ("filter=%5B%5D", "failed to parse filter spec: "),
            ] {
                let refused = scene
                    .ask("GET", &format!("{target}?{query}"), &Value::Null)
                    .await;
                scene.refused(&refused, 400, 3, why);
            }
            let refused = scene
                .ask("GET", &format!("{target}?sort_by=colour"), &Value::Null)
                .await;
            let why = format!("Invalid sorting field: \"colour\" on listable type {of}");
            scene.refused(&refused, 400, 3, &why);
            for query in ["page_size=many", "page_size=1&page_size=2"] {
                let refused = scene
                    .ask("GET", &format!("{target}?{query}"), &Value::Null)
                    .await;
                assert_eq!(refused.status, 400, "{query}");
            }
        }
        scene
    })
    .await;
}

/// The migration tool pastes tokens as they are, and says more than the list knows.
#[tokio::test]
async fn kfp_28_versions_are_read_page_by_page_as_the_migration_tool_does() {
    on_each(async |scene: Scene| {
        let made = scene.made("a").await;
        for name in ["v1", "v2", "v3"] {
            scene.version(id(&made), name).await;
        }
        let mut seen = 0;
        let mut token = String::new();
        loop {
            let page = scene
                .get(&format!(
                    "{PIPELINES}/{}/versions?page_size=2&page_token={token}&order_by=created_at&namespace=x",
                    id(&made)
                ))
                .await;
            seen += names(&page).len();
            match page["next_page_token"].as_str() {
                Some(next) => token = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, 3);
        let status = r#"{"predicates":[{"operation":"EQUALS","key":"status","string_value":"READY"}]}"#;
        let target = format!("{PIPELINES}/{}/versions?filter={}", id(&made), encoded(status));
        assert_eq!(scene.get(&target).await["total_size"], 3);
        scene
    })
    .await;
}
