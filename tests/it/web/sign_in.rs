//! How callers sign in by a page, and what that gives them.

use std::path::Path;

use hindsight_access::auth::token_hash;

use super::{
    asked_as, page,
    seed::{Given, empty, record},
};
use crate::support::{
    Database, TestServer,
    http::{Http, Reply, target},
    objects::{PIPELINE_RUN, bytes, task_run},
};

/// Users with these tokens, each of whom may read one parent.
fn write(path: &Path, users: &[(&str, &str)]) {
    let users = users.iter().map(|(token, parent)| {
        let hash = token_hash(token);
        format!(
            "[[users]]\nname = '{token}'\nsha256 = ['{hash}']\n\
             grants = [{{parents = ['{parent}'], role = 'readonly'}}]\n"
        )
    });
    std::fs::write(path, users.collect::<String>()).unwrap();
}

pub struct Guarded {
    pub server: Given,
    pub path: std::path::PathBuf,
    pub _folder: tempfile::TempDir,
}

pub async fn guarded(more: &[(&str, &str)]) -> Guarded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    write(&path, &[("reader", "*"), ("shopper", "shop")]);
    let shown = path.display().to_string();
    let mut all = vec![("auth", "tokens"), ("auth_tokens_file", shown.as_str())];
    all.extend(more);
    Guarded {
        server: empty(&all).await,
        path,
        _folder: folder,
    }
}

const OWN: (&str, &str) = ("origin", "http://localhost");

pub async fn sign_in(http: &mut Http, token: &str, to: &str) -> Reply {
    let form = format!("token={token}&to={to}");
    http.send("POST", "/ui/login", &[OWN], form).await
}

/// What a browser sends back of a cookie that was set.
pub fn cookie(reply: &Reply) -> String {
    let set = reply.header("set-cookie").unwrap();
    set.split(';').next().unwrap().to_owned()
}

async fn with_cookie(http: &mut Http, target: &str, cookie: &str) -> Reply {
    http.send("GET", target, &[("cookie", cookie)], "").await
}

