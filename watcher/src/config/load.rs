//! From text to types: every problem at once, each with where it comes from.

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf, str::FromStr, time::Duration};

use jiff::SignedDuration;

use hindsight_run::{JOB, Kind, SummaryPolicy};

use super::{
    Config, Launch, LeaseConfig, SpoolConfig, Token,
    keys::{self, KEYS, PREFIX},
    sources::{self, Sources},
    tables::{self, Tables},
    texts::{
        self, duration, kinds, list, listen, namespace, parsed, percent, positive, server, size,
    },
};
use crate::policy::{ClusterId, ClusterIdError, Collect, Policy};
use hindsight_runtime::telemetry::{LogFilter, LogFormat};

/// Something that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {why}")]
pub struct Problem {
    /// Where it was said: a flag, a variable, a key of the file.
    pub origin: String,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

/// A value and where it was said.
#[derive(Debug, Clone)]
struct Said {
    text: String,
    origin: String,
}

/// Reads what was said. A flag beats a variable, a variable beats the file, and that beats the
/// default.
///
/// # Errors
/// Everything that is wrong.
pub fn load(sources: &Sources) -> Result<Launch, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut tables = Tables::default();
    let said = collect(sources, &mut tables, &mut problems);
    let mut reader = Reader {
        said,
        tables,
        problems,
    };
    let launch = reader.launch();
    if reader.problems.is_empty() {
        Ok(launch)
    } else {
        Err(reader.problems)
    }
}

fn collect(
    sources: &Sources,
    tables: &mut Tables,
    problems: &mut Vec<Problem>,
) -> BTreeMap<&'static str, Said> {
    let mut said = BTreeMap::new();
    if let Some((path, text)) = &sources.file {
        let at = path.display();
        match text.parse::<toml::Table>() {
            Err(error) => problems.push(Problem {
                origin: at.to_string(),
                why: format!("it is no TOML: {}", error.to_string().trim_end()),
            }),
            Ok(table) => {
                for (name, value) in table {
                    let origin = format!("{name} in {at}");
                    if tables::NAMES.contains(&name.as_str()) {
                        let wrong = tables.read(&name, &value).into_iter();
                        problems.extend(wrong.map(|(n, why)| Problem {
                            origin: format!("{origin}, number {n}"),
                            why,
                        }));
                        continue;
                    }
                    match (keys::find(&name), as_text(&value)) {
                        (Some(key), Some(text)) => {
                            said.insert(key.name, Said { text, origin });
                        }
                        (Some(_), None) => problems.push(Problem {
                            origin,
                            why: "want text, a number, a truth or a list of texts".into(),
                        }),
                        (None, _) => {
                            let why = unknown(&name);
                            problems.push(Problem { origin, why });
                        }
                    }
                }
            }
        }
    }
    for (variable, text) in &sources.env {
        let name = variable.strip_prefix(PREFIX).unwrap_or(variable);
        let origin = format!("{variable} in the environment");
        let name = name.to_lowercase().replace('_', "-");
        match keys::find(&name) {
            Some(key) => {
                said.insert(
                    key.name,
                    Said {
                        text: text.clone(),
                        origin,
                    },
                );
            }
            None if is_of_a_service(&name) => {}
            None => problems.push(Problem {
                origin,
                why: unknown(&name),
            }),
        }
    }
    for (name, text) in &sources.flags {
        said.insert(
            name,
            Said {
                text: text.clone(),
                origin: format!("--{}{name}", sources.prefix),
            },
        );
    }
    said
}

/// Kubernetes tells every pod about the services beside it; one of our name looks like ours.
fn is_of_a_service(name: &str) -> bool {
    name == "port" || name.starts_with("port-") || name.starts_with("service-")
}

fn as_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(truth) => Some(truth.to_string()),
        toml::Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => None,
    }
}

fn page_size(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| (1..=10_000).contains(n));
    number.ok_or_else(|| format!("`{text}` is not a number from 1 to 10000"))
}

fn unknown(name: &str) -> String {
    let near = KEYS.iter().find(|key| {
        let plain = |text: &str| text.replace(['-', '_'], "");
        let (ours, theirs) = (plain(key.name), plain(name));
        ours == theirs || (theirs.len() > 3 && (ours.contains(&theirs) || theirs.contains(&ours)))
    });
    match near {
        Some(key) => format!("there is no such key; is it `{}`?", key.name),
        None => "there is no such key; `hindsight-watcher --help` lists them".to_owned(),
    }
}

