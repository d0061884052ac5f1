//! Filters, sums and groups by the tier of records.

use hindsight_proto::v1::AggregateRequest;
use prost_types::value::Kind;
use serde_json::Value;

use super::{Folder, given, walk};
use crate::support::{TestServer, each_database};

/// How many records of the database and of files pass a filter, by sums, which agree with lists.
async fn by_tier(server: &TestServer, filter: &str) -> [f64; 2] {
    let rows = walk(server, "-/results/-", filter, "").await;
    assert!(rows.iter().all(Value::is_array), "{filter}: {rows:?}");
    let mut all = Vec::new();
    // The other expression is evaluated on each record.
    for by in ["tier", "tier + ''"] {
        let request = AggregateRequest {
            parent: "-/results/-".to_owned(),
            filter: filter.to_owned(),
            group_by: vec![by.to_owned()],
            ..AggregateRequest::default()
        };
        let sums = server.client().queries().aggregate(request).await;
        let sums = sums.unwrap().into_inner();
        assert_eq!(sums.records, rows.len() as i64, "{filter}: {sums:?}");
        let count = |tier: &str| -> f64 {
            let of_tier = sums.groups.iter().filter_map(|group| {
                let (keys, measures) = (group.keys.as_ref()?, group.measures.as_ref()?);
                match (&keys.fields[by].kind, &measures.fields["count"].kind) {
                    (Some(Kind::StringValue(is)), Some(Kind::NumberValue(count))) if is == tier => {
                        Some(*count)
                    }
                    _ => None,
                }
            });
            of_tier.sum()
        };
        all.push([count("hot"), count("cold")]);
    }
    assert_eq!(all[0], all[1], "{filter}");
    all[0]
}

#[tokio::test]
async fn records_are_told_by_the_tier_that_they_are_in() {
    for database in each_database().await {
        let folder = Folder::new();
        let server = TestServer::start(&database).await;
        given(&server).await;
        assert_eq!(by_tier(&server, "tier == 'hot'").await, [31.0, 0.0]);
        assert_eq!(by_tier(&server, "tier != 'hot'").await, [0.0, 0.0]);
        server.stop().await;
        let moved = folder.retention(&database, &["run", "--yes"]).await;
        assert_eq!(moved.code, 0, "{moved:?}");

        let url = folder.url();
        let server = TestServer::start_with(&database, &[("archive_url", &url)]).await;
        let odd = "data.status.conditions[0].message.matches('[13579]$')";
        for (filter, hot, cold) in [
            ("tier == 'cold'", 0.0, 28.0),
            ("tier == 'hot'", 3.0, 0.0),
            ("tier in ['hot', 'cold']", 3.0, 28.0),
            ("tier == 'warm'", 0.0, 0.0),
            ("tier.startsWith('c') && parent == 'other'", 0.0, 1.0),
            ("tier != 'cold' || result_name == 'r4'", 3.0, 3.0),
            ("!(tier == 'cold')", 3.0, 0.0),
            // Each row is judged by all of these, which read its payload.
            (&format!("tier == 'cold' && {odd}"), 0.0, 14.0),
            (&format!("tier == 'hot' || {odd}"), 3.0, 14.0),
            (&format!("tier == 'hot' && {odd}"), 0.0, 0.0),
            ("(tier + '!').startsWith('cold!')", 0.0, 28.0),
        ] {
            assert_eq!(by_tier(&server, filter).await, [hot, cold], "{filter}");
        }
        server.stop().await;
        // What no file is opened for is answered without the files.
        std::fs::remove_dir_all(folder.0.path().join("archive")).unwrap();
        let server = TestServer::start_with(&database, &[("archive_url", &url)]).await;
        assert_eq!(
            walk(&server, "-/results/-", "tier == 'hot'", "")
                .await
                .len(),
            3
        );
        let lost = walk(&server, "-/results/-", "tier == 'cold'", "").await;
        assert!(lost[0].get("error").is_some(), "{lost:?}");
        server.stop().await;
        database.remove().await;
    }
}
