//! Where logs are that are not stored: what another system is asked for them, and where people find them.

use hindsight_config::{BadValue, Value};
use hindsight_logs::{Template, Variable};

/// Most paths that a setting names.
const PATHS: usize = 8;

fn template(text: &str, what: &str) -> Result<Template, BadValue> {
    Template::parse(text).map_err(|wrong| BadValue::not_valid(text, what, wrong.to_string()))
}

/// Whether logs of one parent cannot be found by runs of another one.
fn stays_in_parent(template: &Template) -> bool {
    template.has(Variable::Parent) || template.has(Variable::Namespace)
}

/// Whether what a template names belongs to one run.
fn is_of_one_run(template: &Template) -> bool {
    let of_run = [Variable::Record, Variable::Log, Variable::Uid];
    of_run.iter().any(|variable| template.has(*variable))
}

/// A query of Loki with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LokiQuery(pub Template);

/// The query that the server of Tekton Results makes by default, with the pod.
const TEKTON: &str = concat!(
    "{kubernetes_namespace_name=\"${namespace}\"}",
    " | json container=\"kubernetes.container_name\", pod=\"kubernetes.pod_name\",",
    " message=\"message\", uid=\"kubernetes.labels.tekton_dev_${kind}UID\"",
    " | uid=\"${uid}\" | line_format \"{{.message}}\"",
);

impl Default for LokiQuery {
    fn default() -> Self {
        Self::read(TEKTON).expect("the default is well-formed")
    }
}

impl Value for LokiQuery {
    const WORD: &'static str = "QUERY";

    fn read(text: &str) -> Result<Self, BadValue> {
        const WHAT: &str = "query of Loki";
        let query = template(text, WHAT)?;
        if !stays_in_parent(&query) || !is_of_one_run(&query) {
            let want = "one with `${namespace}` and with `${uid}` or `${record}`, so that it finds \
                        the log of one run alone";
            return Err(BadValue::not_valid(text, WHAT, want));
        }
        Ok(Self(query))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// Paths of objects with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPaths(pub Vec<Template>);

impl Value for LogPaths {
    const WORD: &'static str = "PATHS";

    fn read(text: &str) -> Result<Self, BadValue> {
        const WHAT: &str = "list of paths";
        let paths = text.split_whitespace().map(|text| template(text, WHAT));
        let paths: Vec<_> = paths.collect::<Result<_, _>>()?;
        let is_good = |path: &Template| stays_in_parent(path) && is_of_one_run(path);
        if paths.is_empty() || paths.len() > PATHS || !paths.iter().all(is_good) {
            let want = format!(
                "1 to {PATHS} with spaces between them, each with `${{parent}}` or `${{namespace}}`, \
                 and with `${{record}}`, `${{log}}` or `${{uid}}`"
            );
            return Err(BadValue::not_valid(text, WHAT, &want));
        }
        Ok(Self(paths))
    }

    fn show(&self) -> String {
        let paths: Vec<_> = self.0.iter().map(Template::to_string).collect();
        paths.join(" ")
    }
}

/// The address of a page that shows a log, with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogsLink(pub Template);

impl Value for LogsLink {
    const WORD: &'static str = "URL";

    fn read(text: &str) -> Result<Self, BadValue> {
        const WHAT: &str = "address of a page";
        let link = template(text, WHAT)?;
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_address = matches!(scheme, "http" | "https") && !host.is_empty();
        if !is_address || host.contains(['$', '@']) {
            let want = "`https://HOST/PATH` with variables after the host";
            return Err(BadValue::not_valid(text, WHAT, want));
        }
        Ok(Self(link))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_and_a_path_stay_within_the_parent_and_the_run() {
        assert_eq!(LokiQuery::default().show(), TEKTON);
        for good in [
            "{ns=\"${namespace}\"} | json | uid=\"${uid}\"",
            "{p=\"${parent}\"} |= \"${record}\"",
        ] {
            assert_eq!(LokiQuery::read(good).unwrap().show(), good);
        }
        for bad in [
            "{ns=\"${namespace}\"}",
            "{uid=\"${uid}\"}",
            "${path} ${namespace} ${uid}",
            "${uid",
        ] {
            assert!(LokiQuery::read(bad).is_err(), "{bad}");
        }
        let good = "${parent}/${result}/${record}/ logs/${namespace}/${log}/${name}-log";
        assert_eq!(LogPaths::read(good).unwrap().show(), good);
        for bad in [
            "",
            "${parent}/${name}",
            "${record}/",
            "${parent}/${record}/ x",
        ] {
            assert!(LogPaths::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_link_leads_to_the_host_that_the_configuration_names() {
        let good = "https://logs.example/app?q=${uid}&from=${start}";
        assert_eq!(LogsLink::read(good).unwrap().show(), good);
        for bad in [
            "javascript:${uid}",
            "https://${namespace}.example/",
            "https://u:p@host/${uid}",
            "ftp://host/",
            "https:///x",
        ] {
            assert!(LogsLink::read(bad).is_err(), "{bad}");
        }
    }
}
