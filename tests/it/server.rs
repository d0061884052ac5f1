//! The server under its operator: audit log, budgets, limits of connections and memory, drain,
//! reload, and traces.

mod audit;
mod budgets;
mod connections;
mod database;
mod drain;
mod fuzz;
mod memory;
mod reload;
mod traces;

use crate::support::{
    TestServer,
    http::{Http, Reply, target},
};

/// A file of users: names, who are their own tokens too, and what they may do everywhere; nothing if
/// that is `none`.
fn users(folder: &tempfile::TempDir, names: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, role) in names {
        let hash = hindsight_access::auth::token_hash(name);
        text += &format!("[[users]]\nname = '{name}'\nsha256 = ['{hash}']\n");
        if *role != "none" {
            text += &format!("grants = [{{parents = ['*'], role = '{role}'}}]\n");
        }
    }
    let path = folder.path().join("users.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Asks as the user of this name.
async fn ask(
    server: &TestServer,
    user: &str,
    method: &str,
    path: &str,
    query: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut http = Http::one(&server.url).await;
    let token = format!("Bearer {user}");
    let headers = [
        ("authorization", token.as_str()),
        ("content-type", "application/json"),
        ("x-request-id", "abc-1"),
    ];
    http.send(method, &target(path, query), &headers, body.to_owned())
        .await
}
