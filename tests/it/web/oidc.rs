//! Sign-in at a provider: what it gives, and the attacks that it withstands.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use hindsight_runtime::clock::{Clock as _, ManualClock};
use serde_json::{Value, json};

use super::{
    page,
    provider::{CLIENT, Provider, SECRET, Twist},
    sign_in::cookie,
};
use crate::support::{
    Database, TestServer,
    http::{Http, Reply, target},
    server::config,
};

const PUBLIC: &str = "http://localhost:7";
const OWN: (&str, &str) = ("origin", PUBLIC);
const READERS: &str =
    "[[roles]]\ngroups = ['dev']\ngrants = [{parents = ['*'], role = 'readonly'}]\n";

/// A server whose callers sign in at a provider.
pub struct Given {
    server: TestServer,
    database: Database,
    provider: Provider,
    clock: Arc<ManualClock>,
    folder: tempfile::TempDir,
}

/// What a browser keeps of a sign-in that it began: the address of the provider, and a cookie.
struct Begun {
    location: String,
    cookie: String,
}

impl Given {
    async fn start(announced: Value) -> Self {
        Self::start_at(PUBLIC, "127.0.0.1:0", announced).await
    }

    /// A server, and the address at which a browser reaches it.
    pub async fn reachable() -> (Self, String) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = port.local_addr().unwrap().to_string();
        drop(port);
        let public = listen.replace("127.0.0.1", "http://localhost");
        (Self::start_at(&public, &listen, json!({})).await, public)
    }

    async fn start_at(public: &str, listen: &str, announced: Value) -> Self {
        let provider = Provider::start(&format!("{public}/ui/login/callback"), announced).await;
        let folder = tempfile::tempdir().unwrap();
        let (roles, secret) = (folder.path().join("roles"), folder.path().join("secret"));
        std::fs::write(&roles, READERS).unwrap();
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let (roles, secret) = (roles.display().to_string(), secret.display().to_string());
        let database = Database::sqlite();
        let clock = ManualClock::at("2026-03-02T17:00:00Z".parse().unwrap());
        let clock = Arc::new(clock);
        let config = config(
            &database,
            &[
                ("auth", "oidc"),
                ("oidc_issuer", &provider.issuer.url),
                ("oidc_audience", "hindsight"),
                ("oidc_roles_file", &roles),
                ("oidc_client_id", CLIENT),
                ("oidc_client_secret_file", &secret),
                ("oidc_scopes", "openid groups"),
                ("public_url", public),
                ("listen", listen),
            ],
        );
        Self {
            server: TestServer::start_at(&config, Arc::clone(&clock) as _).await,
            database,
            provider,
            clock,
            folder,
        }
    }

    async fn http(&self) -> Http {
        Http::one(&self.server.url).await
    }

    pub async fn stop(self) {
        self.server.stop().await;
        self.database.remove().await;
    }
}

async fn begin(http: &mut Http, to: &str) -> Begun {
    let reply = page(http, &format!("/ui/login/start?to={to}")).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    Begun {
        location: reply.header("location").unwrap().to_owned(),
        cookie: cookie(&reply),
    }
}

/// Where the provider sends the browser of a person who signs in there.
async fn at_provider(begun: &Begun) -> String {
    let (base, path) = begun
        .location
        .split_at(begun.location.find("/authorize").unwrap());
    let reply = page(&mut Http::one(base).await, path).await;
    let back = reply.header("location").unwrap();
    back.strip_prefix(PUBLIC).unwrap().to_owned()
}

async fn with_cookie(http: &mut Http, target: &str, cookie: &str) -> Reply {
    let headers = [("cookie", cookie), ("accept", "text/html")];
    http.send("GET", target, &headers, "").await
}

async fn signed_in(http: &mut Http, to: &str) -> Reply {
    let begun = begin(http, to).await;
    let back = at_provider(&begun).await;
    with_cookie(http, &back, &begun.cookie).await
}

