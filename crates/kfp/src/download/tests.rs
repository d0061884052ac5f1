//! Downloads from servers of this machine that seem to have public addresses.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{Downloader, Error, LARGEST, Network, Policy};

/// What hosts resolve to, one answer after the other, and a server to which all connections go.
#[derive(Debug)]
struct Net {
    hosts: Mutex<BTreeMap<&'static str, Vec<&'static str>>>,
    server: SocketAddr,
    connected: Mutex<Vec<SocketAddr>>,
}

#[async_trait]
impl Network for Net {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut hosts = self.hosts.lock().unwrap();
        let answers = hosts.get_mut(host).ok_or(io::ErrorKind::NotFound)?;
        let answer = match answers.len() {
            1 => answers[0],
            _ => answers.remove(0),
        };
        Ok(answer
            .split(' ')
            .map(|address| address.parse().unwrap())
            .collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.connected.lock().unwrap().push(address);
        TcpStream::connect(self.server).await
    }
}

/// A server that gives each path this answer, and the network that leads to it.
async fn net(
    hosts: &[(&'static str, &[&'static str])],
    answers: &[(&'static str, String)],
) -> Arc<Net> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let answers: BTreeMap<_, _> = answers.iter().cloned().collect();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let path = path.split('?').next().unwrap();
            let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
            let answer = answers.get(path).unwrap_or(&missing);
            // A client that has read enough goes away.
            drop(stream.write_all(answer.as_bytes()).await);
        }
    });
    let hosts = hosts
        .iter()
        .map(|(host, answers)| (*host, answers.to_vec()));
    Arc::new(Net {
        hosts: Mutex::new(hosts.collect()),
        server,
        connected: Mutex::default(),
    })
}

