//! Flags as Tekton Results' watcher has them, so that its Deployment starts this one.
//!
//! Go writes `-name value`, `-name=value` and `--name=value`, with `_` between words. What has
//! no meaning here is accepted, and said why.

use hindsight_config::{Key, Kind, signed_duration};

use crate::config::PROGRAM;

/// Authorities that the image of upstream trusts besides those of the system, if the file is there.
const AUTHORITIES: &str = "/etc/tls/tls.crt";

/// Where a pod finds the token of its service account.
const ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The same, under another name.
    Value(&'static str),
    /// A truth, under another name.
    Truth(&'static str),
    /// A truth whose contrary has a name here.
    Not(&'static str),
    /// `-api_addr`: an address without a scheme.
    Address,
    /// `-auth_mode`: how to connect.
    AuthMode,
    /// `-completed_run_grace_period`: 0 collects nothing.
    Grace,
    /// `-store_deadline`: finalizers wait so long.
    Deadline,
    /// `-qps`: of each of three clients; 0 stands for 5, and a negative number for no limit.
    Rate,
    /// `-burst`: of each of three clients; 0 stands for 10.
    Burst,
    /// `-logs_api`: logs are read once a container has ended.
    Logs,
    /// Not needed; says why.
    Ignored(&'static str),
    /// A switch that is not needed; says why.
    IgnoredSwitch(&'static str),
}

const LOGS: &str = "with --logs a run is kept until its logs are stored, as --logs-deadline says";

const TIMES: &str = "each line is stored with its time, and shown with it when that is asked for";

const RULES: &[(&str, Rule)] = &[
    ("api_addr", Rule::Address),
    ("auth_mode", Rule::AuthMode),
    ("token", Rule::Value("token")),
    ("disable_crd_update", Rule::Truth("no-annotations")),
    ("completed_run_grace_period", Rule::Grace),
    ("label_selector", Rule::Value("label-selector")),
    ("requeue_interval", Rule::Value("recheck")),
    ("check_owner", Rule::Truth("check-owner")),
    ("namespace", Rule::Value("namespace")),
    ("threadiness", Rule::Value("threadiness")),
    ("summary_labels", Rule::Value("summary-labels")),
    ("summary_annotations", Rule::Value("summary-annotations")),
    ("managed_by_values", Rule::Value("managed-by-values")),
    (
        "disable_storing_incomplete_runs",
        Rule::Not("store-incomplete"),
    ),
    ("store_deadline", Rule::Deadline),
    ("forward_buffer", Rule::Ignored(LOGS)),
    ("update_log_timeout", Rule::Ignored(LOGS)),
    ("dynamic_reconcile_timeout", Rule::Ignored(LOGS)),
    ("logs_api", Rule::Logs),
    ("logs_timestamps", Rule::IgnoredSwitch(TIMES)),
    ("store_event", Rule::Truth("store-events")),
    ("qps", Rule::Rate),
    ("burst", Rule::Burst),
    (
        "disable-ha",
        Rule::IgnoredSwitch("there is no leader election without --leader-elect"),
    ),
];

/// Arguments as this program wants them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Translated {
    /// The arguments, without the program's name.
    pub(super) args: Vec<String>,
    /// What was accepted but has no effect, and why.
    pub(super) notes: Vec<String>,
}

/// Translates upstream's flags; leaves all others as they are. `has_file` tells whether a file is
/// there.
pub(super) fn translate(
    args: impl IntoIterator<Item = String>,
    has_file: impl Fn(&str) -> bool,
) -> Translated {
    let mut translated = Translated::default();
    let mut connection = Connection::default();
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        let Some((name, value, rule)) = upstream(&arg) else {
            translated.args.push(arg);
            continue;
        };
        let is_switch = matches!(
            rule,
            Rule::Truth(_) | Rule::Not(_) | Rule::Logs | Rule::IgnoredSwitch(_)
        );
        let value = match value {
            Some(value) => value.to_owned(),
            None if is_switch => "true".to_owned(),
            None => match args.next() {
                Some(value) => value,
                None => {
                    // The parser says what is missing.
                    translated.args.push(format!("--{name}"));
                    continue;
                }
            },
        };
        apply(rule, name, value, &mut translated, &mut connection);
    }
    connection.finish(&mut translated, has_file(AUTHORITIES));
    translated
}

fn apply(
    rule: Rule,
    name: &str,
    value: String,
    translated: &mut Translated,
    connection: &mut Connection,
) {
    let mut put = |name: &str, value: &str| translated.args.push(format!("--{name}={value}"));
    match rule {
        // The default of upstream's flags, which is none here.
        Rule::Value(ours) if value.is_empty() && !of_flag(ours).is_some_and(is_list) => {}
        Rule::Value(ours) => put(ours, &value),
        Rule::Truth(ours) => put(ours, &go_truth(&value)),
        Rule::Not(ours) => match go_truth(&value).as_str() {
            "true" => put(ours, "false"),
            "false" => put(ours, "true"),
            _ => put(ours, &value),
        },
        Rule::Logs => match go_truth(&value).as_str() {
            "true" => put("logs", "finished"),
            "false" => put("logs", "off"),
            _ => put("logs", &value),
        },
        Rule::Address => connection.address = Some(value),
        Rule::AuthMode => connection.mode = Some(value),
        Rule::Grace if signed_duration(&value).is_ok_and(|grace| grace.is_zero()) => {}
        Rule::Deadline => {
            put("finalizers", "true");
            put("store-deadline", &value);
        }
        Rule::Rate => put("writes-per-second", &three_times(&value, 5.0, "100000")),
        Rule::Burst => put("writes-burst", &three_times(&value, 10.0, "10")),
        Rule::Grace => {
            put("collect", "true");
            put("grace", &value);
        }
        Rule::Ignored(why) | Rule::IgnoredSwitch(why) => {
            translated
                .notes
                .push(format!("-{name} has no effect: {why}"));
        }
    }
}

/// The flag of upstream that `arg` is, with its value if that is part of it.
fn upstream(arg: &str) -> Option<(&str, Option<&str>, Rule)> {
    let rest = arg.strip_prefix('-')?;
    let (is_double, rest) = match rest.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (rest, None),
    };
    let (name, rule) = RULES.iter().find(|(known, _)| *known == name)?;
    // With two dashes these are flags of ours; without a value they can only be upstream's.
    let is_ours = is_double && of_flag(name).is_some() && value != Some("");
    (!is_ours).then_some((*name, value, *rule))
}

/// The key of a flag of ours.
fn of_flag(name: &str) -> Option<&'static Key> {
    let mut keys = PROGRAM.keys.iter();
    keys.find(|key| PROGRAM.flag(key.name) == name)
}

