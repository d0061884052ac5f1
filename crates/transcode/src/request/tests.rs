//! What becomes of a request before gRPC sees it.

use axum::http::Method;
use hindsight_proto::{
    FILE_DESCRIPTOR_SET, KUBEFLOW_FILE_DESCRIPTOR_SET, kubeflow_v2beta1 as kfp, v1alpha2 as pb,
};
use prost_reflect::{DescriptorPool, prost::Message};

use super::*;
use crate::routes::Routes;

const PREFIX: &str = "/apis/results.tekton.dev/v1alpha2/parents";

fn read<T: Message + Default>(verb: &str, uri: &str, body: &str) -> Result<T, Refusal> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    read_of(&pool, verb, &format!("{PREFIX}{uri}"), body)
}

fn read_of<T: Message + Default>(
    pool: &DescriptorPool,
    verb: &str,
    uri: &str,
    body: &str,
) -> Result<T, Refusal> {
    let routes = Routes::read(pool).unwrap();
    let (path, text) = uri.split_once('?').unwrap_or((uri, ""));
    let segments = segments(path)?;
    let verb = Method::from_bytes(verb.as_bytes()).unwrap();
    let (route, captures) = routes.find(&verb, &segments).expect("there is a route");
    let message = message(route, captures, query(text)?, body.as_bytes())?;
    Ok(message.transcode_to().unwrap())
}

#[track_caller]
fn refuses(verb: &str, uri: &str, body: &str, says: &str) {
    let refusal = match verb {
        "GET" => read::<pb::ListRecordsRequest>(verb, uri, body).unwrap_err(),
        _ => read::<pb::UpdateRecordRequest>(verb, uri, body).unwrap_err(),
    };
    assert_eq!((refusal.http, refusal.code), (400, 3), "{refusal:?}");
    assert!(refusal.message.contains(says), "{}", refusal.message);
}

#[test]
fn a_query_may_spell_names_either_way_and_is_decoded() {
    let expected = pb::ListRecordsRequest {
        parent: "ci/results/-".into(),
        filter: "data.metadata.name == \"a+b é\" && x".into(),
        page_size: 7,
        page_token: "t/=".into(),
        order_by: "create_time desc".into(),
    };
    let filter = "filter=data.metadata.name+%3D%3D+%22a%2Bb%20%C3%A9%22+%26%26+x";
    for (size, token, order) in [
        ("page_size", "page_token", "order_by"),
        ("pageSize", "pageToken", "orderBy"),
    ] {
        let uri = format!(
            "/ci/results/-/records?{filter}&{size}=7&&{token}=t/=&{order}=create_time desc\
             &parent=other/results/x&unknown=1&fields=records.name&PartialResponse=true"
        );
        assert_eq!(
            read("GET", &uri, "ignored").as_ref(),
            Ok(&expected),
            "{uri}"
        );
    }
}

#[test]
fn a_query_that_cannot_be_meant_is_refused_with_its_field() {
    let list = "/ci/results/-/records";
    refuses(
        "GET",
        &format!("{list}?page_size=many"),
        "",
        "parsing field \"page_size\"",
    );
    refuses(
        "GET",
        &format!("{list}?pageSize=1.5"),
        "",
        "parsing field \"page_size\"",
    );
    refuses(
        "GET",
        &format!("{list}?page_size=5000000000"),
        "",
        "\"page_size\"",
    );
    refuses("GET", &format!("{list}?page_size="), "", "\"page_size\"");
    refuses(
        "GET",
        &format!("{list}?page_size=5&page_size=6"),
        "",
        "too many values",
    );
    refuses("GET", &format!("{list}?filter=%ff"), "", "not UTF-8");
    refuses("GET", "/%ff/results/-/records", "", "not UTF-8");
}

#[test]
fn the_body_is_the_field_that_the_route_names() {
    let request: pb::CreateRecordRequest = read(
        "POST",
        "/cluster/c-1/namespace/ci/results/a/records?etag=x&record.name=y",
        r#"{"name": "n", "data": {"type": "t", "value": "-__-AQ=="}, "what": [{"is": "this"}],
            "createTime": "2026-03-01T11:00:00.5+01:00", "update_time": null}"#,
    )
    .unwrap();
    assert_eq!(request.parent, "cluster/c-1/namespace/ci/results/a");
    let record = request.record.unwrap();
    assert_eq!(record.name, "n");
    assert_eq!(
        record.data.unwrap().value.as_ref(),
        [0xfb, 0xff, 0xfe, 0x01]
    );
    assert_eq!(record.create_time.unwrap().seconds, 1_772_359_200);

    let request: pb::CreateResultRequest = read(
        "POST",
        "/ci/results",
        r#"{"summary": {"status": "SUCCESS", "end_time": "2026-03-01T10:00:00Z"}}"#,
    )
    .unwrap();
    assert_eq!(request.result.unwrap().summary.unwrap().status, 1);
    for (status, expected) in [("2", 2), ("77", 77), ("\"NONSENSE\"", 0)] {
        let body = format!(r#"{{"summary": {{"status": {status}}}}}"#);
        let request: pb::CreateResultRequest = read("POST", "/ci/results", &body).unwrap();
        assert_eq!(request.result.unwrap().summary.unwrap().status, expected);
    }
    let empty: pb::CreateResultRequest = read("POST", "/ci/results", " \n").unwrap();
    assert_eq!(empty.result, Some(pb::Result::default()));
}

