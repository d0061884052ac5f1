//! Every key, and the place of its value.

use super::{KEY, sources};
use crate::config::{Config, KEYS, Origin};

#[test]
fn every_key_is_read_from_its_own_place_in_the_table() {
    let values = [
        ("db", "sqlite:other.db"),
        ("listen", "127.0.0.1:1"),
        ("metrics_listen", "127.0.0.1:2"),
        ("auth", "tokens"),
        ("auth_kubeconfig", "/etc/kubeconfig"),
        ("auth_impersonate", "false"),
        ("auth_cache_allow", "20s"),
        ("auth_cache_deny", "0s"),
        ("auth_tokens_file", "/etc/users.toml"),
        ("oidc_issuer", "https://id.example"),
        ("oidc_issuer_ca", "/etc/issuer.pem"),
        ("oidc_audience", "hindsight"),
        ("oidc_name_claim", "email"),
        ("oidc_groups_claim", "roles"),
        ("oidc_roles_file", "/etc/roles.toml"),
        ("tls_cert", "/etc/cert.pem"),
        ("tls_key", "/etc/key.pem"),
        ("tls_client_ca", "/etc/ca.pem"),
        ("tls_min_version", "1.3"),
        ("tls_cipher_suites", "TLS13_AES_256_GCM_SHA384"),
        ("max_connections", "9"),
        ("max_header_bytes", "64KiB"),
        ("client_timeout", "7s"),
        ("keepalive", "8s"),
        ("connection_age", "10m"),
        ("cors_origins", "https://a.example"),
        ("allowed_hosts", "a.example"),
        ("caller_max_requests", "10"),
        ("caller_max_rate", "11"),
        ("caller_max_scan", "12"),
        ("scan_slots", "13"),
        ("audit_log", "/var/log/audit.jsonl"),
        ("audit_denied_reads", "true"),
        ("log_level", "warn"),
        ("log_format", "json"),
        ("trace_endpoint", "http://collector:4317"),
        ("trace_percent", "10"),
        ("max_message_bytes", "1MiB"),
        ("max_request_memory", "512MiB"),
        ("scan_budget", "2"),
        ("request_timeout", "7m"),
        ("filter_language", "labels"),
        ("page_token_key", KEY),
        ("shutdown_grace", "3s"),
        ("db_max_connections", "4"),
        ("db_long_connections", "2"),
        ("db_statement_timeout", "8s"),
        ("db_wait", "9s"),
        ("db_synchronous", "normal"),
        ("objects_url", "s3://bucket/prefix"),
        ("objects_above", "2MiB"),
        ("objects_keep", "forever"),
        ("allow_unauthenticated_remote", "true"),
    ];
    let names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(values.map(|(name, _)| name).as_slice(), names);
    let config = Config::load(&sources(None, &[], &values)).unwrap();
    let shown = values.map(|(name, text)| {
        Some(
            if name == "page_token_key" {
                "***"
            } else {
                text
            }
            .to_owned(),
        )
    });
    assert_eq!(config.shown(), shown);
    assert!(KEYS.iter().all(|key| *config.origin(key.name)
        == Origin::Flag {
            flag: key.flag.to_owned()
        }));
}
