//! Protection of a server without auth from pages in a browser on the same machine: any
//! page can send requests to loopback, and by DNS rebinding read the answers.

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderValue, Request, Response, Version, header},
    middleware::{Next, from_fn},
};
use tonic::Status;

use super::serve::is_grpc;
use crate::config::{Auth, Config, Origins};
use hindsight_proto::metadata::REQUEST_ID;
use hindsight_transcode as rest;
use hindsight_transcode::request_id;

/// The same router for requests that are well-formed and that `guard` takes, with answers that no
/// browser takes for anything but what they say they are.
pub(super) fn guarded(router: Router, guard: Option<Guard>) -> Router {
    router.layer(from_fn(move |request: Request<Body>, next: Next| {
        let (id, is_grpc) = (request_id(request.headers()), is_grpc(&request));
        let refused = refused(&request, guard.as_ref(), is_grpc);
        async move {
            let mut response = match refused {
                Some(mut refused) => {
                    refused.headers_mut().insert(REQUEST_ID, id);
                    refused
                }
                None => next.run(request).await,
            };
            if !is_grpc {
                let only = HeaderValue::from_static("nosniff");
                response
                    .headers_mut()
                    .insert(header::X_CONTENT_TYPE_OPTIONS, only);
            }
            response
        }
    }))
}

/// The answer to a request that is not taken.
fn refused(
    request: &Request<Body>,
    guard: Option<&Guard>,
    is_grpc: bool,
) -> Option<Response<Body>> {
    // RFC 9112, 3.2: of two names a proxy may have believed the other.
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if request.version() == Version::HTTP_11 && hosts != 1 {
        return Some(rest::invalid(format!(
            "the request has {hosts} Host headers; send one"
        )));
    }
    let why = guard?.check(request).err()?;
    Some(if is_grpc {
        Status::permission_denied(why).into_http()
    } else {
        rest::denied(why)
    })
}

/// Which requests are taken while auth is off.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    /// Names beside those of loopback; all names, if absent.
    hosts: Option<Vec<String>>,
    origins: Vec<String>,
}

impl Guard {
    /// The guard that the configuration wants: none if callers are asked who they are.
    pub(super) fn of(config: &Config) -> Option<Self> {
        if config.auth != Auth::Off {
            return None;
        }
        // Whoever listens for other machines has names that are not known here, unless they are said.
        let is_local = config.listen.ip().is_loopback();
        let named = config
            .allowed_hosts
            .as_ref()
            .map(|hosts| hosts.names().to_vec());
        Some(Self {
            hosts: named.or_else(|| is_local.then(Vec::new)).map(|mut hosts| {
                let public = config.public_url.as_ref().map(|url| url.host().to_owned());
                hosts.extend(public);
                hosts
            }),
            origins: match &config.cors_origins {
                Some(Origins::These(origins)) => origins.clone(),
                Some(Origins::Any) | None => Vec::new(),
            },
        })
    }

    fn check(&self, request: &Request<Body>) -> Result<(), String> {
        let named: Vec<_> = request
            .uri()
            .authority()
            .map(|authority| authority.as_str().to_owned())
            .into_iter()
            .chain(texts(request.headers(), header::HOST))
            .collect();
        if let Some(hosts) = &self.hosts
            && let Some(host) = named.iter().find(|host| !is_known(host, hosts))
        {
            return Err(format!(
                "this server is not `{host}`: while auth is off it is asked as localhost; add the name \
                 to allowed_hosts, or choose another auth"
            ));
        }
        for origin in texts(request.headers(), header::ORIGIN) {
            let is_own = origin
                .split_once("://")
                .is_some_and(|(_, place)| named.iter().any(|host| host == place));
            if !is_own && !self.origins.contains(&origin) {
                return Err(format!(
                    "pages of `{origin}` may not ask this server while auth is off; add the origin to \
                     cors_origins, or choose another auth"
                ));
            }
        }
        Ok(())
    }
}

fn texts(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = String> {
    let values = headers.get_all(name).into_iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Whether a host, with or without a port, is this machine or one of `hosts`.
fn is_known(host: &str, hosts: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = match address.parse::<std::net::IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        // RFC 6761: names below `localhost` never leave the machine.
        Err(_name) => name == "localhost" || name.ends_with(".localhost"),
    };
    is_loopback || hosts.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::Sources;

    fn guard(flags: &[(&str, &str)]) -> Option<Guard> {
        let flags = flags
            .iter()
            .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        let flags: BTreeMap<_, _> = flags.collect();
        let sources = Sources {
            flags,
            ..Sources::default()
        };
        Guard::of(&Config::load(&sources).unwrap())
    }

    fn takes(guard: &Guard, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        guard.check(&request.body(Body::empty()).unwrap()).is_ok()
    }

    #[test]
    fn only_this_machine_and_the_names_of_the_configuration_are_asked() {
        let guard = guard(&[("allowed_hosts", "results.example, a.example")]).unwrap();
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "ui.localhost:1",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:8080",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "results.example:80",
            "A.example",
        ] {
            assert!(takes(&guard, &[("host", host)]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "evil.example:127",
            "10.0.0.1",
            "0.0.0.0:8080",
            "128.0.0.1",
            "[::2]",
            "notlocalhost",
            "x.results.example",
            "",
            "localhost@evil.example",
            "127.0.0.1.evil.example",
            "localhost:80:80",
        ] {
            assert!(!takes(&guard, &[("host", host)]), "{host}");
        }
        assert!(!takes(
            &guard,
            &[("host", "localhost"), ("host", "evil.example")]
        ));
        let mut request = Request::get("http://evil.example/")
            .body(Body::empty())
            .unwrap();
        assert!(guard.check(&request).is_err(), "the name of HTTP/2");
        *request.uri_mut() = "http://localhost:8080/".parse().unwrap();
        assert!(guard.check(&request).is_ok());
    }

    #[test]
    fn only_pages_of_this_server_and_of_named_origins_ask() {
        let guard = guard(&[("cors_origins", "https://console.example")]).unwrap();
        let asks = |host, origin| takes(&guard, &[("host", host), ("origin", origin)]);
        assert!(asks("localhost:8080", "http://localhost:8080"));
        assert!(asks("localhost:8080", "https://console.example"));
        for origin in [
            "http://localhost:3000",
            "https://evil.example",
            "null",
            "",
            "https://console.example.evil",
        ] {
            assert!(!asks("localhost:8080", origin), "{origin}");
        }
    }

    #[test]
    fn callers_who_are_asked_who_they_are_have_no_guard_and_other_machines_any_name() {
        assert!(guard(&[("auth", "kubernetes")]).is_none());
        let remote = [
            ("listen", "0.0.0.0:8080"),
            ("allow_unauthenticated_remote", "true"),
        ];
        let open = guard(&remote).unwrap();
        assert!(takes(&open, &[("host", "hindsight.ns.svc:8080")]));
        assert!(!takes(
            &open,
            &[
                ("host", "hindsight.ns.svc:8080"),
                ("origin", "https://evil.example")
            ]
        ));
        let named =
            guard(&[&remote[..], &[("allowed_hosts", "hindsight.ns.svc")]].concat()).unwrap();
        assert!(takes(&named, &[("host", "hindsight.ns.svc:8080")]));
        assert!(!takes(&named, &[("host", "other.ns.svc:8080")]));
    }
}