fn is_list(key: &Key) -> bool {
    key.kind == Kind::List
}

/// Upstream has a limit for each of its three controllers. What is no number is left to the parser.
fn three_times(value: &str, standard: f64, unlimited: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if number < 0.0 => unlimited.to_owned(),
        Ok(0.0) => (3.0 * standard).to_string(),
        Ok(number) => (3.0 * number).to_string(),
        Err(_) => value.to_owned(),
    }
}

/// Go also takes `1`, `t`, `T`, `TRUE` and so on.
fn go_truth(value: &str) -> String {
    match value {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => "true".to_owned(),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => "false".to_owned(),
        other => other.to_owned(),
    }
}

#[derive(Debug, Default)]
struct Connection {
    address: Option<String>,
    mode: Option<String>,
}

impl Connection {
    /// `token` and `google` connect by TLS. Without a token of its own, `token` uses that of
    /// the service account.
    fn finish(self, translated: &mut Translated, has_authorities: bool) {
        let is_secure = matches!(self.mode.as_deref(), Some("token" | "google"));
        if let Some(address) = self.address {
            let scheme = if is_secure { "https" } else { "http" };
            let has_scheme = address.contains("://");
            let server = if has_scheme {
                address
            } else {
                format!("{scheme}://{address}")
            };
            translated.args.push(format!("--server={server}"));
        }
        let is_told = |translated: &Translated| {
            let mut args = translated.args.iter();
            args.any(|arg| arg.starts_with("--server-ca"))
        };
        if is_secure && has_authorities && !is_told(translated) {
            translated.args.push(format!("--server-ca={AUTHORITIES}"));
        }
        match self.mode.as_deref() {
            Some("token") if !translated.args.iter().any(|arg| arg.starts_with("--token")) => {
                translated.args.push(format!("--token-file={ACCOUNT_TOKEN}"));
            }
            Some("google") => translated.notes.push(
                "-auth_mode=google has no effect: no ID token is asked for; give one by --token-file"
                    .to_owned(),
            ),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
