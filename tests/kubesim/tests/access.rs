//! Tokens, roles and reviews: who comes through the socket, and what becomes of it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus},
    core::v1::ConfigMap,
};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use kubesim::Sim;

const ROLES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: ci}
rules:
- {apiGroups: [''], resources: [configmaps], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robots, namespace: ci}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: robot}
";

const ROBOT: &str = "system:serviceaccount:ci:robot";

async fn list(client: &Client, namespace: &str) -> u16 {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    match maps.list(&ListParams::default()).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

async fn connect(kubeconfig: &std::path::Path, token: Option<&str>) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    if let Some(token) = token {
        config.auth_info.token = (!token.is_empty()).then(|| token.to_owned().into());
    }
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn requests_are_checked_once_the_policy_is_enforced() {
    let sim = Sim::new();
    sim.namespace("ci").load_dump(ROLES).unwrap();
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let robot = connect(&listening.kubeconfig_as(ROBOT).unwrap(), None).await;
    let admin = connect(listening.kubeconfig(), None).await;
    let nobody = connect(listening.kubeconfig(), Some("")).await;
    let forged = connect(listening.kubeconfig(), Some("forged")).await;
    let clients = [
        &robot,
        &admin,
        &nobody,
        &forged,
        &sim.client_as(ROBOT),
        &sim.client(),
    ];
    let answers = async || {
        let mut answers = Vec::new();
        for client in clients {
            answers.push([list(client, "ci").await, list(client, "default").await]);
        }
        answers
    };

    assert_eq!(answers().await, [[200, 200]; 6]);
    sim.policy().enforce();
    let (in_ci, all, none) = ([200, 403], [200, 200], [403, 403]);
    assert_eq!(answers().await, [in_ci, all, none, [401, 401], in_ci, all]);

    sim.clear_calls();
    list(&robot, "ci").await;
    assert_eq!(sim.calls().user(ROBOT).count(), 1);
    sim.delete("rbac.authorization.k8s.io", "rolebindings", "ci", "robots")
        .unwrap();
    assert_eq!(list(&robot, "ci").await, 403);
    sim.policy().allow(ROBOT, "list", "", "configmaps", "ci");
    assert_eq!(list(&robot, "ci").await, 200);
}

#[tokio::test]
async fn discovery_is_refused_to_everybody_when_its_binding_is_gone() {
    let sim = Sim::new();
    sim.policy().enforce();
    let robot = sim.client_as(ROBOT);
    robot.list_api_groups().await.unwrap();
    let group = "rbac.authorization.k8s.io";
    sim.delete(group, "clusterrolebindings", "", "system:discovery")
        .unwrap();
    let refused = robot.list_api_groups().await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
}

async fn review(sim: &Sim, token: &str, audiences: &[&str]) -> TokenReviewStatus {
    let audiences: Vec<String> = audiences.iter().map(|one| (*one).to_owned()).collect();
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: Some(token.into()),
            audiences: (!audiences.is_empty()).then_some(audiences),
        },
        ..TokenReview::default()
    };
    let tokens: Api<TokenReview> = Api::all(sim.client());
    let answer = tokens.create(&PostParams::default(), &review).await;
    answer.unwrap().status.unwrap()
}

#[tokio::test]
async fn tokens_follow_the_policy_and_are_counted() {
    let sim = Sim::new();
    sim.policy()
        .token("t0k", "alice", &["devs"])
        .extra("t0k", "scopes", &["a", "b"]);

    let known = review(&sim, "t0k", &[]).await;
    assert_eq!(known.authenticated, Some(true));
    let user = known.user.unwrap();
    assert_eq!(user.username.as_deref(), Some("alice"));
    assert_eq!(user.groups.unwrap(), ["devs", "system:authenticated"]);
    assert_eq!(user.extra.unwrap()["scopes"], ["a", "b"]);
    let unknown = review(&sim, "x", &[]).await;
    assert_ne!(unknown.authenticated, Some(true));
    assert!(unknown.error.is_some());
    sim.policy().revoke_token("t0k");
    assert_ne!(review(&sim, "t0k", &[]).await.authenticated, Some(true));
    assert_eq!(sim.policy().token_reviews(), 3);
}

#[tokio::test]
async fn a_token_is_good_for_the_audiences_it_was_made_for() {
    let sim = Sim::new();
    sim.policy()
        .token("t0k", "alice", &[])
        .audiences("t0k", &["history", "chat"]);

    let both = review(&sim, "t0k", &["chat", "mail"]).await;
    assert_eq!(both.authenticated, Some(true));
    assert_eq!(both.audiences.unwrap(), ["chat"]);
    for audiences in [&["mail"][..], &[]] {
        let refused = review(&sim, "t0k", audiences).await;
        assert_ne!(refused.authenticated, Some(true));
        assert_eq!(
            (refused.audiences, refused.user.unwrap().username),
            (None, None)
        );
    }
}

#[tokio::test]
async fn the_server_speaks_tls_and_its_kubeconfigs_trust_it() {
    let sim = Sim::new();
    sim.policy().enforce();
    let listening = sim
        .listen_tls("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let client = connect(listening.kubeconfig(), None).await;
    assert_eq!(list(&client, "default").await, 200);
    assert_eq!(list(&listening.client().unwrap(), "default").await, 200);
    let robot = connect(&listening.kubeconfig_as(ROBOT).unwrap(), None).await;
    assert_eq!(list(&robot, "default").await, 403);
    let plain = kube::Config::new(format!("http://{}", listening.addr).parse().unwrap());
    let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(plain).unwrap(), "default");
    maps.list(&ListParams::default()).await.unwrap_err();
    listening.stop().await;
}
