//! The authorizer that the configuration names.

use std::sync::Arc;

use super::{Error, reload::Reload};
use crate::config::{Auth, Config};
use hindsight_access::auth::{
    Authorizer, CodeFlow, CodeFlowOptions, Kubernetes, KubernetesOptions, Oidc, OidcOptions, Open,
    Tokens,
};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::telemetry::Registry;

/// Whoever decides about callers.
pub(super) struct Access {
    pub(super) authorizer: Arc<dyn Authorizer>,
    /// What of that comes from files.
    pub(super) reload: Option<Arc<dyn Reload>>,
    /// Where browsers sign in, if that is elsewhere.
    pub(super) sign_in: Option<Arc<CodeFlow>>,
}

/// Whoever decides about callers by the configuration.
pub(super) async fn access(
    config: &Config,
    clock: Arc<dyn Clock>,
    registry: &mut Registry,
) -> Result<Access, Error> {
    let remote = !config.listen.ip().is_loopback();
    if remote && config.auth != Auth::Off && config.tls_cert.is_none() {
        tracing::warn!(
            listen = %config.listen,
            "tokens reach this server in the clear; set tls_cert, unless something in front of it \
             ends TLS"
        );
    }
    let alone = |authorizer| Access {
        authorizer,
        reload: None,
        sign_in: None,
    };
    match config.auth {
        Auth::Off => Ok(alone(Arc::new(Open))),
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
            Ok(alone(Arc::new(cluster)))
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
            let sign_in = config.oidc_client_id.clone().map(|client_id| {
                let options = CodeFlowOptions {
                    client_id,
                    secret: config.oidc_client_secret_file.clone(),
                    scopes: config.oidc_scopes.clone(),
                };
                CodeFlow::new(Arc::clone(&oidc), options).map(Arc::new)
            });
            Ok(Access {
                sign_in: sign_in.transpose().map_err(Error::Oidc)?,
                authorizer: Arc::clone(&oidc) as _,
                reload: Some(oidc),
            })
        }
        Auth::Tokens => {
            let path = config
                .auth_tokens_file
                .as_deref()
                .expect("the configuration names a file of users where it wants one");
            let tokens = Arc::new(Tokens::load(path).map_err(Error::Users)?);
            Ok(Access {
                authorizer: Arc::clone(&tokens) as _,
                reload: Some(tokens),
                sign_in: None,
            })
        }
    }
}
