//! How a command ends badly: what is said, and which exit code scripts see.

use std::error::Error as _;

use tonic::{Code, Status};

/// A command that did not do what was asked.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    text: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Failure {
    /// Exit code of a command that failed.
    pub const FAILED: u8 = 1;
    /// Exit code of wrong usage.
    pub const USAGE: u8 = 2;
    /// Exit code where what is asked for is not there.
    pub const MISSING: u8 = 3;
    /// Exit code where the caller is unknown or may not.
    pub const DENIED: u8 = 4;
    /// Exit code where a server or database does not answer.
    pub const UNREACHABLE: u8 = 5;
    /// Exit code where stored data are damaged.
    pub const DAMAGED: u8 = 6;

    /// It failed for a reason that scripts need not tell from others.
    pub fn other(text: impl Into<String>) -> Self {
        Self {
            code: Self::FAILED,
            text: text.into(),
        }
    }

    /// The caller asked wrongly.
    pub fn usage(text: impl Into<String>) -> Self {
        Self {
            code: Self::USAGE,
            text: text.into(),
        }
    }

    /// What is asked for is not there.
    pub fn missing(text: impl Into<String>) -> Self {
        Self {
            code: Self::MISSING,
            text: text.into(),
        }
    }

    /// A server or database does not answer.
    pub fn unreachable(text: impl Into<String>) -> Self {
        Self {
            code: Self::UNREACHABLE,
            text: text.into(),
        }
    }

    /// What the server at `server` answered. `flags` is what flags of [`Connect`](crate::Connect) begin with,
    /// so that a remedy names them as the program does.
    pub fn status(server: &str, status: &Status, flags: &str) -> Self {
        let said = status.message();
        let (code, text) = match status.code() {
            Code::NotFound => (Self::MISSING, said.to_owned()),
            Code::Unauthenticated | Code::PermissionDenied => {
                (Self::DENIED, format!("{said} (by {server})"))
            }
            // An answer has no source; it is the server that misses something.
            Code::Unavailable if status.source().is_none() => {
                (Self::UNREACHABLE, format!("{said} (by {server})"))
            }
            // A connection that breaks while it is set up is told as any of these.
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal
                if let Some(why) = handshake(server, status, flags) =>
            {
                (Self::UNREACHABLE, format!("the server at {server} {why}"))
            }
            Code::DeadlineExceeded | Code::Cancelled => (
                Self::UNREACHABLE,
                format!(
                    "the server at {server} did not answer in time: {said}; allow more with {flags}timeout"
                ),
            ),
            Code::Unavailable => (
                Self::UNREACHABLE,
                format!(
                    "the server at {server} does not answer: {}; is it running? \
                     start one with `hindsight serve`, or name another with {flags}server or \
                     `hindsight context set NAME --server URL`",
                    cause(status)
                ),
            ),
            Code::Unimplemented => (
                Self::FAILED,
                format!(
                    "the server at {server} has no such call; it is older than this command, \
                     or no Hindsight"
                ),
            ),
            Code::InvalidArgument => (Self::USAGE, said.to_owned()),
            code => (Self::FAILED, format!("{said} ({code:?} from {server})")),
        };
        Self { code, text }
    }

    /// The same with more text; nothing where nothing is said.
    pub fn with(mut self, more: &str) -> Self {
        if !self.text.is_empty() {
            self.text.push_str(more);
        }
        self
    }

    /// What was asked for is not there.
    pub fn is_missing(&self) -> bool {
        self.code == Self::MISSING
    }

    /// The server or the database is not there.
    pub fn is_unreachable(&self) -> bool {
        self.code == Self::UNREACHABLE
    }

    /// The code that the process exits with.
    pub fn code(&self) -> u8 {
        self.code
    }
}

/// What is wrong between client and server before a call is heard, and the remedy; nothing if the error
/// does not tell.
fn handshake(server: &str, status: &Status, flags: &str) -> Option<String> {
    let mut text = status.message().to_owned();
    let mut error = status.source();
    while let Some(inner) = error {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        error = inner.source();
    }
    let certificate = || format!("give one with {flags}client-cert and {flags}client-key");
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if says(&["CertificateRequired"]) {
        return Some(format!("wants a client certificate, {}", certificate()));
    }
    if says(&["UnknownIssuer"]) {
        return Some(format!(
            "shows a certificate of an unknown authority; name that authority with {flags}server-ca"
        ));
    }
    if says(&["InvalidContentType"]) {
        return Some("does not speak TLS; use http://".to_owned());
    }
    if says(&["invalid compression flag"]) {
        let why = "does not speak gRPC on this port, which may be that of its metrics";
        return Some(why.to_owned());
    }
    // A server ends the connection at the first bytes that are not TLS, and, with TLS 1.3, only
    // after the handshake if a client certificate is missing.
    let ended = [
        "GoAway",
        "connection closed",
        "broken pipe",
        "Connection reset",
        "h2 protocol error",
        "operation was canceled",
    ];
    if status.source().is_none() || !says(&ended) || says(&["Connection refused"]) {
        return None;
    }
    Some(match server.starts_with("http://") {
        true => "ends the connection before a call; if it speaks TLS, use https://".to_owned(),
        false => format!(
            "ends the connection before a call; if it wants a client certificate, {}",
            certificate()
        ),
    })
}

/// The innermost cause of a transport error, which is the one that tells.
fn cause(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut error = status.source();
    while let Some(inner) = error {
        text = inner.to_string();
        error = inner.source();
    }
    text
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            // Whoever reads the output has seen enough, as `head` has; that is no news.
            std::io::ErrorKind::BrokenPipe => Self {
                code: 0,
                text: String::new(),
            },
            _ => Self::other(format!("output stopped: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_a_server_does_not_know_says_so() {
        let status = Status::new(Code::Unimplemented, "");
        let failure = Failure::status("http://there:1", &status, "--").to_string();
        assert!(failure.starts_with("the server at http://there:1 has no such call"));
    }
}
