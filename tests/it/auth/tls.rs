//! TLS: who can connect, what a broken certificate does, and a new one under load.

mod certified;
mod setup;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use hindsight::app::App;
use hindsight_runtime::clock::SystemClock;
use hindsight_runtime::error::report;
use tokio::io::AsyncReadExt as _;
use tokio_rustls::rustls::{
    pki_types::{CertificateDer, pem::PemObject as _},
    version::{TLS12, TLS13},
};

use crate::support::{Database, server::config};
use setup::{Authority, BOTH, Files, Pair, connect, list, listed, rpc, start, trusting};

#[tokio::test]
async fn both_protocols_answer_on_the_secured_port_and_plain_text_does_not() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify());
    let database = Database::sqlite();
    let server = start(&database, &files.keys()).await;
    rpc(&server, &authority, None)
        .list_results(list())
        .await
        .unwrap();
    for protocol in ["h2", "http/1.1"] {
        let stream = connect(&server, trusting(&authority, None, protocol, BOTH));
        assert_eq!(
            listed(stream.await.unwrap()).await.unwrap(),
            200,
            "{protocol}"
        );
    }
    server.rpc().list_results(list()).await.unwrap_err();
    let other = Authority::new();
    let stranger = connect(&server, trusting(&other, None, "h2", BOTH)).await;
    stranger.unwrap_err();
    server.stop().await;
}

#[tokio::test]
async fn a_version_below_the_oldest_wanted_is_not_spoken() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify());
    let database = Database::sqlite();
    for (oldest, ok) in [("1.2", true), ("1.3", false)] {
        let mut keys = files.keys();
        keys.push(("tls_min_version", oldest.to_owned()));
        let server = start(&database, &keys).await;
        let old = connect(&server, trusting(&authority, None, "h2", &[&TLS12])).await;
        assert_eq!(old.is_ok(), ok, "{oldest}");
        let new = connect(&server, trusting(&authority, None, "h2", &[&TLS13])).await;
        new.unwrap();
        server.stop().await;
    }
}

#[tokio::test]
async fn only_the_cipher_suites_that_are_named_are_spoken() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify());
    let database = Database::sqlite();
    let mut keys = files.keys();
    let name = "TLS13_CHACHA20_POLY1305_SHA256";
    keys.push(("tls_cipher_suites", name.to_owned()));
    let server = start(&database, &keys).await;
    let stream = connect(&server, trusting(&authority, None, "h2", BOTH)).await;
    let suite = stream.unwrap().get_ref().1.negotiated_cipher_suite();
    assert_eq!(suite.unwrap().suite().as_str(), Some(name));
    let old = connect(&server, trusting(&authority, None, "h2", &[&TLS12])).await;
    old.unwrap_err();
    server.stop().await;
    keys.pop();
    let old = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned();
    keys.extend([
        ("tls_cipher_suites", old),
        ("tls_min_version", "1.3".to_owned()),
    ]);
    let keys: Vec<_> = keys
        .iter()
        .map(|(key, text)| (*key, text.as_str()))
        .collect();
    let started = App::bind(&config(&database, &keys), Arc::new(SystemClock)).await;
    let said = report(&started.unwrap_err());
    assert!(said.contains("leave nothing to speak"), "{said}");
}

