//! Reads everything back that is stored.

use std::collections::HashSet;

use hindsight_proto::v1alpha2 as pb;
use hindsight_run::View;
use serde_json::Value;

use crate::{corpus::Group, server::Server};

/// The store holds the end of every object of `groups`, once, and nothing else.
pub async fn check(server: &Server, groups: &[Group]) {
    let mut wanted: HashSet<&str> = groups.iter().flat_map(Group::uids).collect();
    let mut rpc = server.rpc();
    let mut request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 500,
        ..pb::ListRecordsRequest::default()
    };
    loop {
        let page = rpc
            .list_records(request.clone())
            .await
            .unwrap()
            .into_inner();
        for record in &page.records {
            let value = &record.data.as_ref().unwrap().value;
            let object: Value = serde_json::from_slice(value).unwrap();
            let view = View::new(&object);
            assert!(view.finish().done, "{} is not the end", record.name);
            let uid = view.uid().unwrap();
            assert!(record.name.ends_with(uid), "{} holds {uid}", record.name);
            assert!(wanted.remove(uid), "{uid} is stored once");
        }
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert!(wanted.is_empty(), "{} are not stored", wanted.len());
}
