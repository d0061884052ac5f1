//! Uploads of files, as the SDK sends them.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::{PIPELINES, Scene, Store, encoded, form, id, on_each, scene, shown, spec};
use crate::support::http::Http;

fn upload(query: &str) -> String {
    format!("{PIPELINES}/upload?{query}")
}

/// The only version of a pipeline.
async fn only_version(scene: &Scene, pipeline: &Value) -> Value {
    let page = scene
        .get(&format!("{PIPELINES}/{}/versions", id(pipeline)))
        .await;
    assert_eq!(page["total_size"], 1);
    page["pipeline_versions"][0].clone()
}

#[tokio::test]
async fn kfp_45_an_upload_is_a_pipeline_and_its_first_version() {
    on_each(async |scene: Scene| {
        let tags = encoded(r#"{"team":"a"}"#);
        let target = upload(&format!(
            "name=hello&display_name=Hello+there&description=d&namespace=x&tags={tags}&code_source_url=https%3A%2F%2Fx"
        ));
        let made = scene.send_file(&target, "a.yaml", spec("hello").as_bytes()).await.ok();
        assert_eq!(
            (&made["name"], &made["display_name"], &made["description"], &made["tags"]),
            (&json!("hello"), &json!("Hello there"), &json!("d"), &json!({"team": "a"}))
        );
        let version = only_version(&scene, &made).await;
        assert_eq!(
            (&version["name"], &version["display_name"], &version["description"]),
            (&json!("hello"), &json!("Hello there"), &json!("d"))
        );
        assert_eq!(version["code_source_url"], "https://x");
        assert_eq!(version["tags"], Value::Null);
        assert_eq!(version["pipeline_spec"], shown("hello"));
        let again = scene.send_file(&target, "a.yaml", spec("hello").as_bytes()).await;
        assert_eq!(again.status, 409);
        let why = "Failed to create a pipeline and a pipeline version";
        assert_eq!(again.json()["error_message"], why);
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_45_the_name_of_the_file_stands_for_a_name() {
    on_each(async |scene: Scene| {
        let made = scene
            .send_file(&upload(""), "hello.yaml", spec("x").as_bytes())
            .await
            .ok();
        assert_eq!(made["name"], "hello.yaml");
        let target = format!("{PIPELINES}/upload_version?pipelineid={}", id(&made));
        let version = scene
            .send_file(&target, "next.json", shown("x").to_string().as_bytes())
            .await;
        assert_eq!(version.ok()["name"], "next.json");
        scene
    })
    .await;
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// A tar archive of one file.
fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut head = [0_u8; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[100..108].copy_from_slice(b"0000644\0");
    head[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    head[148..156].copy_from_slice(b"        ");
    head[156] = b'0';
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = vec![0; content.len().next_multiple_of(512) - content.len() + 1024];
    [&head[..], content, &padding].concat()
}

#[tokio::test]
async fn kfp_45_an_archive_is_unpacked() {
    on_each(async |scene: Scene| {
        let archive = gzip(&tar("pipeline.yaml", spec("hello").as_bytes()));
        let made = scene
            .send_file(&upload("name=a"), "a.tar.gz", &archive)
            .await
            .ok();
        let version = only_version(&scene, &made).await;
        assert_eq!(version["pipeline_spec"], shown("hello"));
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_45_a_file_that_is_no_pipeline_is_refused_and_nothing_is_made() {
    on_each(async |scene: Scene| {
        let twice = format!("{}---\n{}", spec("a"), spec("b"));
        let bomb = gzip(&tar("pipeline.yaml", &vec![b' '; 33 << 20]));
        let outside = gzip(&tar("../pipeline.yaml", spec("a").as_bytes()));
        let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let before = format!("*a{}, ", n - 1).repeat(9);
            aliases.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        let cases: [(&str, &[u8], &str); 8] = [
            ("a.yaml", b"hello: there", ""),
            (
                "a.yaml",
                twice.as_bytes(),
                "multiple pipeline specs provided",
            ),
            (
                "a.yaml",
                aliases.as_bytes(),
                "failed to parse pipeline spec YAML",
            ),
            ("a.tar.gz", &bomb, "File size too large"),
            ("a.tar.gz", &outside, "Failed to read a pipeline spec file"),
            (
                "a.tar.gz",
                &[0x1f, 0x8b, 1, 2],
                "Failed to read a pipeline spec file",
            ),
            ("a.bin", b"hello", "Unexpected pipeline file format"),
            (
                "a.yaml",
                b"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n",
                "",
            ),
        ];
        for (name, content, why) in cases {
            let refused = scene.send_file(&upload("name=a"), name, content).await;
            assert_eq!(refused.status, 400, "{name} {}", refused.text());
            let body = refused.json();
            assert_eq!(
                body["error_message"],
                "Failed to create a pipeline and a pipeline version"
            );
            let details = body["error_details"].as_str().unwrap();
            assert!(details.contains(why) && !details.is_empty(), "{details}");
        }
        assert_eq!(scene.get(PIPELINES).await, json!({}));
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_45_a_form_without_a_file_or_a_pipeline_is_refused() {
    on_each(async |scene: Scene| {
        let mut http = Http::one(&scene.server.url).await;
        let headers = [("content-type", "multipart/form-data; boundary=abc")];
        let other = form("other", "a.yaml", spec("a").as_bytes());
        let refused = http.send("POST", &upload("name=a"), &headers, other).await;
        assert_eq!(refused.status, 400);
        assert_eq!(
            refused.json()["error_message"],
            "Failed to read pipeline from file"
        );
        let mut http = Http::one(&scene.server.url).await;
        let refused = http.send("POST", &upload("name=a"), &[], "{}").await;
        assert_eq!(refused.status, 400);
        assert_eq!(
            refused.json()["error_message"],
            "Failed to read pipeline from file"
        );
        let target = upload("name=a&tags=%5B%5D");
        let refused = scene
            .send_file(&target, "a.yaml", spec("a").as_bytes())
            .await;
        assert_eq!(
            refused.json()["error_message"],
            "Failed to parse tags query parameter. Expected JSON object with string keys and values"
        );
        for query in ["name=a", "name=a&pipelineid=", "name=a&pipelineid=none"] {
            let target = format!("{PIPELINES}/upload_version?{query}");
            let refused = scene
                .send_file(&target, "a.yaml", spec("a").as_bytes())
                .await;
            assert_eq!(refused.status, 400, "{query}");
            assert_eq!(
                refused.json()["error_message"],
                "Failed to create a pipeline version"
            );
        }
        assert_eq!(scene.get(PIPELINES).await, json!({}));
        scene
    })
    .await;
}

/// What is too large is told by its size; what is not, by what is in it, which is no pipeline.
#[tokio::test]
async fn kfp_45_a_file_of_32_mib_is_read_and_one_byte_more_is_not() {
    let scene = scene(Store::Sqlite, &[]).await.unwrap();
    let mut text = b"a: b: c\n".to_vec();
    text.resize(32 << 20, b'\n');
    for (more, why) in [
        (0, "failed to parse pipeline spec YAML"),
        (1, "File size too large"),
    ] {
        text.resize((32 << 20) + more, b'\n');
        let refused = scene.send_file(&upload("name=a"), "a.yaml", &text).await;
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains(why), "{}", refused.text());
    }
    assert_eq!(scene.get(PIPELINES).await, json!({}));
    scene.end().await;
}
