//! Decisions of a simulated cluster: outcomes, how often it is asked, and what happens when it
//! does not answer.

use kubesim::{Fault, Sim};

use super::*;
use crate::auth::{ActingFor, Guarded, Verb};
use hindsight_runtime::clock::ManualClock;
use hindsight_runtime::error::{ErrorKind, HasKind as _, report};

const GROUP: &str = "results.tekton.dev";

struct Bench {
    sim: Sim,
    clock: Arc<ManualClock>,
    kubernetes: Arc<Kubernetes>,
}

impl Bench {
    fn new() -> Self {
        Self::with(true)
    }

    fn with(impersonate: bool) -> Self {
        let sim = Sim::new();
        sim.policy()
            .token("zoe", "zoe", &["dev"])
            .token("max", "max", &[])
            .allow("dev", "get", GROUP, "records", "ci")
            .allow("max", "list", GROUP, "records", "*");
        let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
        let options = Options {
            keep_allowed: Duration::from_secs(10),
            keep_denied: Duration::from_secs(5),
            impersonate,
        };
        let kubernetes = Kubernetes::over(
            sim.client(),
            options,
            Arc::clone(&clock) as _,
            &Metrics::new(&mut Registry::new()),
        );
        Self {
            sim,
            clock,
            kubernetes: Arc::new(kubernetes),
        }
    }

    async fn ask(&self, tokens: &[&str], verb: Verb, parent: &str) -> Result<Grant, Error> {
        self.acting(tokens, ActingFor::default(), verb, parent)
            .await
    }

    async fn acting(
        &self,
        tokens: &[&str],
        acting_for: ActingFor,
        verb: Verb,
        parent: &str,
    ) -> Result<Grant, Error> {
        let credentials = Credentials {
            bearer: tokens.iter().map(|token| (*token).to_owned()).collect(),
            acting_for,
            source: None,
        };
        let access = Access {
            verb,
            resource: Guarded::Records,
            parent: parent.parse().unwrap(),
        };
        self.kubernetes.authorize(&credentials, access).await
    }

    fn reviews(&self) -> (u64, u64) {
        let policy = self.sim.policy();
        (policy.token_reviews(), policy.access_reviews())
    }
}

#[track_caller]
fn refused(answer: Result<Grant, Error>, kind: ErrorKind, text: &str) {
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
}

const DENIED: &str = "permission denied";

#[tokio::test]
async fn the_cluster_says_who_may_do_what_where() {
    let bench = Bench::new();
    assert!(bench.ask(&["zoe"], Verb::Get, "ci").await.is_ok());
    for (verb, parent) in [
        (Verb::Get, "dev"),
        (Verb::Delete, "ci"),
        (Verb::List, "-"),
        (Verb::Get, "cluster/east/namespace/ci"),
    ] {
        refused(
            bench.ask(&["zoe"], verb, parent).await,
            ErrorKind::Denied,
            DENIED,
        );
    }
    for parent in ["-", "ci", "cluster/east/namespace/ci"] {
        assert!(bench.ask(&["max"], Verb::List, parent).await.is_ok());
    }
    let unknown = ErrorKind::Unauthenticated;
    let bad = "the bearer token is not valid";
    refused(bench.ask(&["no"], Verb::Get, "ci").await, unknown, bad);
    let none = "a bearer token is required: send `authorization: Bearer TOKEN`";
    refused(bench.ask(&[], Verb::Get, "ci").await, unknown, none);
}

#[tokio::test]
async fn any_of_several_tokens_may_do_but_not_any_number() {
    let bench = Bench::new();
    let granted = bench.ask(&["no", "max", "zoe"], Verb::Get, "ci").await;
    assert!(granted.is_ok());
    refused(
        bench.ask(&["no", "max"], Verb::Get, "ci").await,
        ErrorKind::Denied,
        DENIED,
    );
    let late = bench
        .ask(&["1", "2", "3", "4", "zoe"], Verb::Get, "ci")
        .await;
    refused(
        late,
        ErrorKind::Unauthenticated,
        "the bearer token is not valid",
    );
}

#[tokio::test]
async fn many_callers_at_once_are_one_review_of_each_kind() {
    let bench = Bench::new();
    bench.sim.faults().latency(Duration::from_millis(20));
    let asks = (0..200).map(|_| bench.ask(&["zoe"], Verb::Get, "ci"));
    for answer in futures::future::join_all(asks).await {
        assert!(answer.is_ok());
    }
    assert_eq!(bench.reviews(), (1, 1));
    assert!(bench.ask(&["zoe"], Verb::Get, "dev").await.is_err());
    assert_eq!(bench.reviews(), (1, 2));
}

