//! Values that are well-formed, and do not fit together.

use hindsight_config::{Problem, Settings as _};

use super::{AuditLog, Auth, Config, Origins, PipelinesStore, Synchronous};

impl Config {
    /// What would let in more than was meant, or keep silent about it, or be passed over.
    fn open_doors(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let remote = !self.listen.ip().is_loopback() && !self.allow_unauthenticated_remote;
        if remote && self.auth == Auth::Off && self.tls_client_ca.is_none() {
            problems.push(self.problem(
                "listen",
                format!(
                    "`{}` can be reached from other machines while auth is `off`, so anyone could \
                     read and delete everything; listen on 127.0.0.1, choose another auth, or set \
                     allow_unauthenticated_remote = true if something in front of this server \
                     asks who they are",
                    self.listen
                ),
            ));
        }
        if self.auth == Auth::Off && self.cors_origins == Some(Origins::Any) {
            let why = if self.allow_unauthenticated_remote {
                "`*` has no effect with allow_unauthenticated_remote: while auth is `off`, requests \
                 of pages of origins that are not named are refused"
            } else {
                "`*` lets every web page that is open on this machine read and delete everything \
                 while auth is `off`"
            };
            let text = format!("{why}; name the origins, or choose another auth");
            problems.push(self.problem("cors_origins", text));
        }
        let of_ray = [
            ("ray_kubeconfig", self.ray_kubeconfig.is_some()),
            ("ray_cluster_id", self.ray_cluster_id.is_some()),
        ];
        for (key, is_set) in of_ray {
            if is_set && !self.enable_ray {
                problems.push(self.problem(key, "needs enable_ray too"));
            }
        }
        problems.extend(self.pipelines());
        if self.audit_denied_reads && self.audit_log == AuditLog::Off {
            problems.push(self.problem("audit_denied_reads", "needs audit_log too"));
        }
        problems
    }

    /// What does not fit together about pipelines of Kubeflow.
    fn pipelines(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let in_cluster =
            self.enable_pipelines && self.pipelines_store == PipelinesStore::Kubernetes;
        let global = self.global_kubernetes_webhook_mode;
        if self.pipelines_kubeconfig.is_some() && !in_cluster && !global {
            let needs = "needs enable_pipelines and pipelines_store = \"kubernetes\" too";
            problems.push(self.problem("pipelines_kubeconfig", needs));
        }
        if global && self.enable_pipelines {
            let text = "serves webhooks alone, beside which enable_pipelines has no effect; want one of both";
            problems.push(self.problem("global_kubernetes_webhook_mode", text));
        }
        let has_webhooks = self.pipelines_webhook_listen.is_some();
        if global && !has_webhooks {
            let needs = "needs pipelines_webhook_listen too";
            problems.push(self.problem("global_kubernetes_webhook_mode", needs));
        }
        if has_webhooks && !in_cluster && !global {
            let needs = "needs enable_pipelines and pipelines_store = \"kubernetes\", or \
                         global_kubernetes_webhook_mode";
            problems.push(self.problem("pipelines_webhook_listen", needs));
        }
        let files = [
            ("pipelines_webhook_cert", &self.pipelines_webhook_cert),
            ("pipelines_webhook_key", &self.pipelines_webhook_key),
        ];
        for (name, file) in files {
            if has_webhooks && file.is_none() {
                let needs =
                    format!("needs {name} too; an API server calls webhooks over HTTPS alone");
                problems.push(self.problem("pipelines_webhook_listen", needs));
            }
        }
        problems
    }

    /// What is wrong with values that are well-formed each by itself.
    pub(super) fn contradictions(&self) -> Vec<Problem> {
        let mut problems = self.open_doors();
        if !self.db_synchronous.fits(&self.db) {
            let text = format!(
                "`{}` is not a valid level of durability of {}; want {}",
                self.db_synchronous,
                self.db,
                Synchronous::of(&self.db)
            );
            problems.push(self.problem("db_synchronous", text));
        }
        // To go on would leave a server open that is meant to be closed.
        for (key, method, given) in [
            (
                "auth_kubeconfig",
                "kubernetes",
                self.auth_kubeconfig.is_some(),
            ),
            (
                "auth_tokens_file",
                "tokens",
                self.auth_tokens_file.is_some(),
            ),
            ("oidc_issuer", "oidc", self.oidc_issuer.is_some()),
            ("oidc_client_id", "oidc", self.oidc_client_id.is_some()),
        ] {
            if self.auth == Auth::Off && given {
                let text = format!(
                    "is not used while auth is `off`; set auth = \"{method}\", or leave it out"
                );
                problems.push(self.problem(key, text));
            }
        }
        if self.auth == Auth::Tokens && self.auth_tokens_file.is_none() {
            let text = "`tokens` needs users; name their file with auth_tokens_file";
            problems.push(self.problem("auth", text));
        }
        for (key, there) in [
            ("oidc_issuer", self.oidc_issuer.is_some()),
            ("oidc_audience", self.oidc_audience.is_some()),
            ("oidc_roles_file", self.oidc_roles_file.is_some()),
        ] {
            if self.auth == Auth::Oidc && !there {
                problems.push(self.problem("auth", format!("`oidc` needs {key} too")));
            }
        }
        problems.extend(self.half_clients());
        for (key, given) in [
            ("logs_loki_token_file", self.logs_loki_token_file.is_some()),
            ("logs_loki_ca", self.logs_loki_ca.is_some()),
            ("logs_loki_tenant", self.logs_loki_tenant.is_some()),
        ] {
            if given && self.logs_loki_url.is_none() {
                problems.push(self.problem(key, "needs logs_loki_url too"));
            }
        }
        // A half of TLS would be none.
        for (key, given, needs, there) in [
            ("tls_cert", &self.tls_cert, "tls_key", &self.tls_key),
            ("tls_key", &self.tls_key, "tls_cert", &self.tls_cert),
            (
                "tls_client_ca",
                &self.tls_client_ca,
                "tls_cert",
                &self.tls_cert,
            ),
        ] {
            if given.is_some() && there.is_none() {
                problems.push(self.problem(key, format!("needs {needs} too")));
            }
        }
        if self.metrics_listen == Some(self.listen) && self.listen.port() != 0 {
            problems.push(self.problem(
                "metrics_listen",
                format!(
                    "`{}` is taken by listen; give it a port of its own",
                    self.listen
                ),
            ));
        }
        problems
    }

    /// What is missing of the client as which browsers sign in.
    fn half_clients(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let client = self.oidc_client_id.is_some();
        let (secret, public) = (&self.oidc_client_secret_file, &self.public_url);
        for (key, given, needs, there) in [
            (
                "oidc_client_secret_file",
                secret.is_some(),
                "oidc_client_id",
                client,
            ),
            // The issuer sends browsers back to it.
            ("oidc_client_id", client, "public_url", public.is_some()),
        ] {
            if given && !there {
                problems.push(self.problem(key, format!("needs {needs} too")));
            }
        }
        let mut scopes = self.oidc_scopes.split(' ');
        if client && !scopes.any(|scope| scope == "openid") {
            let text = "lacks `openid`, without which the issuer sends no ID token";
            problems.push(self.problem("oidc_scopes", text));
        }
        problems
    }
}
