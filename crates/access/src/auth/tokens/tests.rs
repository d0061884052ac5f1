//! What a file of users grants, what is wrong with one, and what a change does.

use super::*;
use crate::auth::{ActingFor, Guarded, Verb};

fn users(text: &str) -> (tempfile::TempDir, Result<Tokens, FileError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    std::fs::write(&path, text).unwrap();
    let tokens = Tokens::load(&path);
    (folder, tokens)
}

fn user(name: &str, token: &str, grant: &str) -> String {
    let hash = token_hash(token);
    format!("[[users]]\nname = \"{name}\"\nsha256 = [\"{hash}\"]\n[[users.grants]]\n{grant}\n")
}

fn ask(tokens: &Tokens, shown: &[&str], verb: Verb, parent: &str) -> Result<(), String> {
    let credentials = Credentials {
        bearer: shown.iter().map(|token| (*token).to_owned()).collect(),
        ..Credentials::default()
    };
    let access = Access {
        verb,
        resource: Guarded::Records,
        parent: parent.parse().unwrap(),
    };
    let answer = tokens.decide(&credentials, &access);
    answer.map(drop).map_err(|error| error.to_string())
}

fn denied() -> Result<(), String> {
    Err("permission denied".to_owned())
}

fn unknown() -> Result<(), String> {
    Err("the bearer token is not valid".to_owned())
}

#[test]
fn a_role_counts_for_its_verbs_on_its_parents() {
    let reader = user(
        "a",
        "ta",
        "parents = ['ci', 'cluster/x/ns']\nrole = 'readonly'",
    );
    let writer = user("b", "tb", "parents = ['*']\nrole = 'readwrite'");
    let (_folder, tokens) = users(&(reader + &writer));
    let tokens = tokens.unwrap();
    assert_eq!(ask(&tokens, &["ta"], Verb::Get, "ci"), Ok(()));
    assert_eq!(ask(&tokens, &["ta"], Verb::List, "cluster/x/ns"), Ok(()));
    assert_eq!(ask(&tokens, &["ta"], Verb::List, "ns"), denied());
    assert_eq!(ask(&tokens, &["ta"], Verb::List, "-"), denied());
    assert_eq!(ask(&tokens, &["ta"], Verb::Create, "ci"), denied());
    assert_eq!(ask(&tokens, &["tb"], Verb::List, "-"), Ok(()));
    assert_eq!(ask(&tokens, &["tb"], Verb::Create, "any"), Ok(()));
    assert_eq!(ask(&tokens, &["tb"], Verb::Delete, "any"), denied());
    assert_eq!(ask(&tokens, &["no"], Verb::Get, "ci"), unknown());
    assert_eq!(ask(&tokens, &["no", "ta"], Verb::Get, "dev"), denied());
    assert_eq!(ask(&tokens, &["ta", "tb"], Verb::Get, "dev"), Ok(()));
    let fourth = ["no", "no", "no", "tb"];
    assert_eq!(ask(&tokens, &fourth, Verb::Get, "dev"), Ok(()));
    let fifth = ["no", "no", "no", "no", "tb"];
    assert_eq!(ask(&tokens, &fifth, Verb::Get, "dev"), unknown());
    assert!(
        ask(&tokens, &[], Verb::Get, "ci")
            .unwrap_err()
            .contains("required")
    );
}

#[test]
fn nobody_acts_for_others() {
    let (_folder, tokens) = users(&user("a", "ta", "parents = ['*']\nrole = 'admin'"));
    let credentials = Credentials {
        bearer: vec!["ta".into()],
        acting_for: ActingFor {
            user: Some("b".into()),
            ..ActingFor::default()
        },
        source: None,
    };
    let access = Access {
        verb: Verb::Get,
        resource: Guarded::Records,
        parent: "ci".parse().unwrap(),
    };
    let answer = tokens.unwrap().decide(&credentials, &access);
    assert!(matches!(answer, Err(Error::Impersonation(_))), "{answer:?}");
}

#[test]
fn a_file_that_makes_no_sense_says_where_and_shows_no_token() {
    let good = user("a", "ta", "parents = ['ci']\nrole = 'admin'");
    let twice = good.clone() + &good;
    let cases = [
        ("users = 5", "line 1: "),
        (
            "[[users]]\nname = 'a'\nsecret = 'hunter2'",
            "line 3: unknown field `secret`",
        ),
        (
            "[[users]]\nname = 'a'\nsha256 = ['hunter2']",
            "user `a`: a sha256 is not 64",
        ),
        (twice.as_str(), "user `a`: a sha256 is there twice"),
        (
            "[[users]]\nname = 'a'\nsha256 = []\ngrants = [{parents = ['a b'], role = 'admin'}]",
            "`a b` is not a parent",
        ),
        (
            "[[users]]\nname = 'a'\nsha256 = []\ngrants = [{parents = ['-'], role = 'admin'}]",
            "or `*` for every parent",
        ),
        (
            "[[users]]\nname = 'a'\nsha256 = []\ngrants = [{parents = ['*']}]",
            "a role or verbs, one of the two",
        ),
        (
            "[[users]]\nname = 'a'\nsha256 = []\ngrants = [{parents = ['*'], role = 'king'}]",
            "line 4: unknown variant `king`",
        ),
        (
            "[[users]]\nname = 'a'\nsha256 = []\ngrants = [{parents = ['*'], verbs = ['watch']}]",
            "line 4: unknown variant `watch`",
        ),
    ];
    for (text, says) in cases {
        let error = report(&users(text).1.unwrap_err());
        assert!(error.contains(says), "`{error}` does not say `{says}`");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_change_counts_at_once_and_a_broken_one_changes_nothing() {
    let (folder, tokens) = users(&user("a", "ta", "parents = ['ci']\nrole = 'readonly'"));
    let (path, tokens) = (folder.path().join("users.toml"), tokens.unwrap());
    std::fs::write(&path, "users = 5").unwrap();
    tokens.reload();
    assert_eq!(ask(&tokens, &["ta"], Verb::Get, "ci"), Ok(()));
    std::fs::remove_file(&path).unwrap();
    tokens.reload();
    assert_eq!(ask(&tokens, &["ta"], Verb::Get, "ci"), Ok(()));
    std::fs::write(
        &path,
        user("b", "tb", "parents = ['ci']\nrole = 'readonly'"),
    )
    .unwrap();
    tokens.reload();
    assert_eq!(ask(&tokens, &["ta"], Verb::Get, "ci"), unknown());
    assert_eq!(ask(&tokens, &["tb"], Verb::Get, "ci"), Ok(()));
    std::fs::write(&path, "").unwrap();
    tokens.reload();
    assert_eq!(ask(&tokens, &["tb"], Verb::Get, "ci"), unknown());
}