#[tokio::test]
async fn what_is_taken_back_counts_once_the_answer_has_aged() {
    let bench = Bench::new();
    assert!(bench.ask(&["zoe"], Verb::Get, "ci").await.is_ok());
    assert!(bench.ask(&["zoe"], Verb::Get, "dev").await.is_err());
    let policy = bench.sim.policy();
    policy
        .revoke("dev", "get", GROUP, "records", "ci")
        .allow("dev", "get", GROUP, "records", "dev");
    bench.clock.advance(Duration::from_micros(4_999_999));
    assert!(bench.ask(&["zoe"], Verb::Get, "ci").await.is_ok());
    assert!(bench.ask(&["zoe"], Verb::Get, "dev").await.is_err());
    bench.clock.advance(Duration::from_secs(5));
    assert!(bench.ask(&["zoe"], Verb::Get, "dev").await.is_ok());
    bench.clock.advance(Duration::from_micros(1));
    assert!(bench.ask(&["zoe"], Verb::Get, "ci").await.is_err());
    policy.revoke_token("zoe");
    bench.clock.advance(Duration::from_secs(10));
    refused(
        bench.ask(&["zoe"], Verb::Get, "dev").await,
        ErrorKind::Unauthenticated,
        "the bearer token is not valid",
    );
}

const AWAY: &str = "access cannot be checked at the moment; try again";

#[tokio::test]
async fn without_an_answer_nothing_is_allowed_but_what_is_remembered() {
    let bench = Bench::new();
    assert!(bench.ask(&["zoe"], Verb::Get, "ci").await.is_ok());
    bench.sim.faults().down();
    assert!(bench.ask(&["zoe"], Verb::Get, "ci").await.is_ok());
    let away = ErrorKind::Unavailable;
    refused(bench.ask(&["zoe"], Verb::Get, "dev").await, away, AWAY);
    refused(bench.ask(&["max"], Verb::List, "-").await, away, AWAY);
    bench.clock.advance(Duration::from_secs(10));
    refused(bench.ask(&["zoe"], Verb::Get, "ci").await, away, AWAY);
    bench.sim.faults().up();
    assert!(bench.ask(&["zoe"], Verb::Get, "ci").await.is_ok());
}

