//! What a caller shows.

use tonic::metadata::{MetadataKey, MetadataValue};

use super::*;

fn given(pairs: &[(&'static str, &str)]) -> Credentials {
    let mut metadata = MetadataMap::new();
    for (name, value) in pairs {
        let value = MetadataValue::try_from(value.as_bytes()).unwrap();
        metadata.append(MetadataKey::from_static(name), value);
    }
    credentials(metadata.as_ref())
}

#[test]
fn every_bearer_token_is_taken_in_order_and_nothing_else() {
    let seen = given(&[
        ("authorization", "Basic dTpw"),
        ("authorization", "Bearer first"),
        ("authorization", "bearer  two "),
        ("authorization", "Bearer "),
        ("authorization", "Bearer"),
        ("cookie", "Bearer three"),
    ]);
    assert_eq!(seen.bearer, ["first", "two"]);
    assert!(seen.acting_for.is_empty());
    assert!(!format!("{seen:?}").contains("first"));
}

#[test]
fn whom_a_caller_acts_for_is_read_whole() {
    let seen = given(&[
        ("impersonate-user", "zoë"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-uid", "u-1"),
        ("impersonate-extra-scopes", "view"),
        ("impersonate-extra-scopes", "edit"),
        ("impersonate-extra-acme.com%2fproject", "p"),
    ]);
    let expected = ActingFor {
        user: Some("zoë".into()),
        groups: vec!["dev".into(), "ops".into()],
        uid: Some("u-1".into()),
        extra: [
            ("scopes".into(), vec!["view".into(), "edit".into()]),
            ("acme.com/project".into(), vec!["p".into()]),
        ]
        .into(),
        unreadable: false,
    };
    assert_eq!(seen.acting_for, expected);
}

#[test]
fn what_cannot_be_read_for_certain_is_not_dropped() {
    for pair in [
        ("impersonate-user", ""),
        ("impersonate-group", ""),
        ("impersonate-extra-", "x"),
        ("impersonate-extra-%ff", "x"),
        ("impersonate-role", "admin"),
    ] {
        assert!(given(&[pair]).acting_for.unreadable, "{pair:?}");
    }
    let twice = given(&[("impersonate-user", "a"), ("impersonate-user", "b")]);
    assert!(twice.acting_for.unreadable);
    let mut odd = MetadataMap::new();
    let bytes = MetadataValue::try_from(b"\xff".as_slice()).unwrap();
    odd.insert("impersonate-user", bytes);
    assert!(credentials(odd.as_ref()).acting_for.unreadable);
}