/// Whether no session began, and the page says why.
#[track_caller]
fn is_refused(reply: &Reply, why: &str) {
    let text = reply.text();
    assert_eq!(reply.status, 401, "{text}");
    assert!(text.contains(why), "`{why}` is not in {text}");
    let set = reply.headers.get_all("set-cookie").iter();
    let mut values = set.map(|set| set.to_str().unwrap());
    assert!(values.all(|set| set.ends_with("Max-Age=0")), "{reply:?}");
}

#[tokio::test]
async fn a_deep_link_leads_over_the_provider_to_the_same_page() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let to = "%2Fui%2Fruns%3Fq%3Dfailed%26ns%3Dshop";
    let reply = page(&mut http, "/ui/runs?q=failed&ns=shop").await;
    let login = format!("/ui/login?to={to}");
    assert_eq!(reply.header("location"), Some(login.as_str()));
    let html = page(&mut http, &login).await.text();
    assert!(
        html.contains(&format!("href=\"/ui/login/start?to={to}\"")),
        "{html}"
    );
    assert!(html.contains("Sign in at 127.0.0.1:"), "{html}");

    let begun = begin(&mut http, to).await;
    let back = at_provider(&begun).await;
    let reply = with_cookie(&mut http, &back, &begun.cookie).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    assert_eq!(reply.header("location"), Some("/ui/runs?q=failed&ns=shop"));
    let set: Vec<_> = reply.headers.get_all("set-cookie").iter().collect();
    assert_eq!(set.len(), 2, "a session, and the end of the sign-in");
    assert_eq!(
        set[1],
        "hs-login=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"
    );
    let session = cookie(&reply);
    let html = with_cookie(&mut http, "/ui/you", &session).await.text();
    assert!(html.contains("ann") && html.contains("Sign out"), "{html}");
    // As with a token that was pasted, the session counts for pages alone.
    let api = target("-/results", &[]);
    assert_eq!(with_cookie(&mut http, &api, &session).await.status, 401);
    // A provider whose ID tokens are for the client alone has access tokens for the server.
    given.provider.twist(Twist::AccessToken);
    assert_eq!(signed_in(&mut http, "").await.status, 303);
    given.stop().await;
}

#[tokio::test]
async fn state_mismatch_begins_no_session() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let begun = begin(&mut http, "").await;
    let back = at_provider(&begun).await;
    let state = back
        .split("state=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap();
    for other in ["", "s", &"s".repeat(43)] {
        let changed = back.replace(state, other);
        let reply = with_cookie(&mut http, &changed, &begun.cookie).await;
        is_refused(&reply, "belongs to another sign-in");
    }
    assert_eq!(given.provider.asked(), 0);
    // It was not used up.
    let reply = with_cookie(&mut http, &back, &begun.cookie).await;
    assert_eq!(reply.status, 303);
    given.stop().await;
}

#[tokio::test]
async fn login_csrf_begins_no_session_of_another_person() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let attacker = begin(&mut http, "").await;
    let link = at_provider(&attacker).await;
    // The victim's browser follows the link: with no sign-in of its own, and with one.
    is_refused(&page(&mut http, &link).await, "No sign-in goes on");
    let victim = begin(&mut http, "").await;
    let reply = with_cookie(&mut http, &link, &victim.cookie).await;
    is_refused(&reply, "belongs to another sign-in");
    assert_eq!(given.provider.asked(), 0);
    given.stop().await;
}

#[tokio::test]
async fn a_replayed_code_begins_no_session() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let begun = begin(&mut http, "").await;
    let back = at_provider(&begun).await;
    assert_eq!(
        with_cookie(&mut http, &back, &begun.cookie).await.status,
        303
    );
    // The browser has no cookie any more; a copy of it does not help either.
    is_refused(&page(&mut http, &back).await, "No sign-in goes on");
    let reply = with_cookie(&mut http, &back, &begun.cookie).await;
    is_refused(
        &reply,
        "refused the sign-in: invalid_grant (said the provider)",
    );
    given.stop().await;
}

