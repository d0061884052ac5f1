//! What keys say together about who may reach the server.

use super::{loads, refuses, sources};
use crate::config::Config;

#[test]
fn a_server_that_asks_nobody_who_they_are_is_not_reachable_by_accident() {
    let open = [("listen", "0.0.0.0:8080")];
    refuses(
        &sources(None, &[], &open),
        &[
            "--listen: `0.0.0.0:8080` can be reached from other machines while auth is `off`, so \
           anyone could read and delete everything; listen on 127.0.0.1, choose another auth, or set \
           allow_unauthenticated_remote = true if something in front of this server asks who they \
           are",
        ],
    );
    let meant = [("HINDSIGHT_ALLOW_UNAUTHENTICATED_REMOTE", "true")];
    let config = Config::load(&sources(None, &meant, &open)).unwrap();
    assert_eq!(config.listen, ([0, 0, 0, 0], 8080).into());
    assert!(Config::load(&sources(None, &[], &[("listen", "[::1]:8080")])).is_ok());
    let asking = [("listen", "0.0.0.0:8080"), ("auth", "kubernetes")];
    assert!(Config::load(&sources(None, &[], &asking)).is_ok());
    let secured = [
        ("listen", "0.0.0.0:8080"),
        ("tls_cert", "/cert.pem"),
        ("tls_key", "/key.pem"),
    ];
    assert!(Config::load(&sources(None, &[], &secured)).is_err());
    let certified = [&secured[..], &[("tls_client_ca", "/ca.pem")]].concat();
    assert!(Config::load(&sources(None, &[], &certified)).is_ok());
}

#[test]
fn half_of_tls_is_refused() {
    refuses(
        &sources(None, &[], &[("tls_cert", "/c"), ("tls_min_version", "1.1")]),
        &[
            "--tls-min-version: `1.1` is not a valid version of TLS; want `1.2` or `1.3`",
            "--tls-cert: needs tls_key too",
        ],
    );
    refuses(
        &sources(None, &[], &[("tls_key", "/k"), ("tls_client_ca", "/a")]),
        &[
            "--tls-key: needs tls_cert too",
            "--tls-client-ca: needs tls_cert too",
        ],
    );
}

#[test]
fn what_decides_about_callers_is_refused_rather_than_ignored() {
    refuses(
        &sources(None, &[], &[("auth_kubeconfig", "/etc/kubeconfig")]),
        &[
            "--auth-kubeconfig: is not used while auth is `off`; set auth = \"kubernetes\", or \
           leave it out",
        ],
    );
    refuses(
        &sources(
            None,
            &[],
            &[("auth", "kubernetes"), ("auth_kubeconfig", "")],
        ),
        &["--auth-kubeconfig: is empty; give a PATH, or leave it out"],
    );
    refuses(
        &sources(None, &[], &[("auth_tokens_file", "/etc/users.toml")]),
        &[
            "--auth-tokens-file: is not used while auth is `off`; set auth = \"tokens\", or leave \
           it out",
        ],
    );
    refuses(
        &sources(None, &[], &[("auth", "tokens")]),
        &["--auth: `tokens` needs users; name their file with auth_tokens_file"],
    );
}

#[test]
fn what_browsers_sign_in_with_is_whole() {
    let oidc = [
        ("auth", "oidc"),
        ("oidc_issuer", "https://id.example"),
        ("oidc_audience", "hindsight"),
        ("oidc_roles_file", "/roles.toml"),
    ];
    let client = ("oidc_client_id", "hindsight");
    let public = ("public_url", "https://results.example");
    refuses(
        &sources(None, &[], &[client, public]),
        &[
            "--oidc-client-id: is not used while auth is `off`; set auth = \"oidc\", or leave it out",
        ],
    );
    let with = |more: &[(&'static str, &'static str)]| [&oidc, more].concat();
    refuses(
        &sources(None, &[], &with(&[client, ("oidc_scopes", "email open")])),
        &[
            "--oidc-client-id: needs public_url too",
            "--oidc-scopes: lacks `openid`, without which the issuer sends no ID token",
        ],
    );
    refuses(
        &sources(None, &[], &with(&[("oidc_client_secret_file", "/secret")])),
        &["--oidc-client-secret-file: needs oidc_client_id too"],
    );
    loads(&with(&[client, public, ("oidc_scopes", "email openid")]));
}

#[test]
fn every_web_page_is_not_let_in_where_nobody_is_asked_who_they_are() {
    let any = ("cors_origins", "*");
    refuses(
        &sources(None, &[], &[any]),
        &[
            "--cors-origins: `*` lets every web page that is open on this machine read and delete \
           everything while auth is `off`; name the origins, or choose another auth",
        ],
    );
    refuses(
        &sources(None, &[], &[any, ("allow_unauthenticated_remote", "true")]),
        &[
            "--cors-origins: `*` has no effect with allow_unauthenticated_remote: while auth is \
             `off`, requests of pages of origins that are not named are refused; name the origins, \
             or choose another auth",
        ],
    );
    let list = ("cors_origins", "https://a.example,*");
    let refused = Config::load(&sources(None, &[], &[list])).unwrap_err();
    assert!(refused.to_string().ends_with("or `*` alone"), "{refused}");
    loads(&[any, ("auth", "kubernetes")]);
}

#[test]
fn an_address_with_a_password_is_refused_without_it() {
    for key in ["trace_endpoint", "oidc_issuer"] {
        let problems = Config::load(&sources(None, &[], &[(key, "https://u:S3CRET@h:1")]));
        let said = problems.unwrap_err().to_string();
        assert!(said.contains("has a user or a password in it"), "{said}");
        assert!(!said.contains("S3CRET"), "{said}");
    }
}

#[test]
fn denied_reads_need_a_place_to_be_told() {
    refuses(
        &sources(None, &[], &[("audit_denied_reads", "true")]),
        &["--audit-denied-reads: needs audit_log too"],
    );
}