#[tokio::test]
async fn an_api_server_that_refuses_us_is_no_answer_about_the_caller() {
    for resource in ["tokenreviews", "subjectaccessreviews"] {
        for code in [401, 403, 404, 422, 500] {
            let bench = Bench::new();
            let fault = Fault::status(code).resource(resource);
            bench.sim.faults().plan(fault);
            let error = bench.ask(&["zoe"], Verb::Get, "ci").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{resource} {code}");
            assert_eq!(error.to_string(), AWAY);
            assert!(report(&error).len() > AWAY.len(), "the log says why");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_slow_is_given_up_after_five_seconds() {
    let bench = Bench::new();
    bench.sim.faults().latency(Duration::from_secs(60));
    let started = tokio::time::Instant::now();
    let answer = bench.ask(&["zoe", "max"], Verb::Get, "ci").await;
    refused(answer, ErrorKind::Unavailable, AWAY);
    assert_eq!(started.elapsed().as_secs(), 5);
}

fn user(name: &str) -> ActingFor {
    ActingFor {
        user: Some(name.to_owned()),
        ..ActingFor::default()
    }
}

#[tokio::test]
async fn a_caller_may_act_for_others_as_far_as_its_groups_are_let() {
    let bench = Bench::new();
    bench
        .sim
        .policy()
        .token("proxy", "proxy", &["proxies"])
        .allow("proxies", "impersonate", "", "users", "*")
        .allow("proxies", "impersonate", "", "serviceaccounts", "ci")
        .allow("ann", "get", GROUP, "records", "ci")
        .allow("system:serviceaccounts:ci", "get", GROUP, "records", "ci")
        .allow("proxy", "get", GROUP, "records", "own");
    let get = |acting, parent| bench.acting(&["proxy"], acting, Verb::Get, parent);
    assert!(get(user("ann"), "ci").await.is_ok());
    // Not what the proxy itself may.
    refused(get(user("ann"), "own").await, ErrorKind::Denied, DENIED);
    let robot = "system:serviceaccount:ci:robot";
    assert!(get(user(robot), "ci").await.is_ok());
    let elsewhere = "system:serviceaccount:dev:robot";
    refused(get(user(elsewhere), "ci").await, ErrorKind::Denied, DENIED);
    refused(
        bench.acting(&["zoe"], user("ann"), Verb::Get, "ci").await,
        ErrorKind::Denied,
        DENIED,
    );
}

#[tokio::test]
async fn every_group_uid_and_extra_takes_a_right_of_its_own() {
    let authentication = "authentication.k8s.io";
    let whole = ActingFor {
        groups: vec!["dev".into()],
        uid: Some("7".into()),
        extra: [
            ("scope".into(), vec!["a".into()]),
            ("team".into(), vec!["b".into()]),
        ]
        .into(),
        ..user("ann")
    };
    let rights = [
        ("", "users"),
        ("", "groups"),
        (authentication, "uids"),
        (authentication, "userextras/scope"),
        (authentication, "userextras/team"),
    ];
    for missing in 0..=rights.len() {
        let bench = Bench::new();
        let policy = bench.sim.policy().token("proxy", "proxy", &[]);
        for (at, (group, resource)) in rights.iter().enumerate() {
            if at != missing {
                policy.allow("proxy", "impersonate", group, resource, "*");
            }
        }
        let answer = bench
            .acting(&["proxy"], whole.clone(), Verb::Get, "ci")
            .await;
        assert_eq!(answer.is_ok(), missing == rights.len(), "without {missing}");
    }
}

#[tokio::test]
async fn impersonation_that_makes_no_sense_or_is_not_taken_asks_the_cluster_nothing() {
    let bench = Bench::new();
    let group = ActingFor {
        groups: vec!["dev".into()],
        ..ActingFor::default()
    };
    let unreadable = ActingFor {
        unreadable: true,
        ..user("ann")
    };
    let many = ActingFor {
        groups: vec!["dev".into(); 33],
        ..user("ann")
    };
    let text = |why| format!("the impersonation headers are not valid: {why}");
    for (acting, why) in [
        (group, "they name no user"),
        (unreadable, "a value cannot be read"),
        (many, "they name too many groups and extras"),
    ] {
        let answer = bench.acting(&["zoe"], acting, Verb::Get, "ci").await;
        refused(answer, ErrorKind::Unauthenticated, &text(why));
    }
    assert_eq!(bench.reviews(), (0, 0));
    let bench = Bench::with(false);
    let answer = bench.acting(&["zoe"], user("ann"), Verb::Get, "ci").await;
    refused(
        answer,
        ErrorKind::Unauthenticated,
        &text("this server does not take them"),
    );
    assert_eq!(bench.reviews(), (0, 0));
}

#[tokio::test]
async fn where_no_cluster_is_said_so() {
    let options = Options {
        keep_allowed: Duration::ZERO,
        keep_denied: Duration::ZERO,
        impersonate: true,
    };
    let clock = || Arc::new(hindsight_runtime::clock::SystemClock);
    let path = Path::new("/no/such/kubeconfig");
    let error = Kubernetes::connect(Some(path), options, clock(), &mut Registry::new())
        .await
        .unwrap_err();
    assert!(
        report(&error).starts_with("the kubeconfig `/no/such/kubeconfig` cannot be used: "),
        "{}",
        report(&error)
    );
    let error = Kubernetes::connect(None, options, clock(), &mut Registry::new())
        .await
        .unwrap_err();
    assert!(
        report(&error).contains("--auth-kubeconfig"),
        "{}",
        report(&error)
    );
}

#[tokio::test]
async fn tokens_that_nobody_knows_do_not_hold_up_those_who_are_known_or_of_other_networks() {
    let bench = Bench::new();
    let kubernetes = &bench.kubernetes;
    let identify = |token: String, source: [u8; 4]| {
        let kubernetes = Arc::clone(kubernetes);
        let credentials = Credentials {
            bearer: vec![token],
            source: Some(source.into()),
            ..Credentials::default()
        };
        async move { kubernetes.identify(&credentials).await }
    };
    let (crowd, elsewhere) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    identify("zoe".to_owned(), crowd).await.unwrap();
    // The answer has run out, but it was a good one.
    bench.clock.advance(Duration::from_secs(11));
    bench.sim.faults().latency(Duration::from_millis(100));
    let strangers: Vec<_> = (0..300)
        .map(|n| tokio::spawn(identify(format!("guess-{n}"), crowd)))
        .collect();
    tokio::task::yield_now().await;
    let (known, new) = tokio::join!(
        identify("zoe".to_owned(), crowd),
        identify("max".to_owned(), elsewhere)
    );
    assert_eq!((&*known.unwrap().name, &*new.unwrap().name), ("zoe", "max"));
    let (asked, _) = bench.reviews();
    assert!(asked <= 60, "{asked} were asked about before");
    let mut turned_away = 0;
    for stranger in strangers {
        let error = stranger.await.unwrap().unwrap_err();
        turned_away += usize::from(error.kind() == ErrorKind::Unavailable);
    }
    assert!(turned_away >= 200, "{turned_away} of 300 were turned away");
}
