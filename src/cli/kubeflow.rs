//! Flags of Kubeflow's API server that `serve` takes as well, without telling them in help.

use std::net::{Ipv4Addr, SocketAddr};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::config::Sources;

/// Flags of `serve`, and what Kubeflow calls them.
const ALIASES: [(&str, &str); 3] = [
    (
        "global-kubernetes-webhook-mode",
        "globalKubernetesWebhookMode",
    ),
    ("pipelines-webhook-cert", "webhookTLSCertPath"),
    ("pipelines-webhook-key", "webhookTLSKeyPath"),
];

/// Objects of Kubernetes are the store, and webhooks are served.
const STORE: &str = "pipelinesStoreKubernetes";
/// No webhooks are served.
const NO_WEBHOOK: &str = "disableWebhook";
/// Where webhooks listen, such as `:8443`.
const PORT: &str = "webhookPortFlag";

/// Where webhooks of Kubeflow listen if nothing is said.
const STANDARD: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8443);

/// `serve` with these flags.
pub(super) fn flags(serve: Command) -> Command {
    let serve = ALIASES.iter().fold(serve, |serve, (flag, alias)| {
        serve.mut_arg(*flag, |arg| arg.alias(*alias))
    });
    let switch = |name: &'static str| {
        let arg = Arg::new(name).long(name).hide(true).action(ArgAction::Set);
        let arg = arg.num_args(0..=1).require_equals(true);
        arg.default_missing_value("true")
            .value_parser(value_parser!(bool))
    };
    let port = Arg::new(PORT).long(PORT).alias("webhookPort").hide(true);
    serve
        .arg(switch(STORE))
        .arg(switch(NO_WEBHOOK))
        .arg(port.value_parser(address))
}

/// Adds the keys that these flags stand for, where no flag of ours says another thing.
pub(super) fn apply(matches: &ArgMatches, sources: &mut Sources) {
    // Other commands have no such flags.
    let is = |name| matches.try_get_one::<bool>(name).ok().flatten() == Some(&true);
    let port = matches.try_get_one::<SocketAddr>(PORT).ok().flatten();
    let mut set = |key: &str, value: String| {
        sources.flags.entry(key.to_owned()).or_insert(value);
    };
    if is(STORE) {
        set("enable_pipelines", "true".to_owned());
        set("pipelines_store", "kubernetes".to_owned());
    }
    if is(NO_WEBHOOK) {
        set("pipelines_webhook_listen", "off".to_owned());
    } else if let Some(listen) = port.or_else(|| is(STORE).then_some(&STANDARD)) {
        set("pipelines_webhook_listen", listen.to_string());
    }
}

/// An address as Go writes it, where every address of the machine is one of no host.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    match port.parse() {
        Ok(port) => Ok(SocketAddr::new(STANDARD.ip(), port)),
        Err(_) => text
            .parse()
            .map_err(|_wrong| format!("`{text}` is not a port; write `:8443` or `ADDRESS:8443`")),
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::{super::command, apply};
    use crate::config::{PROGRAM, Sources};

    /// What flags of `serve` stand for.
    fn flags(arguments: &[&str]) -> Result<Vec<String>, ErrorKind> {
        let arguments = [&["hindsight", "serve"], arguments].concat();
        let matches = command().try_get_matches_from(arguments);
        let matches = matches.map_err(|error| error.kind())?;
        let serve = matches.subcommand_matches("serve").unwrap();
        let mut sources = Sources::gather(&PROGRAM, serve);
        apply(serve, &mut sources);
        let flags = sources.flags.iter();
        Ok(flags.map(|(key, value)| format!("{key}={value}")).collect())
    }

    #[test]
    fn flags_of_kubeflow_become_keys() {
        let store = ["enable_pipelines=true", "pipelines_store=kubernetes"];
        let listen = |address: &str| format!("pipelines_webhook_listen={address}");
        let with =
            |address: &str| [store.map(str::to_owned).to_vec(), vec![listen(address)]].concat();
        for (arguments, keys) in [
            (
                &["--pipelinesStoreKubernetes=true"][..],
                with("0.0.0.0:8443"),
            ),
            (
                &["--pipelinesStoreKubernetes", "--disableWebhook"],
                with("off"),
            ),
            (
                &["--pipelinesStoreKubernetes", "--webhookPortFlag=:9443"],
                with("0.0.0.0:9443"),
            ),
            (
                &["--pipelinesStoreKubernetes", "--webhookPort", "9443"],
                with("0.0.0.0:9443"),
            ),
            (
                &[
                    "--pipelinesStoreKubernetes",
                    "--webhookPortFlag=127.0.0.1:9443",
                ],
                with("127.0.0.1:9443"),
            ),
            (
                &[
                    "--pipelinesStoreKubernetes",
                    "--pipelines-webhook-listen=off",
                ],
                with("off"),
            ),
            (
                &["--pipelinesStoreKubernetes=false", "--disableWebhook=false"],
                vec![],
            ),
            (
                &["--globalKubernetesWebhookMode", "--webhookPortFlag=:8443"],
                vec![
                    "global_kubernetes_webhook_mode=true".to_owned(),
                    listen("0.0.0.0:8443"),
                ],
            ),
            (
                &["--webhookTLSCertPath=c", "--webhookTLSKeyPath", "k"],
                vec![
                    "pipelines_webhook_cert=c".to_owned(),
                    "pipelines_webhook_key=k".to_owned(),
                ],
            ),
        ] {
            assert_eq!(flags(arguments), Ok(keys), "{arguments:?}");
        }
        for wrong in ["--pipelinesStoreKubernetes=x", "--webhookPortFlag=:x"] {
            assert!(flags(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn help_does_not_tell_them() {
        let mut command = command();
        let serve = command.find_subcommand_mut("serve").unwrap();
        let help = serve.render_long_help().to_string();
        for name in [
            "pipelinesStore",
            "disableWebhook",
            "webhookPort",
            "webhookTLS",
            "globalK",
        ] {
            assert!(!help.contains(name), "{name}");
        }
    }
}
