//! Patience with those who connect, and with files that change.

use std::{collections::BTreeMap, path::Path};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;
use crate::config::Sources;
use hindsight_runtime::clock::ManualClock;

/// Made by `openssl x509 -req -signkey`, which gives no extensions.
const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBJDCBywIUPmWhlyz5G1VVvVt7EafKWkg1PGkwCgYIKoZIzj0EAwIwFDESMBAG\n\
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjA1NDYxMFoYDzIxMjYxMDI5MDU0NjEw\n\
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n\
AAQJM8+voQHZECWW0pawOkSZBUh9SiNsP+31Lg4MXkG2JFAQ9pFph5YqLT709EgU\n\
xXDAOVVh+VUGJhy5g0MdMVs2MAoGCCqGSM49BAMCA0gAMEUCIQC17rrDDaP53GjY\n\
8E/B/xqedy/sNq7KJLzgWzMOl5E96QIgRbtAAvXRdUp9nmT8wJ1oshyPpyQcPOjN\n\
u/L48pU8oVs=\n\
-----END CERTIFICATE-----\n\n";

/// Puts a certificate that ends with this year.
fn put_until(folder: &Path, year: i32) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_after = date_time_ymd(year, 12, 31);
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    std::fs::write(folder.join("cert.pem"), made.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

fn put(folder: &Path) {
    put_until(folder, 2030);
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()))
}

fn tls(folder: &Path) -> Tls {
    load(folder, clock()).unwrap()
}

fn load(folder: &Path, clock: Arc<ManualClock>) -> Result<Tls, TlsError> {
    let shown = |name| folder.join(name).display().to_string();
    let flags = BTreeMap::from([
        ("tls_cert".to_owned(), shown("cert.pem")),
        ("tls_key".to_owned(), shown("key.pem")),
    ]);
    let config = Config::load(&Sources {
        flags,
        ..Sources::default()
    });
    Tls::load(&config.unwrap(), clock).map(Option::unwrap)
}

#[tokio::test(start_paused = true)]
async fn whoever_says_nothing_is_let_go_after_ten_seconds() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path());
    let (_silent, server) = tokio::io::duplex(1024);
    let started = tokio::time::Instant::now();
    let error = tls(folder.path()).accept(server).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(started.elapsed().as_secs(), 10);
}

#[test]
fn files_that_do_not_fit_leave_the_certificate_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path());
    let tls = tls(folder.path());
    let current = || Arc::clone(&tls.current.read().unwrap());
    let first = current();
    tls.reload();
    assert!(Arc::ptr_eq(&first, &current()), "nothing changed");
    let key = folder.path().join("key.pem");
    let before = std::fs::read(&key).unwrap();
    std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    tls.reload();
    assert!(Arc::ptr_eq(&first, &current()), "the key is another's");
    std::fs::remove_file(&key).unwrap();
    tls.reload();
    assert!(Arc::ptr_eq(&first, &current()), "the key is gone");
    std::fs::write(&key, before).unwrap();
    put(folder.path());
    tls.reload();
    assert!(!Arc::ptr_eq(&first, &current()), "a new pair is taken");
}

#[test]
fn an_expired_certificate_does_not_replace_one_that_is_good() {
    let folder = tempfile::tempdir().unwrap();
    put_until(folder.path(), 2026);
    let clock = clock();
    let tls = load(folder.path(), Arc::clone(&clock)).unwrap();
    let ends = |tls: &Tls| tls.expiration().to_string();
    assert_eq!(ends(&tls), "2026-12-31T00:00:00Z");
    put_until(folder.path(), 2025);
    tls.reload();
    assert_eq!(ends(&tls), "2026-12-31T00:00:00Z", "the good one stays");
    clock.advance(Duration::from_hours(24 * 365 * 2));
    put_until(folder.path(), 2024);
    tls.reload();
    assert_eq!(
        ends(&tls),
        "2026-12-31T00:00:00Z",
        "one that was over before is no better"
    );
    put_until(folder.path(), 2027);
    tls.reload();
    assert_eq!(ends(&tls), "2027-12-31T00:00:00Z", "over, but the newest");
    put_until(folder.path(), 2040);
    tls.reload();
    assert_eq!(ends(&tls), "2040-12-31T00:00:00Z");
}

#[test]
fn a_certificate_of_version_1_says_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path());
    std::fs::write(folder.path().join("cert.pem"), VERSION_1).unwrap();
    let said = load(folder.path(), clock()).unwrap_err().to_string();
    assert!(
        said.contains("it is of X.509 version 1, want version 3"),
        "{said}"
    );
}