struct Reader {
    said: BTreeMap<&'static str, Said>,
    tables: Tables,
    problems: Vec<Problem>,
}

impl Reader {
    fn launch(&mut self) -> Launch {
        let server = self.read("server", server).unwrap_or_default();
        let token = self.token();
        let level = LogFilter::from_str("info").expect("a level is a filter");
        Launch {
            server,
            token: token.0,
            token_file: token.1,
            server_ca: self.read("server-ca", |text| Ok(PathBuf::from(text))),
            client_cert: self.read("client-cert", |text| Ok(PathBuf::from(text))),
            client_key: self.read("client-key", |text| Ok(PathBuf::from(text))),
            plain_calls: self.truth("plain-calls"),
            cluster_from_uid: self.cluster().0,
            kubeconfig: self.read("kubeconfig", |text| Ok(PathBuf::from(text))),
            log_level: self.read("log-level", parsed).unwrap_or(level),
            log_format: self.read("log-format", parsed).unwrap_or(LogFormat::Text),
            trace_endpoint: self.read("trace-endpoint", texts::server),
            trace_percent: self.read("trace-percent", percent).unwrap_or(100),
            config: self.config(),
        }
    }

    fn config(&mut self) -> Config {
        let standard = Config::default();
        let policy = self.policy();
        let mut tuning = standard.tuning;
        if let Some(poll) = self.read("kind-poll", positive) {
            tuning.kind_poll = poll.unsigned_abs();
        }
        if let Some(bytes) = self.read("hold-bytes", size) {
            tuning.hold_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        if let Some(objects) = self.read("page-size", page_size) {
            tuning.page_size = objects;
        }
        Config {
            namespace: self.read("namespace", namespace),
            kinds: self.kinds(standard.kinds),
            selectors: self.selectors(),
            policy,
            dry_run: self.truth("dry-run"),
            threadiness: self
                .read("threadiness", |text| {
                    text.parse::<NonZeroUsize>()
                        .ok()
                        .filter(|n| n.get() <= 1024)
                        .ok_or_else(|| format!("`{text}` is no number from 1 to 1024"))
                })
                .unwrap_or(standard.threadiness),
            metrics_listen: self.read("metrics-listen", listen).flatten(),
            deletes_per_second: self.read("deletes-per-second", texts::rate),
            writes_per_second: self.read("writes-per-second", texts::rate),
            writes_burst: self
                .read("writes-burst", |text| {
                    let why = |_| format!("`{text}` is not a number from 1 on");
                    text.parse().map_err(why)
                })
                .unwrap_or(standard.writes_burst),
            spool: self.spool(),
            lease: self.lease(),
            shutdown_grace: self
                .read("shutdown-grace", |text| {
                    Duration::try_from(duration(text)?).map_err(|_range| {
                        format!("`{text}` is negative; nothing ends before it began")
                    })
                })
                .unwrap_or(standard.shutdown_grace),
            tuning,
        }
    }

    /// Those that are named, or all; and those that are said apart.
    fn kinds(&mut self, standard: Vec<&'static Kind>) -> Vec<&'static Kind> {
        let mut kinds = self.read("kinds", kinds).unwrap_or(standard);
        kinds.extend(self.selectors().iter().map(|(kind, _)| *kind));
        kinds.extend(self.tables.kinds.iter().map(|(kind, _)| *kind));
        let mut known: Vec<&'static Kind> = Vec::new();
        kinds.retain(|kind| {
            let is_new = !known.contains(kind);
            known.push(kind);
            is_new
        });
        kinds
    }

    fn selectors(&mut self) -> Vec<(&'static Kind, String)> {
        let jobs = self.read("job-selector", texts::labels);
        let jobs = jobs.zip(Kind::named(JOB.group, JOB.kind));
        let declared = self.tables.kinds.iter();
        let declared = declared.filter_map(|(kind, labels)| Some((*kind, labels.clone()?)));
        jobs.map(|(labels, kind)| (kind, labels))
            .into_iter()
            .chain(declared)
            .collect()
    }

    /// Whether the cluster's name has to be found out; its name, if it is said.
    fn cluster(&mut self) -> (bool, Option<ClusterId>) {
        let said = self.read("cluster-id", |text| match text {
            "auto" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|error: ClusterIdError| error.to_string()),
        });
        (said == Some(None), said.flatten())
    }

    fn policy(&mut self) -> Policy {
        let collect = Collect {
            grace: self.read("grace", duration).unwrap_or_default(),
            selector: self.parse("label-selector").unwrap_or_default(),
            check_owner: self.truth("check-owner"),
            recheck: self
                .read("recheck", positive)
                .unwrap_or(SignedDuration::from_mins(1)),
            keep_last: self.parse("keep-last").unwrap_or_default(),
            when: self.read("collect-when", tables::when),
            rules: std::mem::take(&mut self.tables.rules),
            namespaces: self.truth("namespace-overrides"),
        };
        // A dry run shows what collection would do, so it need not be asked for twice.
        let wants = self.truth("collect") | self.truth("dry-run");
        Policy {
            store_incomplete: self.truth("store-incomplete"),
            store_events: self.truth("store-events"),
            annotate: !self.truth("no-annotations"),
            finalizers: self.truth("finalizers"),
            store_deadline: self
                .read("store-deadline", positive)
                .unwrap_or(SignedDuration::from_mins(10)),
            verify_within: self.read("verify-within", duration).unwrap_or_default(),
            summary: SummaryPolicy {
                labels: self.read("summary-labels", list).unwrap_or_default(),
                annotations: self.read("summary-annotations", list).unwrap_or_default(),
            },
            managed_by: self
                .read("managed-by-values", list)
                .unwrap_or_default()
                .into_iter()
                .collect(),
            selectors: Vec::new(),
            cluster: self.cluster().1,
            collect: wants.then_some(collect),
        }
    }

    fn spool(&mut self) -> Option<SpoolConfig> {
        let limit = self.read("spool-bytes", size);
        let dir = self.read("spool", |text| Ok(PathBuf::from(text)))?;
        Some(SpoolConfig { dir, limit: limit? })
    }

    fn lease(&mut self) -> Option<LeaseConfig> {
        let [duration, renew_deadline, retry] =
            ["lease-duration", "lease-renew-deadline", "lease-retry"]
                .map(|name| self.read(name, positive).map(SignedDuration::unsigned_abs));
        let namespace = self.read("lease-namespace", namespace);
        let name = self.read("lease-name", |text| Ok(text.to_owned()));
        let identity = self.read("lease-identity", |text| Ok(text.to_owned()));
        let (duration, renew_deadline, retry) = (duration?, renew_deadline?, retry?);
        if duration <= renew_deadline || renew_deadline <= retry {
            self.problems.push(Problem {
                origin: "--lease-duration, --lease-renew-deadline and --lease-retry".to_owned(),
                why: format!(
                    "want each longer than the next, not {duration:?}, {renew_deadline:?} and \
                     {retry:?}"
                ),
            });
        }
        self.truth("leader-elect").then(|| LeaseConfig {
            namespace,
            name: name.unwrap_or_default(),
            identity: identity.unwrap_or_else(sources::identity),
            duration,
            renew_deadline,
            retry,
        })
    }

    fn token(&mut self) -> (Option<Token>, Option<PathBuf>) {
        let token = self.read("token", |text| Ok(Token(text.to_owned())));
        let file = self.read("token-file", |text| Ok(PathBuf::from(text)));
        if token.is_some() && file.is_some() {
            let origins: Vec<String> = ["token", "token-file"]
                .iter()
                .filter_map(|name| self.said.get(name).map(|said| said.origin.clone()))
                .collect();
            self.problems.push(Problem {
                origin: origins.join(" and "),
                why: "both say who the watcher is; keep one".to_owned(),
            });
        }
        (token, file)
    }

    /// The value of a key: `None` if it is empty, or wrong, which is noted.
    fn read<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let key = keys::find(name).expect("only keys that exist are read");
        let (text, origin) = match self.said.get(name) {
            Some(said) => (said.text.trim(), said.origin.as_str()),
            None => (key.default, "default"),
        };
        if text.is_empty() {
            return None;
        }
        match parse(text) {
            Ok(value) => Some(value),
            Err(why) => {
                // Several readers of one key complain once.
                let problem = Problem {
                    origin: origin.to_owned(),
                    why,
                };
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
                None
            }
        }
    }

    fn parse<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &'static str) -> Option<T> {
        self.read(name, |text| {
            text.parse().map_err(|error: T::Err| error.to_string())
        })
    }

    fn truth(&mut self, name: &'static str) -> bool {
        self.read(name, |text| match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("`{text}` is neither `true` nor `false`")),
        })
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
