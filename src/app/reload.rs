//! Files that are read again while the server runs.

use std::{fmt::Debug, sync::Arc, time::Duration};

use hindsight_access::auth::{Oidc, Tokens};

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Something that comes from files.
pub(super) trait Reload: Debug + Send + Sync {
    /// Looks at the files, and takes over what changed. May block.
    fn reload(&self);
}

impl Reload for Tokens {
    fn reload(&self) {
        self.reload();
    }
}

impl Reload for Oidc {
    fn reload(&self) {
        self.reload();
    }
}

/// Looks at the files of all again and again; never ends by itself.
pub(super) async fn watch(all: Vec<Arc<dyn Reload>>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        for one in &all {
            let one = Arc::clone(one);
            tokio::task::spawn_blocking(move || one.reload())
                .await
                .expect("reading a file again does not panic");
        }
    }
}
