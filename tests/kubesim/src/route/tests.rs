//! Paths and queries of the API, and what they ask for.

use http::Method;

use super::{Query, Route, Target, verb};

#[track_caller]
fn leads(path: &str, to: [&str; 6]) {
    let [group, version, plural, namespace, name, subresource] = to.map(str::to_owned);
    let target = Target {
        group,
        version,
        plural,
        namespace,
        name,
        subresource,
    };
    assert_eq!(Route::parse(path), Route::Objects(target), "{path}");
}

#[test]
fn paths_lead_to_objects() {
    leads("/api/v1/pods", ["", "v1", "pods", "", "", ""]);
    leads(
        "/api/v1/namespaces/n/pods/p",
        ["", "v1", "pods", "n", "p", ""],
    );
    leads("/api/v1/namespaces", ["", "v1", "namespaces", "", "", ""]);
    leads(
        "/api/v1/namespaces/n",
        ["", "v1", "namespaces", "", "n", ""],
    );
    leads(
        "/api/v1/namespaces/n/status",
        ["", "v1", "namespaces", "", "n", "status"],
    );
    leads("/apis/g/v1/things", ["g", "v1", "things", "", "", ""]);
    leads(
        "/apis/g/v1/namespaces/n/things/t/status",
        ["g", "v1", "things", "n", "t", "status"],
    );
}

#[test]
fn other_paths_are_documents_or_nothing() {
    assert_eq!(Route::parse("/api"), Route::CoreVersions);
    assert_eq!(Route::parse("/apis/"), Route::Groups);
    assert_eq!(Route::parse("/apis/g"), Route::Group("g".into()));
    assert_eq!(Route::parse("/readyz/ping"), Route::Health);
    for nothing in [
        "/",
        "/metrics",
        "/apis/g/v1/namespaces/n/things/t/status/more",
    ] {
        assert_eq!(Route::parse(nothing), Route::Nowhere, "{nothing}");
    }
}

#[test]
fn methods_mean_verbs_by_where_they_go() {
    let verb_of = |method: Method, path: &str, watch| {
        verb(&Route::parse(path), &method, watch).map_err(|refusal| refusal.code)
    };
    let (all, one) = ("/api/v1/pods", "/api/v1/namespaces/n/pods/p");
    assert_eq!(verb_of(Method::GET, all, false), Ok("list"));
    assert_eq!(verb_of(Method::GET, all, true), Ok("watch"));
    assert_eq!(verb_of(Method::GET, one, false), Ok("get"));
    assert_eq!(verb_of(Method::DELETE, all, false), Ok("deletecollection"));
    assert_eq!(verb_of(Method::DELETE, one, false), Ok("delete"));
    assert_eq!(verb_of(Method::PUT, all, false), Err(405));
    assert_eq!(verb_of(Method::POST, one, false), Err(405));
    assert_eq!(verb_of(Method::POST, "/version", false), Err(405));
}

#[test]
fn queries_are_decoded() {
    let query = Query::parse("&labelSelector=a%20in+(b%2Cc)&watch=1&limit=5&bad=%zz&empty=");
    assert_eq!(query.text("labelSelector"), "a in (b,c)");
    assert_eq!(query.text("bad"), "%zz");
    assert!(query.flag("watch") && !query.flag("missing"));
    assert_eq!(query.number("limit"), Ok(Some(5)));
    assert_eq!(query.number("empty"), Ok(None));
    assert_eq!(
        query.number("bad").map_err(|refusal| refusal.code),
        Err(400)
    );
}
