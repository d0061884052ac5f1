//! Packages of pipelines at addresses that callers name. A server inside of a cluster must not be led to what only it
//! can reach: addresses are checked after they were resolved, connections go to what was checked, and every redirect
//! is checked anew. No proxy is asked, and no credential is sent.

mod address;
mod connector;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use http::{
    Request, Response, StatusCode,
    header::{ACCEPT_ENCODING, CONTENT_LENGTH, LOCATION, USER_AGENT},
};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{client::legacy, rt::TokioExecutor};
use rustls::crypto::aws_lc_rs as provider;
use tokio::{sync::Semaphore, time::timeout};
use url::{Host, Url};

use crate::package::{LARGEST, TOO_LARGE};

pub use address::is_public;
use connector::{Connector, Refused};
pub use connector::{Network, System};

/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// Time for a download with its redirects.
const DEADLINE: Duration = Duration::from_secs(30);

/// Most downloads at once; each may hold [`LARGEST`] bytes.
const AT_ONCE: usize = 4;

/// Most bytes of a URL.
const LONGEST_URL: usize = 2048;

/// How refusals begin, in the words of Kubeflow.
const NOT_ALLOWED: &str = "Pipeline URL validation failed";
const NOT_FETCHED: &str = "Failed to fetch pipeline spec";

/// Where packages may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Allow `http` beside `https`.
    pub allow_http: bool,
    /// The only hosts, as `example.com`, or `.example.com` for those below it; empty for all with public addresses.
    pub allowed_domains: Vec<String>,
}

/// Why nothing was downloaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address, or one that it leads to, may not be asked.
    #[error("{begin}: {0}", begin = NOT_ALLOWED)]
    Refused(String),
    /// The server did not give the file.
    #[error("{begin} with url: {url}. Request returned {why}", begin = NOT_FETCHED)]
    Failed {
        /// The address that was asked for.
        url: String,
        /// The status, or what went wrong on the way.
        why: String,
    },
    /// The file has more than [`LARGEST`] bytes.
    #[error("{begin} (more than {LARGEST} bytes). Maximum supported size: {LARGEST}. The url is {0}", begin = TOO_LARGE)]
    TooLarge(String),
    /// Authorities of the system cannot be read.
    #[error("no certificate authorities of the system can be used: {0}")]
    Trust(String),
}

/// A package that was downloaded, of at most [`LARGEST`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The last part of the path of its address.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Downloads packages, a few at once.
#[derive(Debug, Clone)]
pub struct Downloader {
    policy: Policy,
    client: legacy::Client<HttpsConnector<Connector>, Empty<Bytes>>,
    turns: Arc<Semaphore>,
}

