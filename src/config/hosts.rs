//! Host names of the server.

use hindsight_config::{BadValue, Kind, Value};

/// Names of hosts, in small letters and without ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// The host names that requests may be sent to, without ports.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl Value for Hosts {
    const WORD: &'static str = "HOSTS";
    const KIND: Kind = Kind::List;

    fn read(text: &str) -> Result<Self, BadValue> {
        let names = text.split(',').map(str::trim).map(|name| {
            let plain = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._[:]".contains(&byte)
            };
            let is_address = name.starts_with('[') && name.ends_with(']');
            if name.is_empty() || !name.bytes().all(plain) || (name.contains(':') && !is_address) {
                let want =
                    "for example `results.example`, in small letters, without scheme and port";
                return Err(BadValue::not_valid(name, "host name", want));
            }
            Ok(name.to_owned())
        });
        Ok(Self(names.collect::<Result<_, _>>()?))
    }

    fn show(&self) -> String {
        self.0.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_alone() {
        for good in ["a.example", "a.example, 10.0.0.1", "[fe80::1]", "hindsight"] {
            assert!(Hosts::read(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "A.example",
            "a.example:80",
            "https://a.example",
            "a.example,",
            "*",
            "a/b",
        ] {
            assert!(Hosts::read(bad).is_err(), "{bad}");
        }
    }
}
