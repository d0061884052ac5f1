//! Results and records: what is kept, how updates merge, and who wins.

use std::collections::BTreeMap;

use hindsight_proto::v1alpha2 as pb;
use tonic::Code;

use crate::support::{
    objects::{TASK_RUN, bytes, task_run},
    server::{TestServer, on_each, refused},
};

async fn update(
    server: &TestServer,
    name: &str,
    data: Option<pb::Any>,
    mask: &[&str],
    etag: &str,
) -> Result<pb::Record, tonic::Status> {
    let request = pb::UpdateRecordRequest {
        record: Some(pb::Record {
            name: name.to_owned(),
            data,
            ..pb::Record::default()
        }),
        update_mask: (!mask.is_empty()).then(|| prost_types::FieldMask {
            paths: mask.iter().map(|path| (*path).to_owned()).collect(),
        }),
        etag: etag.to_owned(),
    };
    Ok(server.rpc().update_record(request).await?.into_inner())
}

#[tokio::test]
async fn the_reply_to_a_write_equals_the_next_read() {
    on_each(|server| async move {
        let summary = pb::RecordSummary {
            record: "ci/results/r/records/a".to_owned(),
            r#type: TASK_RUN.to_owned(),
            start_time: Some(prost_types::Timestamp {
                seconds: 1,
                nanos: 123_456_789,
            }),
            end_time: None,
            status: 99,
            annotations: BTreeMap::from([("ä".to_owned(), String::new())]),
        };
        let result = pb::Result {
            name: "ci/results/r".to_owned(),
            etag: "sent by a client, ignored".to_owned(),
            uid: "sent by a client, ignored".to_owned(),
            annotations: BTreeMap::from([("k'\"%".to_owned(), "v\n".to_owned())]),
            summary: Some(summary),
            ..pb::Result::default()
        };
        let request = pb::CreateResultRequest {
            parent: "ci".to_owned(),
            result: Some(result),
        };
        let created = server
            .rpc()
            .create_result(request)
            .await
            .unwrap()
            .into_inner();
        let read = server.get_result("ci/results/r").await.unwrap();
        assert_eq!(created, read);
        assert_eq!(read.summary.unwrap().start_time.unwrap().nanos, 123_456_000);
        assert!(
            read.etag.starts_with(&format!("{}-", read.uid)),
            "{}",
            read.etag
        );

        let body = b"{ \"b\": 1.0,\n \"a\": \"\\u0041\\u0000\", \"a\": 2e3 }";
        let created = server
            .given_record("ci/results/r/records/a", TASK_RUN, body)
            .await;
        let read = server.get_record("ci/results/r/records/a").await.unwrap();
        assert_eq!(created, read);
        assert_eq!(
            &read.data.unwrap().value[..],
            body,
            "bytes come back as they were sent"
        );
    })
    .await;
}

#[tokio::test]
async fn a_body_of_25_mib_round_trips_and_one_over_the_limit_is_too_large() {
    on_each(|server| async move {
        let name = "ci/results/big/records/a";
        let body = vec![0xAB_u8; 25 << 20];
        server.given_record(name, "github.com/event", &body).await;
        assert!(server.get_record(name).await.unwrap().data.unwrap().value == body);

        let data = pb::Any {
            r#type: String::new(),
            value: vec![7_u8; 33 << 20].into(),
        };
        let record = pb::Record {
            data: Some(data),
            ..Default::default()
        };
        let request = pb::CreateRecordRequest {
            record: Some(record),
            ..Default::default()
        };
        let mut rpc = server.rpc().max_encoding_message_size(64 << 20);
        let answer = rpc.create_record(request).await;
        refused(answer, Code::ResourceExhausted, "too large");
    })
    .await;
}

#[tokio::test]
async fn an_update_without_mask_replaces_what_is_set_and_always_gives_a_new_etag() {
    on_each(|server| async move {
        let name = "ci/results/r/records/a";
        let one = server.given_record(name, "kind/one", b"\"1\"").await;
        let any = |r#type: &str, value: &'static [u8]| {
            Some(pb::Any {
                r#type: r#type.to_owned(),
                value: value.into(),
            })
        };
        let two = update(&server, name, any("", b"\"2\""), &[], "")
            .await
            .unwrap();
        assert_eq!(two.data, any("kind/one", b"\"2\""));
        let three = update(&server, name, any("kind/three", b""), &[], "")
            .await
            .unwrap();
        assert_eq!(three.data, any("kind/three", b"\"2\""));
        let four = update(&server, name, None, &[], "").await.unwrap();
        assert_eq!(four.data, three.data);
        assert_eq!(four.create_time, one.create_time);
        assert_eq!(four.uid, one.uid);
        let etags = [one.etag, two.etag, three.etag, four.etag.clone()];
        let distinct: std::collections::BTreeSet<_> = etags.iter().collect();
        assert_eq!(distinct.len(), 4, "{etags:?}");
        assert_eq!(server.get_record(name).await.unwrap(), four);
    })
    .await;
}