impl Downloader {
    /// Over the network of this machine, with the authorities of the system.
    ///
    /// # Errors
    /// [`Error::Trust`] if those cannot be read.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        let builder = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(provider::default_provider())
            .map_err(|error| Error::Trust(error.to_string()))?;
        let connector = builder.https_or_http().enable_http1();
        Ok(Self::over(
            policy,
            connector.wrap_connector(Connector::new(Arc::new(System))),
        ))
    }

    /// Over a network whose authorities are these.
    #[must_use]
    pub fn trusting(policy: Policy, network: Arc<dyn Network>, tls: rustls::ClientConfig) -> Self {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http();
        let connector = connector
            .enable_http1()
            .wrap_connector(Connector::new(network));
        Self::over(policy, connector)
    }

    fn over(policy: Policy, connector: HttpsConnector<Connector>) -> Self {
        let client = legacy::Client::builder(TokioExecutor::new())
            // Each request is checked for itself, so no connection is used twice.
            .pool_max_idle_per_host(0)
            .build(connector);
        Self {
            policy,
            client,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// The file at an address.
    ///
    /// # Errors
    /// If the policy does not allow the address or one that it leads to, there is no file, or it is too large or slow.
    pub async fn download(&self, url: &str) -> Result<File, Error> {
        let failed = |why: String| Error::Failed {
            url: shown(url),
            why,
        };
        let download = async {
            let _turn = self
                .turns
                .acquire()
                .await
                .map_err(|error| failed(error.to_string()))?;
            self.follow(url).await
        };
        let seconds = DEADLINE.as_secs();
        let in_time = timeout(DEADLINE, download).await;
        in_time.map_err(|_elapsed| failed(format!("nothing within {seconds} s")))?
    }

    async fn follow(&self, text: &str) -> Result<File, Error> {
        let failed = |why: String| Error::Failed {
            url: shown(text),
            why,
        };
        let first = self.allowed(Url::parse(text).map_err(|error| refused(text, error))?)?;
        let name = first
            .path()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        let mut url = first;
        for _ in 0..=MAX_REDIRECTS {
            let answer = self
                .ask(&url)
                .await
                .map_err(|error| match Refused::of(&error) {
                    Some(why) => refused(url.as_str(), why),
                    None => failed(hindsight_runtime::error::report(&error)),
                })?;
            match answer.status() {
                StatusCode::OK => {
                    let bytes = read(answer).await.map_err(failed)?;
                    let bytes = bytes.ok_or_else(|| Error::TooLarge(shown(text)))?;
                    return Ok(File { name, bytes });
                }
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => {
                    let location = answer.headers().get(LOCATION);
                    let location = location.and_then(|location| location.to_str().ok());
                    let location =
                        location.ok_or_else(|| failed("a redirect to nowhere".to_owned()))?;
                    let next = url
                        .join(location)
                        .map_err(|error| refused(location, error))?;
                    url = self.allowed(next)?;
                }
                status => return Err(failed(status.to_string())),
            }
        }
        Err(failed(format!("more than {MAX_REDIRECTS} redirects")))
    }

    async fn ask(&self, url: &Url) -> Result<Response<Incoming>, legacy::Error> {
        let request = Request::get(url.as_str())
            .header(USER_AGENT, concat!("hindsight/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT_ENCODING, "identity")
            .body(Empty::new())
            .expect("an address that was parsed is one of a request");
        self.client.request(request).await
    }

    /// The address, if the policy allows it. What its host resolves to is checked when it is connected to.
    fn allowed(&self, mut url: Url) -> Result<Url, Error> {
        url.set_fragment(None);
        let text = url.as_str();
        if text.len() > LONGEST_URL {
            return Err(refused(text, format_args!("more than {LONGEST_URL} bytes")));
        }
        match url.scheme() {
            "https" => {}
            "http" if self.policy.allow_http => {}
            "http" => return Err(refused(text, "`http` is not allowed; want `https`")),
            scheme => {
                return Err(refused(
                    text,
                    format_args!("`{scheme}` is not allowed; want `https`"),
                ));
            }
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused(text, "user and password are not allowed"));
        }
        if url.port().is_some() {
            return Err(refused(text, "want the default port of its scheme"));
        }
        let is_listed = match url.host() {
            _ if self.policy.allowed_domains.is_empty() => true,
            Some(Host::Domain(host)) => self.policy.allows(host),
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => {
                self.policy.allows(url.host_str().unwrap_or_default())
            }
            None => false,
        };
        match is_listed {
            true => Ok(url),
            false => Err(refused(
                text,
                "its host is not in the list of allowed domains",
            )),
        }
    }
}

impl Policy {
    fn allows(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        self.allowed_domains.iter().any(|allowed| {
            let allowed = allowed.trim().trim_start_matches('*').trim_end_matches('.');
            let allowed = allowed.to_ascii_lowercase();
            host == allowed || (allowed.starts_with('.') && host.ends_with(&allowed))
        })
    }
}

/// What an answer holds; nothing if that is too much.
async fn read(answer: Response<Incoming>) -> Result<Option<Vec<u8>>, String> {
    let length = answer
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok());
    let length: Option<usize> = length.and_then(|length| length.parse().ok());
    if length.is_some_and(|length| length > LARGEST) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut body = answer.into_body().into_data_stream();
    while let Some(part) = body.next().await {
        let part = part.map_err(|error| hindsight_runtime::error::report(&error))?;
        if bytes.len() + part.len() > LARGEST {
            return Ok(None);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Some(bytes))
}

fn refused(url: &str, why: impl std::fmt::Display) -> Error {
    Error::Refused(format!("{}: {why}", shown(url)))
}

/// An address in an error, without what may be secret in it.
fn shown(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let text: String = url.chars().take(end.min(200)).collect();
    let text = match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}…{}", &text[..scheme + 3], &text[at..])
        }
        _ => text,
    };
    format!("`{}`", text.escape_debug())
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Trust(_) => Self::unavailable(error.to_string()),
            _ => Self::invalid(error.to_string()),
        }
    }
}