#[tokio::test]
async fn a_deep_link_leads_over_the_sign_in_to_the_same_page() {
    let Guarded {
        server, _folder, ..
    } = guarded(&[]).await;
    let mut http = Http::one(&server.url).await;
    let reply = page(&mut http, "/ui/runs?q=failed&ns=shop").await;
    let to = "%2Fui%2Fruns%3Fq%3Dfailed%26ns%3Dshop";
    assert_eq!(reply.status, 303);
    assert_eq!(
        reply.header("location"),
        Some(format!("/ui/login?to={to}").as_str())
    );
    let form = page(&mut http, &format!("/ui/login?to={to}")).await.text();
    assert!(
        form.contains("value=\"/ui/runs?q=failed&#38;ns=shop\""),
        "{form}"
    );

    let wrong = sign_in(&mut http, "wrong", to).await;
    assert_eq!(wrong.status, 401);
    assert!(wrong.text().contains("does not know this token"));
    assert_eq!(wrong.header("set-cookie"), None);
    let unusable = sign_in(&mut http, &"a".repeat(4_000), to).await;
    assert_eq!(unusable.status, 401);

    let reply = sign_in(&mut http, "reader", to).await;
    assert_eq!(reply.status, 303);
    assert_eq!(reply.header("location"), Some("/ui/runs?q=failed&ns=shop"));
    let set = reply.header("set-cookie").unwrap();
    assert!(
        set.contains("HttpOnly; SameSite=Lax") && !set.contains("reader"),
        "{set}"
    );
    let cookie = cookie(&reply);
    let html = with_cookie(&mut http, "/ui/runs?q=failed&ns=shop", &cookie).await;
    assert_eq!(html.status, 200);
    assert!(html.text().contains("Sign out"));

    // What asks again by itself is told where to go.
    let asked = [("hx-request", "true")];
    let reply = http.send("GET", "/ui/runs", &asked, "").await;
    assert_eq!(
        (reply.status, reply.header("hx-redirect")),
        (401, Some("/ui/login?to=%2Fui%2Fruns"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_session_counts_for_pages_alone() {
    let Guarded {
        server, _folder, ..
    } = guarded(&[]).await;
    let mut http = Http::one(&server.url).await;
    let cookie = cookie(&sign_in(&mut http, "reader", "").await);
    let api = target("-/results", &[]);
    assert_eq!(with_cookie(&mut http, &api, &cookie).await.status, 401);
    let (name, value) = cookie.split_once('=').unwrap();
    let other = if value.starts_with('A') { 'B' } else { 'A' };
    let changed = format!("{name}={other}{}", &value[1..]);
    assert_eq!(
        with_cookie(&mut http, "/ui/runs", &changed).await.status,
        303
    );
    // A header wins over the cookie, and says so where it is wrong.
    let both = [
        ("cookie", cookie.as_str()),
        ("authorization", "Bearer wrong"),
    ];
    let reply = http.send("GET", "/ui/runs", &both, "").await;
    assert_eq!(reply.status, 401);
    assert!(reply.text().contains("Authorization header"));
    let header = [("authorization", "Bearer reader")];
    assert_eq!(http.send("GET", "/ui/runs", &header, "").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn forms_of_other_origins_change_nothing() {
    let Guarded {
        server, _folder, ..
    } = guarded(&[]).await;
    let mut http = Http::one(&server.url).await;
    for target in ["/ui/login", "/ui/logout", "/ui/preferences"] {
        for headers in [
            &[][..],
            &[("origin", "http://evil.example")],
            &[("origin", "null")],
            &[OWN, ("sec-fetch-site", "cross-site")],
            &[OWN, ("sec-fetch-site", "same-site")],
        ] {
            let reply = http.send("POST", target, headers, "token=reader").await;
            assert_eq!(
                (reply.status, reply.header("set-cookie")),
                (403, None),
                "{target}"
            );
        }
    }
    let large = http
        .send("POST", "/ui/preferences", &[OWN], "a".repeat(20_000))
        .await;
    assert_eq!(large.status, 413);
    server.stop().await;
}

#[tokio::test]
async fn after_signing_in_nobody_is_sent_elsewhere() {
    let Guarded {
        server, _folder, ..
    } = guarded(&[]).await;
    let mut http = Http::one(&server.url).await;
    for to in [
        "https://evil.example",
        "//evil.example",
        "/ui//evil.example",
        "/ui/%5cevil",
        "/apis",
    ] {
        let reply = sign_in(&mut http, "reader", to).await;
        assert_eq!(reply.header("location"), Some("/ui/"), "{to}");
        let form = format!("theme=dark&to={to}");
        let reply = http.send("POST", "/ui/preferences", &[OWN], form).await;
        assert_eq!(reply.header("location"), Some("/ui/"), "{to}");
    }
    let reply = http
        .send("POST", "/ui/preferences", &[OWN], "theme=dark&to=/ui/login")
        .await;
    assert!(
        reply
            .header("set-cookie")
            .unwrap()
            .starts_with("hs_theme=dark; Path=/ui;")
    );
    let html = with_cookie(&mut http, "/ui/login", &cookie(&reply))
        .await
        .text();
    assert!(html.contains("data-theme=\"dark\""));
    server.stop().await;
}

#[tokio::test]
async fn signing_out_and_a_token_that_is_taken_back_end_a_session() {
    let Guarded {
        server,
        path,
        _folder,
    } = guarded(&[]).await;
    let mut http = Http::one(&server.url).await;
    let reply = sign_in(&mut http, "reader", "").await;
    let session = cookie(&reply);
    let out = http
        .send("POST", "/ui/logout", &[OWN, ("cookie", &session)], "")
        .await;
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().ends_with("Max-Age=0"));
    write(&path, &[("shopper", "shop")]);
    let ended = async {
        while with_cookie(&mut http, "/ui/runs", &session).await.status != 303 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let patience = std::time::Duration::from_secs(30);
    tokio::time::timeout(patience, ended).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_caller_sees_what_that_caller_may_read() {
    let database = Database::sqlite();
    let open = TestServer::start(&database).await;
    let run = task_run("mine", "Succeeded");
    for parent in ["shop", "data"] {
        let name = format!("{parent}/results/r/records/r");
        open.given_record(&name, PIPELINE_RUN, &bytes(&run)).await;
    }
    assert!(record(&open, "").await.ends_with("/results/r/records/r"));
    open.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    write(&path, &[("shopper", "shop")]);
    let shown = path.display().to_string();
    let more = [("auth", "tokens"), ("auth_tokens_file", shown.as_str())];
    let server = TestServer::start_with(&database, &more).await;
    let mut http = Http::one(&server.url).await;
    let session = cookie(&sign_in(&mut http, "shopper", "").await);
    let mut see = async |target: &str| with_cookie(&mut http, target, &session).await;
    assert_eq!(see("/ui/runs?ns=shop").await.status, 200);
    assert_eq!(see("/ui/run/shop/results/r/records/r").await.status, 200);
    for target in ["/ui/", "/ui/runs", "/ui/runs?ns=data", "/ui/health"] {
        let reply = see(target).await;
        assert_eq!(reply.status, 403, "{target}");
        assert!(reply.text().contains("Name a namespace"));
    }
    // What is there and what is not look alike.
    let there = see("/ui/raw/data/results/r/records/r").await;
    let absent = see("/ui/raw/data/results/x/records/x").await;
    assert_eq!((there.status, absent.status), (403, 403));
    server.stop().await;
}

#[tokio::test]
async fn over_an_open_connection_only_this_machine_signs_in() {
    let Guarded {
        server, _folder, ..
    } = guarded(&[("public_url", "https://results.example")]).await;
    let mut http = Http::one(&server.url).await;
    let origin = [("origin", "https://results.example")];
    let reply = http
        .send("POST", "/ui/login", &origin, "token=reader")
        .await;
    let set = reply.header("set-cookie").unwrap();
    assert!(
        set.starts_with("__Host-hs=") && set.contains("; Secure"),
        "{set}"
    );
    server.stop().await;
    let Guarded {
        server, _folder, ..
    } = guarded(&[]).await;
    for (host, may) in [
        ("localhost", true),
        ("127.0.0.1:8080", true),
        ("[::1]:8080", true),
        ("results.example", false),
        ("localhost.evil.example:80", false),
    ] {
        let answer = asked_as(&server, host, "/ui/login").await;
        assert_eq!(answer.contains("name=\"token\""), may, "{host}");
        assert_eq!(answer.contains("not encrypted"), !may, "{host}");
    }
    server.stop().await;
}
