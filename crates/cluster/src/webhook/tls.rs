//! The certificate of the webhook, which is read again when its files change.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use hindsight_runtime::{
    error::report,
    tls::{self, File},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};
use tracing::{error, info};

use crate::choose_cryptography;

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(10);

/// The certificate with which connections begin, read again when its file changes.
#[derive(Debug)]
pub struct Tls {
    cert: PathBuf,
    key: PathBuf,
    /// Certificate and key that it began with.
    first: [File; 2],
    current: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// If they cannot be used.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, tls::Error> {
        choose_cryptography();
        let first = read(cert, key)?;
        Ok(Self {
            current: RwLock::new(Arc::new(server(&first)?)),
            cert: cert.to_owned(),
            key: key.to_owned(),
            first,
        })
    }

    /// Secures one connection.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let current = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(current).accept(stream).await
    }

    /// Looks at the files for as long as it is polled. Connections that are there stay as they are.
    pub(super) async fn follow(&self) {
        let mut seen = Some(self.first.clone());
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = read(&self.cert, &self.key).ok();
            if now == seen {
                continue;
            }
            // While files are replaced one by one they may not fit for a moment.
            match self.reload() {
                Ok(()) => info!(tls.cert = %self.cert.display(), "certificate reloaded"),
                Err(error) => {
                    let error = report(&error);
                    error!(error, "invalid certificate; keeping the previous one");
                }
            }
            seen = now;
        }
    }

    fn reload(&self) -> Result<(), tls::Error> {
        let new = server(&read(&self.cert, &self.key)?)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(())
    }
}

fn read(cert: &Path, key: &Path) -> Result<[File; 2], tls::Error> {
    Ok([File::read(cert)?, File::read(key)?])
}

fn server([cert, key]: &[File; 2]) -> Result<ServerConfig, tls::Error> {
    let server = ServerConfig::builder().with_no_client_auth();
    let mut server = tls::show(server, cert, key)?;
    // One request at once on a connection, of which there is a bounded number.
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(server)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use rcgen::{CertificateParams, KeyPair};

    use hindsight_runtime::tls::Error;

    use super::Tls;

    fn put(folder: &Path) {
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("cert.pem"), made.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    }

    #[test]
    fn files_that_do_not_fit_leave_the_certificate_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (
            folder.path().join("cert.pem"),
            folder.path().join("key.pem"),
        );
        assert!(matches!(
            Tls::load(&cert, &key),
            Err(Error::Unreadable { .. })
        ));
        put(folder.path());
        let tls = Tls::load(&cert, &key).unwrap();
        let current = || Arc::clone(&tls.current.read().unwrap());
        let first = current();
        std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
        assert!(matches!(tls.reload(), Err(Error::Pair { .. })));
        std::fs::write(&cert, "nothing").unwrap();
        assert!(matches!(tls.reload(), Err(Error::Pem { .. })));
        assert!(Arc::ptr_eq(&first, &current()));
        put(folder.path());
        tls.reload().unwrap();
        assert!(!Arc::ptr_eq(&first, &current()));
    }
}