#[tokio::test]
async fn where_clients_are_certified_others_get_no_answer() {
    let (authority, people) = (Authority::new(), Authority::new());
    let files = Files::new(&authority.certify());
    let ca = files.path("ca.pem");
    std::fs::write(&ca, people.pem()).unwrap();
    let mut keys = files.keys();
    keys.push(("tls_client_ca", ca.display().to_string()));
    let database = Database::sqlite();
    let server = start(&database, &keys).await;
    let known = people.certify();
    rpc(&server, &authority, Some(&known))
        .list_results(list())
        .await
        .unwrap();
    let forged = authority.certify();
    for own in [None, Some(&forged)] {
        rpc(&server, &authority, own)
            .list_results(list())
            .await
            .unwrap_err();
        // In 1.3 the client learns of the refusal with the first answer.
        let stream = connect(&server, trusting(&authority, own, "http/1.1", &[&TLS13]));
        let mut byte = [0];
        let read = stream.await.unwrap().read(&mut byte).await;
        assert!(!matches!(read, Ok(1)), "{read:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_that_does_not_load_stops_the_start() {
    let authority = Authority::new();
    let (one, other) = (authority.certify(), authority.certify());
    let mixed = Pair {
        cert: one.cert.clone(),
        key: other.key,
    };
    let none = |cert: &str, key: &str| Pair {
        cert: cert.to_owned(),
        key: key.to_owned(),
    };
    let cases = [
        (mixed, "do not work together"),
        (none("", &one.key), "cert.pem` holds no certificate in PEM"),
        (
            none("junk", &one.key),
            "cert.pem` holds no certificate in PEM",
        ),
        (none(&one.cert, ""), "key.pem` holds no private key in PEM"),
        (
            none(&one.cert, &one.cert),
            "key.pem` holds no private key in PEM",
        ),
    ];
    let database = Database::sqlite();
    for (pair, says) in cases {
        let files = Files::new(&pair);
        let keys = files.keys();
        let keys: Vec<_> = keys
            .iter()
            .map(|(key, text)| (*key, text.as_str()))
            .collect();
        let started = App::bind(&config(&database, &keys), Arc::new(SystemClock)).await;
        let said = report(&started.unwrap_err());
        assert!(said.contains(says), "`{said}` does not say `{says}`");
    }
    let keys = [
        ("tls_cert", "/no/such/cert.pem"),
        ("tls_key", "/no/such/key.pem"),
    ];
    let started = App::bind(&config(&database, &keys), Arc::new(SystemClock)).await;
    let said = report(&started.unwrap_err());
    assert!(
        said.contains("`/no/such/cert.pem` cannot be read"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_change_under_load_without_a_failed_request() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify());
    let database = Database::sqlite();
    let server = Arc::new(start(&database, &files.keys()).await);
    let authority = Arc::new(authority);
    let (over, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );

    let mut load = Vec::new();
    let mut existing = rpc(&server, &authority, None);
    existing.list_results(list()).await.unwrap();
    let (done, count) = (Arc::clone(&over), Arc::clone(&answered));
    load.push(tokio::spawn(async move {
        while !done.load(Ordering::SeqCst) {
            existing.list_results(list()).await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
        }
    }));
    let (done, count) = (Arc::clone(&over), Arc::clone(&answered));
    let (to, trusted) = (Arc::clone(&server), Arc::clone(&authority));
    load.push(tokio::spawn(async move {
        while !done.load(Ordering::SeqCst) {
            let stream = connect(&to, trusting(&trusted, None, "http/1.1", BOTH)).await;
            assert_eq!(listed(stream.unwrap()).await.unwrap(), 200);
            count.fetch_add(1, Ordering::SeqCst);
        }
    }));

    for _ in 0..3 {
        let next = authority.certify();
        // Half of a change, as a slow copy leaves it, is not taken.
        std::fs::write(files.path("cert.pem"), &next.cert[..next.cert.len() / 2]).unwrap();
        files.put(&next);
        let wanted = CertificateDer::from_pem_slice(next.cert.as_bytes()).unwrap();
        let taken = async {
            loop {
                let config = trusting(&authority, None, "h2", BOTH);
                let stream = connect(&server, config).await.unwrap();
                let shown = stream.get_ref().1.peer_certificates().unwrap();
                if shown[0] == wanted {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let patience = Duration::from_secs(30);
        tokio::time::timeout(patience, taken).await.unwrap();
    }
    over.store(true, Ordering::SeqCst);
    for task in load {
        task.await.unwrap();
    }
    assert!(answered.load(Ordering::SeqCst) > 10);
    Arc::into_inner(server).unwrap().stop().await;
}
