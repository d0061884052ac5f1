//! Cipher suites of TLS, by name.

use hindsight_config::{BadValue, Kind, Value};

/// The safe ones, in the order of preference by default.
const SAFE: [&str; 9] = [
    "TLS13_AES_256_GCM_SHA384",
    "TLS13_AES_128_GCM_SHA256",
    "TLS13_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// Cipher suites, the preferred one first; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CipherSuites(Vec<&'static str>);

impl CipherSuites {
    /// Names of the suites as the configuration spells them, the preferred one first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().copied()
    }
}

impl Value for CipherSuites {
    const WORD: &'static str = "NAMES";
    const KIND: Kind = Kind::List;

    fn read(text: &str) -> Result<Self, BadValue> {
        let known = |name: &str| {
            let found = SAFE
                .into_iter()
                .find(|safe| safe.eq_ignore_ascii_case(name));
            found.ok_or_else(|| {
                let all = format!("some of {}", SAFE.join(", "));
                BadValue::not_valid(name, "cipher suite that is safe", all)
            })
        };
        let names: Result<Vec<_>, _> = text.split(',').map(|name| known(name.trim())).collect();
        Ok(Self(names?))
    }

    fn show(&self) -> String {
        self.0.join(",")
    }
}
