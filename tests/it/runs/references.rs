//! What RUN of commands may be.

use serde_json::json;

use super::objects::{given, history, release};
use crate::support::{
    objects::{PIPELINE_RUN, bytes},
    process::{Said, run},
    server::{TestServer, on_each},
};

/// What `hindsight get run` says of a reference.
async fn meant(server: &TestServer, arguments: &[&str]) -> Said {
    let get = [&["get", "run", "--server", &server.url], arguments].concat();
    run(&get).await
}

/// Two runs whose UIDs begin alike; the record of the second is not called like its UID.
async fn alike(server: &TestServer) {
    for (name, uid, record) in [
        (
            "nightly-1",
            "0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11",
            "0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11",
        ),
        (
            "nightly-2",
            "0b4fc000-5f0a-4a30-9d3a-6f2c1f0d9e22",
            "second",
        ),
    ] {
        let mut object = release(name, 8, "a", "Succeeded");
        object["metadata"]["uid"] = json!(uid);
        let name = format!("shop/results/{record}/records/{record}");
        server
            .given_record(&name, PIPELINE_RUN, &bytes(&object))
            .await;
    }
}

#[tokio::test]
async fn a_run_is_meant_by_its_uid_or_the_first_digits_of_it() {
    on_each(|server| async move {
        alike(&server).await;
        for (text, name) in [
            ("0b4f9", "nightly-1"),
            ("shop/0b4f9a2e-5f", "nightly-1"),
            ("0b4fc", "nightly-2"),
            ("0b4fc000-5f0a-4a30-9d3a-6f2c1f0d9e22", "nightly-2"),
        ] {
            let said = meant(&server, &[text, "-n", "shop"]).await;
            said.prints(0, &format!("Object:      {name}"));
        }
        let several = meant(&server, &["0b4f", "-n", "shop"]).await;
        several.fails(2, "several UIDs begin with `0b4f`; give the UID of one:");
        several.fails(
            2,
            "\n  0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11  shop/nightly-1",
        );
        let none = meant(&server, &["0b4fd", "-n", "shop"]).await;
        none.fails(3, "no run `0b4fd` in namespace shop");
        none.fails(3, "and no UID begins so");
        // Fewer digits are a name, and so is what the name of a run is.
        let short = meant(&server, &["0b4", "-n", "shop"]).await;
        assert!(!short.err.contains("UID"), "{short:?}");
        let mut cafe = release("cafe", 8, "a", "Succeeded");
        cafe["metadata"]["uid"] = json!("cafe");
        given(&server, &cafe).await;
        let mut other = release("other", 8, "a", "Succeeded");
        other["metadata"]["uid"] = json!("cafe0000-5f0a-4a30-9d3a-6f2c1f0d9e22");
        given(&server, &other).await;
        let said = meant(&server, &["cafe", "-n", "shop"]).await;
        said.prints(0, "Object:      cafe");
    })
    .await;
}

#[tokio::test]
async fn runs_are_counted_back_from_the_newest() {
    on_each(|server| async move {
        history(&server).await;
        let mut other = release("other-1", 14, "a", "Failed");
        other["metadata"]["labels"] = json!({"tekton.dev/pipeline": "other"});
        given(&server, &other).await;
        let ask = async |arguments: &[&str]| {
            let why = [&["describe", "--server", &server.url], arguments].concat();
            run(&why).await
        };
        for (arguments, name) in [
            (&["@last", "-n", "shop"][..], "other-1"),
            (&["@-1", "-n", "shop"], "other-1"),
            (&["@-3", "-A"], "release-45"),
            (&["@last", "-n", "shop", "-p", "release"], "release-46"),
            (
                &["@last-failed", "-A", "--pipeline", "release"],
                "release-44",
            ),
        ] {
            let said = ask(arguments).await;
            said.prints(0, &format!(" {name}  PipelineRun"));
            said.fails(0, &format!("{} is shop/{name}", arguments[0]));
        }
        let far = ask(&["@-9", "-n", "shop"]).await;
        far.fails(3, "`@-9`: only 8 runs in namespace shop");
        let none = ask(&["@last-failed", "-n", "shop", "-p", "x\" || true"]).await;
        none.fails(3, "`@last-failed`: no failed runs of pipeline x\" || true");
        ask(&["@lats"]).await.fails(2, "want @last, @last-failed");
    })
    .await;
}

#[tokio::test]
async fn an_address_with_the_name_of_a_record_is_that_record() {
    on_each(|server| async move {
        given(&server, &release("release-1", 8, "a", "Succeeded")).await;
        let record = "shop/results/release-1/records/release-1";
        let url = format!(
            "{}/apis/hindsight.dev/v1/parents/{record}/tree?steps=true",
            server.url
        );
        for text in [
            &url,
            "https://history.example/runs/shop/results/release-1/records/release-1#x",
        ] {
            meant(&server, &[text]).await.prints(0, "release-1");
        }
        let said = meant(&server, &["https://history.example/runs/release-1"]).await;
        said.fails(2, "has no name of a record in it");
    })
    .await;
}

#[tokio::test]
async fn a_name_in_several_namespaces_is_not_guessed() {
    on_each(|server| async move {
        given(&server, &release("same", 8, "a", "Succeeded")).await;
        let mut other = release("same", 9, "a", "Succeeded");
        other["metadata"]["namespace"] = json!("data");
        let name = "data/results/x/records/x";
        server
            .given_record(name, PIPELINE_RUN, &bytes(&other))
            .await;
        let said = meant(&server, &["same", "-A"]).await;
        said.fails(2, "several runs are called `same`; give the UID of one:\n");
        said.fails(2, "  data/same");
        said.fails(2, "  shop/same");
        let said = meant(&server, &["data/same"]).await;
        said.prints(0, "Namespace:   data");
        let delete = [
            "delete",
            "run",
            "same",
            "-A",
            "--yes",
            "--server",
            &server.url,
        ];
        run(&delete)
            .await
            .fails(2, "several runs are called `same`");
    })
    .await;
}
