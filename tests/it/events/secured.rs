//! Tokens, signatures, TLS, and redirects that are not followed.

use std::{sync::Arc, time::Duration};

use ::aws_lc_rs::hmac;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

use super::{File, metrics, played, sends};
use crate::support::{
    Database, TestServer,
    receiver::{Act, Receiver},
};

/// A receiver's side of TLS, and the authority that certified it, in PEM.
fn certified() -> (TlsAcceptor, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let cert = params.signed_by(&key, &authority).unwrap().pem();
    let chain = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), authority.pem())
}

#[tokio::test]
async fn receivers_know_who_sends_and_are_known() {
    let database = Database::sqlite();
    let (tls, authority) = certified();
    let loopback = "127.0.0.1:0".parse().unwrap();
    let receiver = Receiver::at(loopback, Some(tls.clone()), |_, _| Act::status(202)).await;
    let stranger = Receiver::at(loopback, Some(tls), |_, _| Act::status(202)).await;
    let place =
        |receiver: &Receiver| format!("https://localhost:{}/events", receiver.address.port());
    let secrets = File::of(&[]);
    let more = format!(
        "token_file = '{}'\nhmac_key_file = '{}'\nca_file = '{}'",
        secrets.beside("token", "a-token\n"),
        secrets.beside("key", "a-key"),
        secrets.beside("ca.pem", &authority),
    );
    let file = File::of(&[
        ("one", &place(&receiver), &more),
        ("stranger", &place(&stranger), ""),
    ]);
    let path = file.path();
    let more = [("events_file", path.as_str())];
    let server = TestServer::start_with(&database, &more).await;
    sends(&server, "one").await;
    sends(&server, "stranger").await;
    played(&server, "a").await;
    for got in receiver.until_taken(2).await {
        assert_eq!(got.header("authorization"), "Bearer a-token");
        let (scheme, digits) = got.header("x-hub-signature-256").split_once('=').unwrap();
        assert_eq!((scheme, digits.len()), ("sha256", 64));
        let tag: Vec<u8> = (0..32)
            .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"a-key");
        hmac::verify(&key, &got.bytes, &tag).unwrap();
    }
    loop {
        let text = metrics(&server).await;
        let failed = text
            .lines()
            .find_map(|line| {
                line.strip_prefix("hindsight_events_failed_requests_total{receiver=\"stranger\"} ")
            })
            .unwrap();
        if failed != "0" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        stranger.all().is_empty(),
        "nothing is sent to one that is not certified"
    );
    server.stop().await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let database = Database::sqlite();
    let elsewhere = Receiver::start(|_, _| Act::status(202)).await;
    let there = elsewhere.url();
    let receiver = Receiver::start(move |number, _| match number {
        0 => Act::Answer(307, vec![("location", there.clone())]),
        _ => Act::status(202),
    })
    .await;
    let file = File::of(&[("one", &receiver.url(), "concurrency = 1")]);
    let path = file.path();
    let more = [("events_file", path.as_str())];
    let server = TestServer::start_with(&database, &more).await;
    sends(&server, "one").await;
    played(&server, "a").await;
    let taken = receiver.until_taken(2).await;
    let all = receiver.all();
    assert_eq!(
        (all.len(), all[0].id()),
        (3, taken[0].id()),
        "the same again"
    );
    assert!(elsewhere.all().is_empty());
    server.stop().await;
}