#[test]
fn a_body_that_is_not_the_message_is_refused() {
    let uri = "/ci/results/a/records/b";
    refuses("PATCH", uri, "{", "the body is not a Record");
    refuses("PATCH", uri, "[]", "the body is not a Record");
    refuses("PATCH", uri, r#"{"name": 7}"#, "the body is not a Record");
    refuses("PATCH", uri, "{} {}", "the body is not a Record");
    refuses(
        "PATCH",
        uri,
        r#"{"data": {"value": {"kind": "TaskRun"}}}"#,
        "base64",
    );
    refuses("PATCH", uri, r#"{"data": {"value": "%"}}"#, "base64");
}

#[test]
fn a_patch_names_its_record_by_the_path_and_its_fields_by_the_body() {
    let uri = "/c/a/results/r/records/b?etag=e";
    let body = r#"{"name": "c/a/results/r/records/b", "data": {"value": "e30="}}"#;
    let request: pb::UpdateRecordRequest = read("PATCH", uri, body).unwrap();
    assert_eq!(request.etag, "e");
    assert_eq!(request.update_mask.unwrap().paths, ["data.value", "name"]);
    assert_eq!(request.record.unwrap().name, "c/a/results/r/records/b");

    let masked = format!("{uri}&update_mask=data.type,%20data.value");
    let request: pb::UpdateRecordRequest = read("PATCH", &masked, body).unwrap();
    assert_eq!(
        request.update_mask.unwrap().paths,
        ["data.type", "data.value"]
    );
    let request: pb::UpdateRecordRequest = read("PATCH", uri, "").unwrap();
    assert_eq!(request.update_mask, None);
    let other = body.replace("records/b", "records/y");
    refuses("PATCH", uri, &other, "the path is enough");
    let unknown = r#"{"data": {}, "datum": 1}"#;
    let says = "could not find field \"datum\" in \"tekton.results.v1alpha2.Record\"";
    refuses("PATCH", uri, unknown, says);
    refuses("PATCH", &masked, unknown, says);
}

#[test]
fn a_patch_of_a_result_needs_no_name_beside_its_path() {
    let read = |query: &str| {
        let uri = format!("/ci/results/a?{query}");
        read::<pb::UpdateResultRequest>("PATCH", &uri, r#"{"annotations": {"k": "v"}, "x": 1}"#)
    };
    for query in ["", "name=ci/results/a", "name=", "name=ci%2Fresults%2Fa"] {
        let request = read(query).unwrap();
        assert_eq!(request.name, "");
        assert_eq!(request.result.unwrap().name, "ci/results/a");
    }
    assert_eq!(read("etag=e").unwrap().etag, "e");
    let refusal = read("name=ci/results/b").unwrap_err();
    assert_eq!(refusal.code, 3);
    assert!(
        refusal.message.contains("ci/results/b"),
        "{}",
        refusal.message
    );
}

#[test]
fn an_escaped_slash_divides_a_path() {
    assert_eq!(segments("/a%2Fb/c").unwrap(), ["a", "b", "c"]);
    assert_eq!(segments("/a%20b/%C3%A9/").unwrap(), ["a b", "é", ""]);
    assert_eq!(segments("/").unwrap(), [""]);
}

/// The services of Kubeflow alone.
fn kubeflow() -> DescriptorPool {
    DescriptorPool::decode(KUBEFLOW_FILE_DESCRIPTOR_SET).unwrap()
}

#[test]
fn of_kubeflow_the_path_decides_over_the_body_and_unknown_fields_are_refused() {
    let pool = kubeflow();
    let read = |body| {
        let uri = "/apis/v2beta1/pipelines/a/versions/b?unknown=1";
        read_of::<kfp::UpdatePipelineVersionRequest>(&pool, "PATCH", uri, body)
    };
    let version = read(r#"{"pipeline_id":"x","pipelineVersionId":"y","display_name":"d"}"#);
    let version = version.unwrap().pipeline_version.unwrap();
    assert_eq!(
        (
            &*version.pipeline_id,
            &*version.pipeline_version_id,
            &*version.display_name
        ),
        ("a", "b", "d")
    );
    let refusal = read(r#"{"colour":"red"}"#).unwrap_err();
    assert_eq!((refusal.http, refusal.code), (400, 3));
}

#[test]
fn a_boolean_of_a_query_is_spelled_as_go_and_python_do() {
    let pool = kubeflow();
    let read = |text: &str| {
        let uri = format!("/apis/v2beta1/pipelines/a?cascade={text}");
        read_of::<kfp::DeletePipelineRequest>(&pool, "DELETE", &uri, "")
    };
    for (text, value) in [
        ("True", true),
        ("1", true),
        ("t", true),
        ("false", false),
        ("F", false),
        ("0", false),
    ] {
        assert_eq!(read(text).unwrap().cascade, value, "{text}");
    }
    for bad in ["yes", "2", "tRUE", ""] {
        assert_eq!(read(bad).unwrap_err().http, 400, "{bad}");
    }
}

#[test]
fn an_update_of_kubeflow_says_beside_the_message_which_maps_are_empty() {
    let pool = kubeflow();
    let routes = Routes::read(&pool).unwrap();
    let told = |verb: Method, path: &str, body: &str| {
        let segments = segments(path).unwrap();
        let (route, _) = routes.find(&verb, &segments).expect("there is a route");
        emptied(route, body.as_bytes())
    };
    let one = "/apis/v2beta1/pipelines/a";
    assert_eq!(
        told(Method::PATCH, one, r#"{"tags": { }}"#),
        ["x-clear-tags"]
    );
    for body in [
        r#"{"tags":{"a":""}}"#,
        r#"{"tags":null}"#,
        r#"{"tags":[]}"#,
        "{}",
        "",
        "{",
    ] {
        assert_eq!(told(Method::PATCH, one, body), [""; 0], "{body}");
    }
    let all = "/apis/v2beta1/pipelines";
    assert_eq!(told(Method::POST, all, r#"{"tags":{}}"#), [""; 0]);
}