#[tokio::test]
async fn an_update_mask_is_honoured_and_an_unknown_path_is_named() {
    on_each(|server| async move {
        let name = "ci/results/r/records/a";
        server.given_record(name, "kind/one", b"1").await;
        let data = Some(pb::Any {
            r#type: "kind/two".to_owned(),
            value: b"2".as_slice().into(),
        });
        let kept = update(&server, name, data.clone(), &["data.type"], "")
            .await
            .unwrap();
        assert_eq!(&kept.data.unwrap().value[..], b"1");
        let cleared = update(&server, name, None, &["data"], "").await.unwrap();
        assert_eq!(cleared.data, None);
        let answer = update(&server, name, data, &["data.colour"], "").await;
        refused(
            answer,
            Code::InvalidArgument,
            "`data.colour` is not a field of a record",
        );
    })
    .await;
}

#[tokio::test]
async fn an_etag_must_be_current_wherever_it_is_sent() {
    on_each(|server| async move {
        let name = "ci/results/r/records/a";
        let old = server.given_record(name, "kind/one", b"1").await;
        update(&server, name, None, &[], &old.etag).await.unwrap();
        let answer = update(&server, name, None, &[], &old.etag).await;
        refused(answer, Code::FailedPrecondition, "the etag mismatches");
        let record = pb::Record {
            name: name.to_owned(),
            etag: old.etag,
            ..Default::default()
        };
        let request = pb::UpdateRecordRequest {
            record: Some(record),
            ..Default::default()
        };
        let answer = server.rpc().update_record(request).await;
        refused(answer, Code::FailedPrecondition, "the etag mismatches");
    })
    .await;
}

#[tokio::test]
async fn of_many_writers_with_one_etag_exactly_one_wins() {
    on_each(|server| async move {
        let name = "ci/results/r/records/a";
        let mut etag = server.given_record(name, "kind/one", b"1").await.etag;
        for round in 0..25 {
            let writers = (0..8).map(|_| update(&server, name, None, &[], &etag));
            let answers = futures::future::join_all(writers).await;
            let won: Vec<_> = answers.iter().filter_map(|a| a.as_ref().ok()).collect();
            assert_eq!(won.len(), 1, "round {round}: {answers:?}");
            let next = won[0].etag.clone();
            for lost in answers.into_iter().filter_map(Result::err) {
                assert_eq!(lost.code(), Code::FailedPrecondition, "{lost:?}");
            }
            etag = next;
        }
    })
    .await;
}

#[tokio::test]
async fn writers_without_an_etag_all_get_through() {
    on_each(|server| async move {
        let name = "ci/results/r/records/a";
        server.given_record(name, "kind/one", b"1").await;
        let writers = (0..16).map(|_| update(&server, name, None, &[], ""));
        for answer in futures::future::join_all(writers).await {
            answer.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn an_update_of_a_result_replaces_annotations_and_summary() {
    on_each(|server| async move {
        let result = pb::Result {
            name: "ci/results/r".to_owned(),
            annotations: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
            ..pb::Result::default()
        };
        let created = server.create_result(result).await.unwrap();
        let request = pb::UpdateResultRequest {
            name: created.name.clone(),
            result: Some(pb::Result::default()),
            etag: created.etag.clone(),
        };
        let updated = server
            .rpc()
            .update_result(request.clone())
            .await
            .unwrap()
            .into_inner();
        assert_eq!((updated.annotations.len(), &updated.uid), (0, &created.uid));
        let answer = server.rpc().update_result(request).await;
        refused(answer, Code::FailedPrecondition, "the etag mismatches");
    })
    .await;
}

#[tokio::test]
async fn a_deleted_result_takes_its_records_along_and_stays_deleted() {
    on_each(|server| async move {
        let record = "ci/results/r/records/a";
        server
            .given_record(record, TASK_RUN, &bytes(&task_run("a", "Failed")))
            .await;
        let request = pb::DeleteResultRequest {
            name: "ci/results/r".to_owned(),
        };
        server.rpc().delete_result(request.clone()).await.unwrap();
        refused(server.get_record(record).await, Code::NotFound, record);
        refused(
            update(&server, record, None, &[], "").await,
            Code::NotFound,
            record,
        );
        let answer = server.rpc().delete_result(request).await;
        refused(answer, Code::NotFound, "`ci/results/r` does not exist");
        let answer = server.create_record(record, TASK_RUN, b"{}").await;
        refused(answer, Code::NotFound, "`ci/results/r` does not exist");
        assert_eq!(server.ids("ci/results/-", "").await.unwrap(), [""; 0]);
    })
    .await;
}

#[tokio::test]
async fn names_are_unique_and_parents_are_kept_apart() {
    on_each(|server| async move {
        for name in [
            "ci/results/r",
            "cd/results/r",
            "cluster/c-1/namespace/ci/results/r",
        ] {
            let record = format!("{name}/records/a");
            server.given_record(&record, "kind/one", b"1").await;
            let answer = server.create_record(&record, "kind/one", b"1").await;
            refused(
                answer,
                Code::AlreadyExists,
                &format!("`{record}` exists already"),
            );
        }
        assert_eq!(server.ids("ci/results/-", "").await.unwrap().len(), 1);
        assert_eq!(
            server
                .ids("cluster/c-1/namespace/ci/results/r", "")
                .await
                .unwrap()
                .len(),
            1
        );
        assert_eq!(server.ids("-/results/r", "").await.unwrap().len(), 3);
        assert_eq!(server.ids("-/results/-", "").await.unwrap().len(), 3);
    })
    .await;
}
