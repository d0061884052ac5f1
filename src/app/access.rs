//! Who decides about callers, as configured.

use std::sync::Arc;

use super::Error;
use crate::{
    auth::{Authorizer, Kubernetes, KubernetesOptions, Open},
    clock::Clock,
    config::{Auth, Config},
};

/// Whoever decides about callers.
pub(super) async fn authorizer(
    config: &Config,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Authorizer>, Error> {
    match config.auth {
        Auth::Off => Ok(Arc::new(Open)),
        Auth::Kubernetes => {
            let options = KubernetesOptions {
                keep_allowed: config.auth_cache_allow.get(),
                keep_denied: config.auth_cache_deny.get(),
                impersonate: config.auth_impersonate,
            };
            let kubeconfig = config.auth_kubeconfig.as_deref();
            let cluster = Kubernetes::connect(kubeconfig, options, clock)
                .await
                .map_err(|source| Error::Auth {
                    method: config.auth,
                    source,
                })?;
            Ok(Arc::new(cluster))
        }
    }
}
