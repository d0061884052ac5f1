//! The effective configuration as a file that could be given back, each value with the
//! place it came from. Secrets are `***`.

use std::fmt::Write as _;

use super::{Config, keys::KEYS, value::Value};

impl Config {
    /// The effective tree in TOML; the origin of each value is a comment behind it.
    #[must_use]
    pub fn print(&self) -> String {
        let mut lines = Vec::new();
        for (key, shown) in KEYS.iter().zip(self.shown()) {
            let line = match shown {
                Some(text) => format!("{} = {}", key.name, toml_value(&text)),
                None => format!("# {} is not set", key.name),
            };
            lines.push((line, self.origin(key.name)));
        }
        let width = lines
            .iter()
            .map(|(line, _)| line.chars().count())
            .max()
            .unwrap_or_default();
        let mut text = String::new();
        for (line, origin) in lines {
            writeln!(text, "{line:width$}  # {origin}").expect("a String takes all text");
        }
        text
    }

    /// The values as text, in the order of [`KEYS`].
    pub(super) fn shown(&self) -> [Option<String>; KEYS.len()] {
        [
            Some(self.db.show()),
            Some(self.listen.show()),
            Some(self.metrics_listen.show()),
            Some(self.auth.show()),
            self.auth_kubeconfig.as_ref().map(Value::show),
            Some(self.auth_impersonate.show()),
            Some(self.auth_cache_allow.show()),
            Some(self.auth_cache_deny.show()),
            self.auth_tokens_file.as_ref().map(Value::show),
            self.oidc_issuer.as_ref().map(Value::show),
            self.oidc_issuer_ca.as_ref().map(Value::show),
            self.oidc_audience.clone(),
            Some(self.oidc_name_claim.show()),
            Some(self.oidc_groups_claim.show()),
            self.oidc_roles_file.as_ref().map(Value::show),
            self.tls_cert.as_ref().map(Value::show),
            self.tls_key.as_ref().map(Value::show),
            self.tls_client_ca.as_ref().map(Value::show),
            Some(self.tls_min_version.show()),
            self.tls_cipher_suites.as_ref().map(Value::show),
            Some(self.max_connections.show()),
            Some(self.max_header_bytes.show()),
            Some(self.client_timeout.show()),
            Some(self.keepalive.show()),
            Some(self.connection_age.show()),
            self.cors_origins.as_ref().map(Value::show),
            self.allowed_hosts.as_ref().map(Value::show),
            Some(self.caller_max_requests.show()),
            self.caller_max_rate.as_ref().map(Value::show),
            self.caller_max_scan.as_ref().map(Value::show),
            self.scan_slots.as_ref().map(Value::show),
            Some(self.audit_log.show()),
            Some(self.audit_denied_reads.show()),
            Some(self.log_level.show()),
            Some(self.log_format.show()),
            self.trace_endpoint.as_ref().map(Value::show),
            Some(self.trace_percent.show()),
            Some(self.max_message_bytes.show()),
            Some(self.max_request_memory.show()),
            Some(self.scan_budget.show()),
            Some(self.request_timeout.show()),
            Some(self.filter_language.show()),
            self.page_token_key.as_ref().map(Value::show),
            Some(self.shutdown_grace.show()),
            Some(self.db_max_connections.show()),
            Some(self.db_long_connections.show()),
            Some(self.db_statement_timeout.show()),
            Some(self.db_wait.show()),
            Some(self.db_synchronous.show()),
            self.objects_url.as_ref().map(Value::show),
            Some(self.objects_above.show()),
            Some(self.objects_keep.show()),
            Some(self.allow_unauthenticated_remote.show()),
        ]
    }
}

/// Numbers and truth values bare, everything else in quotes.
fn toml_value(text: &str) -> String {
    if text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok() {
        return text.to_owned();
    }
    toml::Value::String(text.to_owned()).to_string()
}
