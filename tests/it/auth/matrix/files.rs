//! The modes in which files say what callers may do.

use super::*;

#[tokio::test]
async fn the_users_of_a_file_decide() {
    let database = Database::sqlite();
    given(&database).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let known = IDENTITIES
        .iter()
        .filter(|who| who.token != Some("stranger"));
    let text: String = known.filter_map(Identity::in_file).collect();
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let more = [("auth", "tokens"), ("auth_tokens_file", &path)];
    let server = TestServer::start_with(&database, &more).await;
    check(&server, Identity::refusal).await;
    server.stop().await;
}

#[tokio::test]
async fn the_groups_in_tokens_of_an_issuer_decide() {
    let database = Database::sqlite();
    given(&database).await;
    let issuer = crate::auth::oidc::Issuer::start().await;
    let (mut roles, mut tokens) = (String::new(), HashMap::new());
    for who in IDENTITIES {
        let Some(name) = who.token.filter(|name| *name != "stranger") else {
            continue;
        };
        let (parent, verbs, resources) = (who.parent, who.verbs, who.resources);
        roles += &format!(
            "[[roles]]\ngroups = ['of-{name}']\n[[roles.grants]]\n\
             parents = ['{parent}']\nverbs = {verbs:?}\nresources = {resources:?}\n"
        );
        tokens.insert(name, issuer.token(name, &[&format!("of-{name}")]));
    }
    let (server, _) = crate::auth::oidc::start(&database, &issuer, &roles).await;
    check_with(&server, tokens, Identity::refusal).await;
    server.stop().await;
}