#[tokio::test]
async fn a_code_of_another_sign_in_begins_no_session() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let (victim, attacker) = (begin(&mut http, "").await, begin(&mut http, "").await);
    let (stolen, own) = (at_provider(&victim).await, at_provider(&attacker).await);
    let code = |back: &str| back.split(['=', '&']).nth(1).unwrap().to_owned();
    let injected = own.replace(&code(&own), &code(&stolen));
    let reply = with_cookie(&mut http, &injected, &attacker.cookie).await;
    is_refused(&reply, "invalid_grant");
    given.stop().await;
}

#[tokio::test]
async fn tokens_that_are_for_something_else_begin_no_session() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    for (twist, why) in [
        (Twist::OtherNonce, "not valid for this sign-in (nonce)"),
        (
            Twist::OtherAudience,
            "not valid for this sign-in (audience)",
        ),
        (Twist::OtherParty, "not valid for this sign-in (audience)"),
        (Twist::OnlyClient, "want a JWT for the audience `hindsight`"),
        (Twist::Short(1), "not valid for this sign-in (expired)"),
        (Twist::Large, "a session holds 2,560"),
    ] {
        given.provider.twist(twist);
        is_refused(&signed_in(&mut http, "").await, why);
    }
    given.provider.twist(Twist::None);
    assert_eq!(signed_in(&mut http, "").await.status, 303);
    given.stop().await;
}

#[tokio::test]
async fn open_redirects_after_signing_in_at_the_provider_lead_to_the_first_page() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    for to in [
        "https://evil.example",
        "//evil.example",
        "/ui//evil.example",
        "/ui/%5cevil",
        "/apis",
        &format!("/ui/runs?q={}", "a".repeat(4_000)),
    ] {
        let reply = signed_in(&mut http, to).await;
        assert_eq!(reply.header("location"), Some("/ui/"), "{to}");
    }
    given.stop().await;
}

#[tokio::test]
async fn an_answer_of_a_mixed_up_issuer_begins_no_session() {
    let announced = "authorization_response_iss_parameter_supported";
    for (announces, without) in [(json!({announced: true}), 401), (json!({}), 303)] {
        let given = Given::start(announces).await;
        let mut http = given.http().await;
        let begun = begin(&mut http, "").await;
        let back = at_provider(&begun).await;
        let (plain, _) = back.split_once("&iss=").unwrap();
        let other = format!("{plain}&iss=https%3A%2F%2Fevil.example");
        let reply = with_cookie(&mut http, &other, &begun.cookie).await;
        is_refused(&reply, "does not come from 127.0.0.1:");
        assert_eq!(given.provider.asked(), 0, "no code is sent to anybody");
        let reply = with_cookie(&mut http, plain, &begun.cookie).await;
        assert_eq!(reply.status, without);
        given.stop().await;
    }
}

#[tokio::test]
async fn an_expired_login_cookie_begins_no_session() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let begun = begin(&mut http, "").await;
    let back = at_provider(&begun).await;
    given.clock.advance(Duration::from_mins(10));
    let reply = with_cookie(&mut http, &back, &begun.cookie).await;
    is_refused(&reply, "took longer than 10 minutes");
    assert_eq!(given.provider.asked(), 0);
    given.stop().await;
}

#[tokio::test]
async fn a_refusal_of_the_provider_is_told_in_its_words() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let begun = begin(&mut http, "").await;
    let back = at_provider(&begun).await;
    let state = back.split("state=").nth(1).unwrap();
    let said = format!(
        "error=access_denied&error_description=%3Cb%3Eno%3C%2Fb%3E{}",
        "a".repeat(999)
    );
    let denied = format!("/ui/login/callback?{said}&state={state}");
    let reply = with_cookie(&mut http, &denied, &begun.cookie).await;
    is_refused(&reply, "refused the sign-in: access_denied (&#60;b&#62;no");
    assert!(!reply.text().contains(&"a".repeat(200)));
    given.stop().await;
}