fn tls(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// A downloader that may use `http`.
fn over(net: &Arc<Net>) -> Downloader {
    let policy = Policy {
        allow_http: true,
        ..Policy::default()
    };
    Downloader::trusting(
        policy,
        Arc::clone(net) as Arc<dyn Network>,
        tls(RootCertStore::empty()),
    )
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

#[track_caller]
fn refused(outcome: Result<super::File, Error>, why: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    let told = error.to_string();
    let expected = format!("Pipeline URL validation failed: {why}");
    assert_eq!(told, expected);
}

#[tokio::test]
async fn kfp_43_a_file_is_called_as_the_path_of_its_address_ends() {
    let net = net(
        &[("a.example", &["93.184.216.34"])],
        &[("/x/p.yaml", ok("a: 1"))],
    )
    .await;
    let file = over(&net)
        .download("http://a.example/x/p.yaml?sig=a/b#c")
        .await
        .unwrap();
    assert_eq!(
        (file.name.as_str(), file.bytes.as_slice()),
        ("p.yaml", &b"a: 1"[..])
    );
    let connected = net.connected.lock().unwrap().clone();
    assert_eq!(connected, ["93.184.216.34:80".parse().unwrap()]);
}

#[tokio::test]
async fn kfp_43_an_address_inside_is_never_connected_to() {
    let net = net(
        &[
            ("local.example", &["127.0.0.1"]),
            ("both.example", &["93.184.216.34 10.0.0.1"]),
            ("metadata.example", &["169.254.169.254"]),
            ("six.example", &["fd00::1"]),
        ],
        &[("/p.yaml", ok("secret"))],
    )
    .await;
    for (url, why) in [
        (
            "http://local.example/p.yaml",
            "`local.example` is at 127.0.0.1",
        ),
        (
            "http://both.example/p.yaml",
            "`both.example` is at 10.0.0.1",
        ),
        (
            "http://metadata.example/p.yaml",
            "`metadata.example` is at 169.254.169.254",
        ),
        ("http://six.example/p.yaml", "`six.example` is at fd00::1"),
        ("http://127.0.0.1/p.yaml", "`127.0.0.1` is at 127.0.0.1"),
        ("http://[::1]/p.yaml", "`::1` is at ::1"),
        (
            "http://[::ffff:127.0.0.1]/p.yaml",
            "`::ffff:7f00:1` is at ::ffff:127.0.0.1",
        ),
    ] {
        let why = format!(
            "`{}`: {why}, which is not a public address",
            url.replace("[::ffff:127.0.0.1]", "[::ffff:7f00:1]")
        );
        refused(over(&net).download(url).await, &why);
    }
    // Other spellings of an address are that address.
    for url in [
        "http://0x7f.1/p.yaml",
        "http://2130706433/p.yaml",
        "http://017700000001/p.yaml",
    ] {
        let error = over(&net).download(url).await.unwrap_err().to_string();
        assert!(
            error.contains("127.0.0.1, which is not a public address"),
            "{error}"
        );
    }
    assert!(net.connected.lock().unwrap().is_empty());
}

#[tokio::test]
async fn kfp_43_a_redirect_is_checked_as_the_first_address_was() {
    let net = net(
        &[
            ("a.example", &["93.184.216.34"]),
            ("inside.example", &["10.0.0.1"]),
        ],
        &[
            ("/here", redirect("/x/../p.yaml")),
            ("/p.yaml", ok("a: 1")),
            ("/inside", redirect("http://inside.example/p.yaml")),
            ("/file", redirect("file:///etc/passwd")),
            ("/port", redirect("http://a.example:8080/p.yaml")),
            ("/round", redirect("/round")),
            (
                "/nowhere",
                "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            ),
        ],
    )
    .await;
    let downloader = over(&net);
    let file = downloader.download("http://a.example/here").await.unwrap();
    assert_eq!(
        (file.name.as_str(), file.bytes.as_slice()),
        ("here", &b"a: 1"[..])
    );
    refused(
        downloader.download("http://a.example/inside").await,
        "`http://inside.example/p.yaml`: `inside.example` is at 10.0.0.1, which is not a public address",
    );
    refused(
        downloader.download("http://a.example/file").await,
        "`file:///etc/passwd`: `file` is not allowed; want `https`",
    );
    refused(
        downloader.download("http://a.example/port").await,
        "`http://a.example:8080/p.yaml`: want the default port of its scheme",
    );
    for (path, why) in [
        ("round", "more than 10 redirects"),
        ("nowhere", "a redirect to nowhere"),
        ("no", "404 Not Found"),
    ] {
        let error = downloader
            .download(&format!("http://a.example/{path}"))
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "Failed to fetch pipeline spec with url: `http://a.example/{path}`. Request returned {why}"
            )
        );
    }
}

#[tokio::test]
async fn kfp_43_a_name_that_resolves_to_another_address_later_is_checked_again() {
    let net = net(
        &[("a.example", &["93.184.216.34", "127.0.0.1"])],
        &[("/here", redirect("/p.yaml")), ("/p.yaml", ok("secret"))],
    )
    .await;
    refused(
        over(&net).download("http://a.example/here").await,
        "`http://a.example/p.yaml`: `a.example` is at 127.0.0.1, which is not a public address",
    );
    assert_eq!(net.connected.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn kfp_43_only_allowed_hosts_and_schemes_are_asked() {
    let net = net(
        &[("a.example", &["93.184.216.34"])],
        &[("/p.yaml", ok("a"))],
    )
    .await;
    let with = |policy| {
        Downloader::trusting(
            policy,
            Arc::clone(&net) as Arc<dyn Network>,
            tls(RootCertStore::empty()),
        )
    };
    let strict = with(Policy::default());
    refused(
        strict.download("http://a.example/p.yaml").await,
        "`http://a.example/p.yaml`: `http` is not allowed; want `https`",
    );
    refused(
        strict.download("a.example/p").await,
        "`a.example/p`: relative URL without a base",
    );
    refused(
        strict.download("https://u:p@a.example/p").await,
        "`https://…@a.example/p`: user and password are not allowed",
    );
    let listed = |domains: &[&str]| {
        with(Policy {
            allow_http: true,
            allowed_domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        })
    };
    for domains in [
        &["A.example"][..],
        &["b.example", ".example"],
        &["*.example"],
    ] {
        listed(domains)
            .download("http://a.example/p.yaml")
            .await
            .unwrap();
    }
    for domains in [&["b.example"][..], &[".a.example"], &["example"], &["ple"]] {
        refused(
            listed(domains).download("http://a.example/p.yaml").await,
            "`http://a.example/p.yaml`: its host is not in the list of allowed domains",
        );
    }
}

#[tokio::test]
async fn kfp_43_a_file_of_more_than_32_mib_is_not_read() {
    let large = "x".repeat(LARGEST);
    let net = net(
        &[("a.example", &["93.184.216.34"])],
        &[
            (
                "/told",
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", LARGEST + 1),
            ),
            ("/just", ok(&large)),
            ("/untold", ok(&format!("{large}x"))),
        ],
    )
    .await;
    let downloader = over(&net);
    let just = downloader.download("http://a.example/just").await.unwrap();
    assert_eq!(just.bytes.len(), LARGEST);
    for path in ["told", "untold"] {
        let outcome = downloader
            .download(&format!("http://a.example/{path}"))
            .await;
        assert!(matches!(outcome, Err(Error::TooLarge(_))), "{path}");
    }
}

#[tokio::test]
async fn the_certificate_of_a_host_is_checked() {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    let made = params.self_signed(&key).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            drop(stream.read(&mut [0; 4096]).await);
            drop(stream.write_all(ok("a: 1").as_bytes()).await);
            drop(stream.shutdown().await);
        }
    });
    let names = ["a.example", "b.example"].map(|name| (name, vec!["93.184.216.34"]));
    let net = Arc::new(Net {
        hosts: Mutex::new(names.into_iter().collect()),
        server,
        connected: Mutex::default(),
    });
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(made.der().to_vec()))
        .unwrap();
    let trusting = |roots| {
        Downloader::trusting(
            Policy::default(),
            Arc::clone(&net) as Arc<dyn Network>,
            tls(roots),
        )
    };
    let file = trusting(roots.clone())
        .download("https://a.example/p.yaml")
        .await
        .unwrap();
    assert_eq!(file.bytes, b"a: 1");
    let other = trusting(roots).download("https://b.example/p.yaml").await;
    assert!(matches!(other, Err(Error::Failed { .. })));
    let untrusted = trusting(RootCertStore::empty())
        .download("https://a.example/p.yaml")
        .await;
    assert!(matches!(untrusted, Err(Error::Failed { .. })));
}
