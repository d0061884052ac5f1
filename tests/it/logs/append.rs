//! Lines are appended once and in order, whatever a client sends.

use std::time::Duration;

use hindsight_proto::{
    v1::{AppendLogRequest, DescribeLogRequest, ReadLogRequest},
    v1alpha2 as pb,
};
use tonic::Code;

use super::{BEGAN, append, logs, message, read, seal, source, whole};
use crate::support::{
    Database, TestServer,
    objects::{TASK_RUN, bytes, task_run},
    server::{on_each, refused},
};

const NAME: &str = "shop/results/r/logs/run";

/// All 100 lines of a step, and parts of them.
async fn parts(server: &TestServer, name: &str, all: &[u8]) {
    let a = |ask: ReadLogRequest| ReadLogRequest {
        containers: vec!["step-a".to_owned()],
        ..ask
    };
    let (text, numbers) = read(server, a(whole(name))).await.unwrap();
    assert_eq!(text, all);
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    let time = |second: i64| {
        Some(prost_types::Timestamp {
            seconds: BEGAN / 1_000_000 + second,
            nanos: 0,
        })
    };
    for (ask, expected) in [
        (
            ReadLogRequest {
                tail: 5,
                ..whole(name)
            },
            95..100,
        ),
        (
            ReadLogRequest {
                first_line: 98,
                ..whole(name)
            },
            98..100,
        ),
        (
            ReadLogRequest {
                first_line: 50,
                limit: 2,
                ..whole(name)
            },
            50..52,
        ),
        (
            ReadLogRequest {
                since: time(90),
                until: time(93),
                ..whole(name)
            },
            90..93,
        ),
        (
            ReadLogRequest {
                until: time(10),
                tail: 3,
                ..whole(name)
            },
            7..10,
        ),
    ] {
        let (_, numbers) = read(server, a(ask.clone())).await.unwrap();
        assert_eq!(numbers, expected.collect::<Vec<_>>(), "{ask:?}");
    }
}

