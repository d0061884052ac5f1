//! Patience with those who connect, and with files that change.

use std::collections::BTreeMap;

use rcgen::{KeyPair, generate_simple_self_signed};

use super::*;
use crate::config::Sources;

fn put(folder: &Path) {
    let made = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

fn tls(folder: &Path) -> Tls {
    let shown = |name| folder.join(name).display().to_string();
    let flags = BTreeMap::from([
        ("tls_cert".to_owned(), shown("cert.pem")),
        ("tls_key".to_owned(), shown("key.pem")),
    ]);
    let config = Config::load(&Sources {
        flags,
        ..Sources::default()
    });
    Tls::load(&config.unwrap()).unwrap().unwrap()
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
