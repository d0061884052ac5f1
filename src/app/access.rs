//! The authorizer that the configuration names.

use std::sync::Arc;

use super::{Error, reload::Reload};
use crate::config::{Auth, Config};
use hindsight_access::auth::{
    Authorizer, Kubernetes, KubernetesOptions, Oidc, OidcOptions, Open, Tokens,
};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::telemetry::Registry;

/// Whoever decides about callers, and what of that comes from files.
pub(super) async fn authorizer(
    config: &Config,
    clock: Arc<dyn Clock>,
    registry: &mut Registry,
) -> Result<(Arc<dyn Authorizer>, Option<Arc<dyn Reload>>), Error> {
    let remote = !config.listen.ip().is_loopback();
    if remote && config.auth != Auth::Off && config.tls_cert.is_none() {
        tracing::warn!(
            listen = %config.listen,
            "tokens reach this server in the clear; set tls_cert, unless something in front of it \
             ends TLS"
        );
    }
    match config.auth {
        Auth::Off => Ok((Arc::new(Open), None)),
        Auth::Kubernetes => {
            let options = KubernetesOptions {
                keep_allowed: config.auth_cache_allow.get(),
                keep_denied: config.auth_cache_deny.get(),
                impersonate: config.auth_impersonate,
            };
            let kubeconfig = config.auth_kubeconfig.as_deref();
            let cluster = Kubernetes::connect(kubeconfig, options, clock, registry)
                .await
                .map_err(|source| Error::Auth {
                    method: config.auth,
                    source,
                })?;
            Ok((Arc::new(cluster), None))
        }
        Auth::Oidc => {
            let said = "the configuration names issuer, audience and roles where it wants them";
            let options = OidcOptions {
                issuer: config.oidc_issuer.as_ref().expect(said).as_str().to_owned(),
                issuer_ca: config.oidc_issuer_ca.clone(),
                audience: config.oidc_audience.clone().expect(said),
                name_claim: config.oidc_name_claim.clone(),
                groups_claim: config.oidc_groups_claim.clone(),
                roles: config.oidc_roles_file.clone().expect(said),
                keep_allowed: config.auth_cache_allow.get(),
                keep_denied: config.auth_cache_deny.get(),
            };
            let oidc = Arc::new(Oidc::new(options, clock, registry).map_err(Error::Oidc)?);
            Ok((Arc::clone(&oidc) as _, Some(oidc)))
        }
        Auth::Tokens => {
            let path = config
                .auth_tokens_file
                .as_deref()
                .expect("the configuration names a file of users where it wants one");
            let tokens = Arc::new(Tokens::load(path).map_err(Error::Users)?);
            Ok((Arc::clone(&tokens) as _, Some(tokens)))
        }
    }
}