/// The log of one of two steps is sealed.
async fn sealed(server: &TestServer, name: &str) {
    let sealed = append(server, vec![seal(name, "step-b")]).await.unwrap();
    assert!(sealed.containers[0].sealed && sealed.containers[0].sha256.len() == 32);
    let described = logs(server)
        .describe_log(DescribeLogRequest {
            name: name.to_owned(),
            only_stored: false,
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(described.containers.len(), 2);
    assert_eq!(described.containers[1].source, Some(source("step-b")));
    assert!(described.containers[1].sealed && !described.containers[0].sealed);
}

#[tokio::test]
async fn lines_are_stored_once_and_read_by_range_tail_and_time() {
    on_each(|server| async move {
        let name = NAME;
        // Neither the result nor the record of the run is there yet.
        let first = append(
            &server,
            vec![
                message(name, "step-a", 0, b"one\ntwo\n"),
                message(name, "step-b", 0, b"\xff\x00other\n"),
                message(name, "step-a", 1, b"two\nthree\n"),
            ],
        )
        .await
        .unwrap();
        let told: Vec<_> = first
            .containers
            .iter()
            .map(|it| (it.lines, it.bytes))
            .collect();
        assert_eq!(told, [(3, 14), (1, 8)]);
        append(&server, vec![message(name, "step-a", 0, b"one\ntwo\n")])
            .await
            .unwrap();
        let more: Vec<u8> = (3..100)
            .flat_map(|at| format!("line {at}\n").into_bytes())
            .collect();
        append(&server, vec![message(name, "step-a", 3, &more)])
            .await
            .unwrap();

        parts(&server, name, &[b"one\ntwo\nthree\n", &*more].concat()).await;
        let (text, _) = read(
            &server,
            ReadLogRequest {
                containers: vec!["step-b".to_owned()],
                ..whole(name)
            },
        )
        .await
        .unwrap();
        assert_eq!(text, b"\xff\x00other\n", "bytes are kept as they came");

        sealed(&server, name).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_out_of_sequence_is_refused_and_what_came_before_is_kept() {
    on_each(|server| async move {
        let gap = vec![
            message(NAME, "step", 0, b"a\n"),
            message(NAME, "step", 1, b"b\n"),
            message(NAME, "step", 5, b"f\n"),
        ];
        refused(
            append(&server, gap).await,
            Code::FailedPrecondition,
            "append from line 2 on",
        );
        assert_eq!(read(&server, whole(NAME)).await.unwrap().0, b"a\nb\n");
        append(&server, vec![seal(NAME, "step")]).await.unwrap();
        let after = append(&server, vec![message(NAME, "step", 2, b"c\n")]).await;
        refused(after, Code::FailedPrecondition, "sealed after line 2");
        let again = append(
            &server,
            vec![message(NAME, "step", 0, b"a\nb\n"), seal(NAME, "step")],
        );
        assert_eq!(again.await.unwrap().containers[0].lines, 2);
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_in_itself_says_so() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let good = message(NAME, "step", 0, b"a\n");
    let with = |change: fn(&mut AppendLogRequest)| {
        let mut message = good.clone();
        change(&mut message);
        message
    };
    for (message, says) in [
        (
            with(|it| it.name = "shop/results/r/records/run".to_owned()),
            "is not a log name",
        ),
        (
            with(|it| it.name = "shop/results/r/logs/..".to_owned()),
            "folder",
        ),
        (with(|it| it.source = None), "source is missing"),
        (
            with(|it| it.source.as_mut().unwrap().pod.clear()),
            "source.pod has 0 bytes",
        ),
        (
            with(|it| it.source.as_mut().unwrap().restart = -1),
            "below 0",
        ),
        (
            with(|it| it.lines.as_mut().unwrap().times.clear()),
            "1 lines and there are 0 times",
        ),
        (
            with(|it| it.lines.as_mut().unwrap().times = vec![i64::MAX]),
            "years 1 to 9999",
        ),
        (
            with(|it| it.lines.as_mut().unwrap().first_line = -1),
            "out of range",
        ),
        (
            with(|it| it.lines.as_mut().unwrap().holes = vec![7]),
            "line 7 is named as a hole",
        ),
        (
            with(|it| {
                let lines = it.lines.as_mut().unwrap();
                lines.text = vec![b'x'; 5 << 20];
                lines.times = vec![0; 20];
            }),
            "a message may have 4194304",
        ),
    ] {
        refused(
            append(&server, vec![message]).await,
            Code::InvalidArgument,
            says,
        );
    }
    refused(
        read(&server, whole(NAME)).await,
        Code::NotFound,
        "does not exist",
    );
    server.stop().await;
}

#[tokio::test]
async fn a_line_of_64_mib_over_many_messages_comes_back() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let piece = vec![b'x'; 2 << 20];
    let count = 32;
    let per_message = i64::try_from(piece.len() / 262_144).unwrap();
    let messages: Vec<_> = (0..count)
        .map(|at| message(NAME, "step", at * per_message, &piece))
        .chain([message(NAME, "step", count * per_message, b"end\n")])
        .collect();
    let stored = append(&server, messages).await.unwrap();
    let bytes = count * i64::try_from(piece.len()).unwrap() + 4;
    assert_eq!(stored.containers[0].bytes, bytes);
    let last = ReadLogRequest {
        tail: 2,
        ..whole(NAME)
    };
    let (text, numbers) = read(&server, last).await.unwrap();
    assert_eq!((text.len(), numbers.len()), (262_144 + 4, 2));
    let (text, _) = read(&server, whole(NAME)).await.unwrap();
    assert_eq!(i64::try_from(text.len()).unwrap(), bytes);
    server.stop().await;
}

#[tokio::test]
async fn a_follower_gets_what_is_appended_and_ends_with_the_seal() {
    on_each(|server| async move {
        append(&server, vec![message(NAME, "step", 0, b"a\nb\n")])
            .await
            .unwrap();
        let follow = ReadLogRequest {
            follow: true,
            tail: 1,
            ..whole(NAME)
        };
        let mut stream = logs(&server).read_log(follow).await.unwrap().into_inner();
        let mut next = async || {
            let next = tokio::time::timeout(Duration::from_secs(30), stream.message());
            let next = next.await.expect("a follower is told in time").unwrap();
            next.map(|it| String::from_utf8(it.lines.unwrap().text).unwrap())
        };
        assert_eq!(next().await.as_deref(), Some("b\n"));
        append(&server, vec![message(NAME, "step", 2, b"c\n")])
            .await
            .unwrap();
        assert_eq!(next().await.as_deref(), Some("c\n"));
        append(&server, vec![message(NAME, "other", 0, b"d\n")])
            .await
            .unwrap();
        assert_eq!(next().await.as_deref(), Some("d\n"));
        append(&server, vec![seal(NAME, "step"), seal(NAME, "other")])
            .await
            .unwrap();
        assert_eq!(next().await, None);
    })
    .await;
}

#[tokio::test]
async fn a_follower_of_a_sealed_log_waits_for_the_end_of_its_run() {
    on_each(|server| async move {
        let mut run = task_run("run", "Succeeded");
        let ended = bytes(&run);
        let status = run["status"].as_object_mut().unwrap();
        status.remove("completionTime");
        status.remove("conditions");
        let name = NAME.replace("/logs/", "/records/");
        server.given_record(&name, TASK_RUN, &bytes(&run)).await;
        let whole_log = vec![message(NAME, "step", 0, b"a\n"), seal(NAME, "step")];
        append(&server, whole_log).await.unwrap();
        let follow = ReadLogRequest {
            follow: true,
            ..whole(NAME)
        };
        let mut stream = logs(&server).read_log(follow).await.unwrap().into_inner();
        assert!(stream.message().await.unwrap().is_some());
        let early = tokio::time::timeout(Duration::from_secs(3), stream.message());
        assert!(early.await.is_err(), "it ends before its run");
        let data = pb::Any {
            r#type: TASK_RUN.to_owned(),
            value: ended.into(),
        };
        let update = pb::UpdateRecordRequest {
            record: Some(pb::Record {
                name,
                data: Some(data),
                ..pb::Record::default()
            }),
            ..pb::UpdateRecordRequest::default()
        };
        server.rpc().update_record(update).await.unwrap();
        let last = tokio::time::timeout(Duration::from_secs(30), stream.message());
        let last = last.await.expect("it ends with its run").unwrap();
        assert!(last.is_none());
    })
    .await;
}

#[tokio::test]
async fn what_must_not_be_stored_is_replaced_and_counted() {
    let database = Database::sqlite();
    let redact = [("logs_redact", r"gh[ps]_\w{8} (?i)password=\S+")];
    let server = TestServer::start_with(&database, &redact).await;
    let text = b"token ghp_abcdefgh here\nPassword=secret\nfine\n";
    append(&server, vec![message(NAME, "step", 0, text)])
        .await
        .unwrap();
    let (text, _) = read(&server, whole(NAME)).await.unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "token *** here\n***\nfine\n"
    );
    let metrics = crate::support::http::Http::one(&format!("http://{}", server.admin)).await;
    let mut metrics = metrics;
    let page = metrics.send("GET", "/metrics", &[], "").await.text();
    assert!(page.contains("hindsight_log_redactions_total 2"), "{page}");
    server.stop().await;
}

#[tokio::test]
async fn a_read_that_the_end_of_the_server_cuts_short_does_not_end_as_a_whole_one() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    append(&server, vec![message(NAME, "step", 0, b"one\n")])
        .await
        .unwrap();
    let follow = ReadLogRequest {
        follow: true,
        ..whole(NAME)
    };
    let mut stream = logs(&server).read_log(follow).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    server.tell_to_stop();
    refused(
        stream.message().await,
        Code::Unavailable,
        "the server stops",
    );
    server.stop().await;
}