#[tokio::test]
async fn a_session_ends_with_its_token_and_goes_on_over_the_provider() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    given
        .provider
        .twist(Twist::Short(given.clock.now().as_second() + 300));
    let session = cookie(&signed_in(&mut http, "").await);
    assert_eq!(
        with_cookie(&mut http, "/ui/runs?ns=a", &session)
            .await
            .status,
        200
    );
    given.clock.advance(Duration::from_mins(6));
    let reply = with_cookie(&mut http, "/ui/runs?ns=a", &session).await;
    let again = Some("/ui/login/start?to=%2Fui%2Fruns%3Fns%3Da");
    assert_eq!((reply.status, reply.header("location")), (303, again));
    given.stop().await;
}

#[tokio::test]
async fn rights_that_are_revoked_end_within_ten_seconds() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let session = cookie(&signed_in(&mut http, "").await);
    assert_eq!(
        with_cookie(&mut http, "/ui/runs", &session).await.status,
        200
    );
    let roles = given.folder.path().join("roles");
    std::fs::write(roles, READERS.replace("dev", "ops")).unwrap();
    let ended = async {
        while with_cookie(&mut http, "/ui/runs", &session).await.status != 403 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap();
    given.stop().await;
}

#[tokio::test]
async fn signing_out_leads_to_the_end_of_the_session_at_the_provider() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    let session = cookie(&signed_in(&mut http, "").await);
    let headers = [OWN, ("cookie", session.as_str())];
    let out = http.send("POST", "/ui/logout", &headers, "").await;
    assert_eq!(out.status, 200);
    assert!(cookie(&out).ends_with('='), "{out:?}");
    let end = format!(
        "{}/end?client_id=pages&post_logout_redirect_uri=http%3A%2F%2Flocalhost%3A7%2Fui%2Flogin",
        given.provider.issuer.url
    );
    assert_eq!(
        out.header("refresh"),
        Some(format!("0; url={end}").as_str())
    );
    assert!(out.text().contains(&end.replace('&', "&#38;")));
    // A token that was pasted has no session there.
    let token = given.provider.issuer.token("ann", &["dev"]);
    let form = format!("token={token}");
    let pasted = http.send("POST", "/ui/login", &[OWN], form).await;
    let session = cookie(&pasted);
    let headers = [OWN, ("cookie", session.as_str())];
    let out = http.send("POST", "/ui/logout", &headers, "").await;
    assert_eq!((out.status, out.header("location")), (303, Some("/ui/")));
    given.stop().await;
}

#[tokio::test]
async fn requests_for_tokens_are_bounded_in_number_size_and_time() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    given.provider.twist(Twist::Held);
    let tries = (0..12).map(|_| async {
        let mut http = given.http().await;
        signed_in(&mut http, "").await.status
    });
    let (statuses, ()) = futures::join!(
        futures::future::join_all(tries),
        given.provider.release_at(8)
    );
    assert_eq!(statuses, [303; 12]);
    assert_eq!(given.provider.state.at_once.load(Ordering::SeqCst), 8);

    given.provider.twist(Twist::Huge);
    let large = signed_in(&mut http, "").await;
    assert_eq!(large.status, 503);
    assert!(large.text().contains("cannot be asked at the moment"));
    given.provider.twist(Twist::Silent);
    let late = tokio::time::timeout(Duration::from_secs(20), signed_in(&mut http, "")).await;
    assert_eq!(late.unwrap().status, 503);
    given.stop().await;
}

#[tokio::test]
async fn only_links_lead_to_the_provider_and_back() {
    let given = Given::start(json!({})).await;
    let mut http = given.http().await;
    for target in ["/ui/login/start", "/ui/login/callback?code=a&state=b"] {
        for method in ["HEAD", "POST"] {
            let reply = http.send(method, target, &[OWN], "").await;
            assert_eq!(
                (reply.status, reply.header("set-cookie")),
                (405, None),
                "{target}"
            );
        }
    }
    given.stop().await;
}
