//! Logs of containers, as a kubelet serves them.

use std::time::Duration;

use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::LogParams};
use kubesim::{Settings, Sim};
use serde_json::json;
use tokio::time::timeout;

use crate::{manual, seconds};

fn pod(sim: &Sim) -> Api<Pod> {
    let container = |name: &str| json!({"name": name, "image": "i"});
    sim.create(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "nodeName": "n",
            "initContainers": [container("prepare")],
            "containers": [container("step-a"), container("side")],
        },
    }))
    .unwrap();
    Api::namespaced(sim.client(), "default")
}

fn of(container: &str) -> LogParams {
    LogParams {
        container: Some(container.to_owned()),
        ..LogParams::default()
    }
}

fn message<T>(outcome: kube::Result<T>) -> (u16, String) {
    match outcome {
        Err(kube::Error::Api(status)) => (status.code, status.message),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("want a refusal"),
    }
}

#[tokio::test]
async fn a_container_that_waits_has_no_log() {
    let sim = Sim::new();
    let pods = pod(&sim);
    let refused = message(pods.logs("p", &of("step-a")).await);
    let why = "container \"step-a\" in pod \"p\" is waiting to start: ContainerCreating";
    assert_eq!(refused, (400, why.to_owned()));
    sim.start_container("default", "p", "step-a").unwrap();
    assert_eq!(pods.logs("p", &of("step-a")).await.unwrap(), "");
    let previous = LogParams {
        previous: true,
        ..of("step-a")
    };
    let (code, why) = message(pods.logs("p", &previous).await);
    assert_eq!(code, 400);
    assert!(why.starts_with("previous terminated container"), "{why}");
    assert!(sim.write_log("default", "p", "side", "x\n").is_err());
}

#[tokio::test]
async fn lines_are_chosen_by_time_and_number_and_cut_by_bytes() {
    let (sim, clock) = manual(Settings::default());
    let pods = pod(&sim);
    sim.start_container("default", "p", "step-a").unwrap();
    for line in ["one\n", "two\n", "three"] {
        sim.write_log("default", "p", "step-a", line).unwrap();
        clock.advance(jiff::SignedDuration::from_millis(600));
    }
    let read = async |params: LogParams| pods.logs("p", &params).await.unwrap();
    assert_eq!(read(of("step-a")).await, "one\ntwo\nthree");
    let tail = LogParams {
        tail_lines: Some(2),
        ..of("step-a")
    };
    assert_eq!(read(tail).await, "two\nthree");
    // Times have a resolution of one second: the line of 10:00:00.6 is not before 10:00:00.9.
    let since = LogParams {
        since_time: Some("2026-03-01T10:00:00Z".parse().unwrap()),
        timestamps: true,
        ..of("step-a")
    };
    assert_eq!(
        read(since.clone()).await,
        "2026-03-01T10:00:00.000000000Z one\n2026-03-01T10:00:00.600000000Z two\n\
         2026-03-01T10:00:01.200000000Z three"
    );
    let later = LogParams {
        since_time: Some("2026-03-01T10:00:01Z".parse().unwrap()),
        timestamps: false,
        ..since
    };
    assert_eq!(read(later).await, "three");
    let bytes = LogParams {
        limit_bytes: Some(6),
        ..of("step-a")
    };
    assert_eq!(read(bytes).await, "one\ntw");
    sim.rotate_log("default", "p", "step-a", 1).unwrap();
    assert_eq!(read(of("step-a")).await, "three");
    clock.advance(seconds(1));
}

#[tokio::test]
async fn a_container_that_is_restarted_has_two_logs() {
    let sim = Sim::new();
    let pods = pod(&sim);
    for (start, code) in [("first\n", 1), ("second\n", 0)] {
        sim.start_container("default", "p", "step-a").unwrap();
        sim.write_log("default", "p", "step-a", start).unwrap();
        sim.end_container("default", "p", "step-a", code).unwrap();
    }
    let status = sim.get("", "pods", "default", "p").unwrap();
    let status = &status["status"]["containerStatuses"][0];
    assert_eq!(status["restartCount"], 1);
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(pods.logs("p", &of("step-a")).await.unwrap(), "second\n");
    let previous = LogParams {
        previous: true,
        ..of("step-a")
    };
    assert_eq!(pods.logs("p", &previous).await.unwrap(), "first\n");
}

#[tokio::test]
async fn who_follows_gets_lines_until_the_container_ends_or_the_pod_goes() {
    for goes in [false, true] {
        let sim = Sim::new();
        let pods = pod(&sim);
        sim.start_container("default", "p", "prepare").unwrap();
        let follow = LogParams {
            follow: true,
            ..of("prepare")
        };
        let mut stream = Box::pin(pods.log_stream("p", &follow).await.unwrap());
        sim.write_log("default", "p", "prepare", "one\n").unwrap();
        let mut line = [0; 4];
        stream.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"one\n");
        let more = timeout(Duration::from_millis(50), stream.read(&mut line)).await;
        assert!(more.is_err(), "nothing comes before there is something");
        sim.write_log("default", "p", "prepare", "two\n").unwrap();
        match goes {
            false => sim.end_container("default", "p", "prepare", 0).unwrap(),
            true => sim.delete("", "pods", "default", "p").unwrap(),
        }
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "two\n");
        let after = pods.logs("p", &of("prepare")).await;
        match goes {
            false => assert_eq!(after.unwrap(), "one\ntwo\n"),
            true => assert_eq!(message(after).0, 404),
        }
    }
}

#[tokio::test]
async fn a_log_that_is_followed_can_break() {
    let sim = Sim::new();
    let pods = pod(&sim);
    sim.start_container("default", "p", "side").unwrap();
    let follow = LogParams {
        follow: true,
        ..of("side")
    };
    let mut stream = Box::pin(pods.log_stream("p", &follow).await.unwrap());
    sim.faults().drop_logs();
    let mut rest = Vec::new();
    assert!(stream.read_to_end(&mut rest).await.is_err());
}

#[tokio::test]
async fn reading_logs_needs_a_right_of_its_own() {
    let sim = Sim::new();
    pod(&sim);
    sim.policy().allow("ann", "get", "", "pods", "*").enforce();
    sim.start_container("default", "p", "side").unwrap();
    let pods: Api<Pod> = Api::namespaced(sim.client_as("ann"), "default");
    let (code, why) = message(pods.logs("p", &of("side")).await);
    assert_eq!(code, 403);
    assert!(why.contains("cannot get resource \"pods/log\""), "{why}");
    sim.policy().allow("ann", "get", "", "pods/log", "*");
    assert_eq!(pods.logs("p", &of("side")).await.unwrap(), "");
    let calls = sim.calls().resource("pods");
    let logs = calls.filter(|call| call.subresource == "log");
    assert_eq!(logs.count(), 2);
}
