//! From settings to what a watcher does with them.

use std::num::NonZeroUsize;

use hindsight_config::{Problem, Problems, Program, Reader, Settings as _, Sources, Value};
use hindsight_run::{JOB, Kind, SummaryPolicy, selector::Selector};

use super::{
    Config, Launch, LeaseConfig, Settings, SpoolConfig, Tuning, tables, values::Namespace,
};
use crate::policy::{Collect, Policy, rules::Rule};

/// A declared kind, and the labels of its objects that are watched.
type Declared = (&'static Kind, Option<String>);

impl Launch {
    /// Checks what the sources of `program` say.
    ///
    /// # Errors
    /// All problems at once, also those of values that a later source overrides.
    pub fn load(program: &Program, sources: &Sources) -> Result<Self, Problems> {
        let mut reader = Reader::over(program, sources);
        // First, because keys and rules may name these kinds.
        let declared = reader.tables("kind", tables::kind);
        let settings = Settings::read(&mut reader);
        let rules = reader.tables("rule", tables::rule);
        let settings = reader.finish(settings, Settings::contradictions)?;
        let config = settings.config(&declared, rules);
        Ok(Self {
            settings: Box::new(settings),
            config,
        })
    }
}

impl Settings {
    /// Values that are well-formed, and do not fit together.
    fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.token.is_some() && self.token_file.is_some() {
            let text = "token and token_file both say who the watcher is; keep one";
            problems.push(self.problem("token_file", text));
        }
        let (cert, key) = (self.client_cert.is_some(), self.client_key.is_some());
        if cert && !key {
            problems.push(self.problem("client_cert", "needs client_key too"));
        }
        if key && !cert {
            problems.push(self.problem("client_key", "needs client_cert too"));
        }
        let lease = [
            self.lease_duration,
            self.lease_renew_deadline,
            self.lease_retry,
        ];
        if !lease.is_sorted_by(|longer, shorter| longer > shorter) {
            let text = "lease_duration, lease_renew_deadline and lease_retry do not fit together; \
                        want each longer than the next";
            problems.push(self.problem("lease_duration", text));
        }
        problems
    }

    fn config(&self, declared: &[Declared], rules: Vec<Rule>) -> Config {
        let standard = Config::default();
        let selectors = self.selectors(declared);
        let kinds = self.kinds.as_ref().filter(|kinds| !kinds.0.is_empty());
        let mut kinds = kinds.map_or(standard.kinds, |kinds| kinds.0.clone());
        for kind in selectors
            .iter()
            .map(|(kind, _)| kind)
            .chain(declared.iter().map(|(kind, _)| kind))
        {
            if !kinds.contains(kind) {
                kinds.push(kind);
            }
        }
        Config {
            namespace: self.namespace.clone().map(|namespace| namespace.0),
            kinds,
            selectors,
            policy: self.policy(rules),
            dry_run: self.dry_run,
            threadiness: NonZeroUsize::new(self.threadiness.as_usize())
                .unwrap_or(NonZeroUsize::MIN),
            metrics_listen: self.metrics_listen,
            deletes_per_second: Some(self.deletes_per_second.0),
            writes_per_second: Some(self.writes_per_second.0),
            writes_burst: self.writes_burst.as_nonzero_u32(),
            spool: self.spool.clone().map(|dir| SpoolConfig {
                dir,
                limit: self.spool_bytes.get(),
            }),
            lease: self.leader_elect.then(|| self.lease()),
            logs: self.logs,
            logs_followed: NonZeroUsize::new(self.logs_followed.as_usize())
                .unwrap_or(NonZeroUsize::MIN),
            logs_max_bytes: self.logs_max_bytes.get(),
            shutdown_grace: self.shutdown_grace.get(),
            tuning: Tuning {
                kind_poll: self.kind_poll.get(),
                hold_bytes: self.hold_bytes.as_usize(),
                page_size: self.page_size.as_u32(),
                ..standard.tuning
            },
        }
    }

    fn selectors(&self, declared: &[Declared]) -> Vec<(&'static Kind, String)> {
        let jobs = self.job_selector.as_ref().map(Value::show);
        let jobs = Kind::named(JOB.group, JOB.kind).zip(jobs);
        let declared = declared.iter();
        let declared = declared.filter_map(|(kind, labels)| Some((*kind, labels.clone()?)));
        jobs.into_iter().chain(declared).collect()
    }

    fn policy(&self, rules: Vec<Rule>) -> Policy {
        let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let collect = Collect {
            grace: self.grace,
            selector: self
                .label_selector
                .clone()
                .map_or_else(Selector::default, |labels| labels.0),
            check_owner: self.check_owner,
            recheck: self.recheck.signed(),
            keep_last: self.keep_last.as_usize(),
            when: self.collect_when.as_ref().map(|when| when.0.clone()),
            rules,
            namespaces: self.namespace_overrides,
        };
        Policy {
            store_incomplete: self.store_incomplete,
            store_events: self.store_events,
            annotate: !self.no_annotations,
            finalizers: self.finalizers,
            store_deadline: self.store_deadline.signed(),
            logs_deadline: self.logs_deadline.signed(),
            verify_within: self.verify_within.signed(),
            summary: SummaryPolicy {
                labels: self.summary_labels.clone(),
                annotations: list(&self.summary_annotations),
            },
            managed_by: list(&self.managed_by_values).into_iter().collect(),
            selectors: Vec::new(),
            cluster: self.cluster_id.as_ref().and_then(|name| name.id.clone()),
            // A dry run shows what collection would do, so it need not be asked for twice.
            collect: (self.collect || self.dry_run).then_some(collect),
        }
    }

    fn lease(&self) -> LeaseConfig {
        LeaseConfig {
            namespace: self.lease_namespace.clone().map(|Namespace(name)| name),
            name: self.lease_name.clone(),
            identity: self
                .lease_identity
                .clone()
                .unwrap_or_else(|| hindsight_cluster::identity("watcher")),
            duration: self.lease_duration.get(),
            renew_deadline: self.lease_renew_deadline.get(),
            retry: self.lease_retry.get(),
        }
    }
}

#[cfg(test)]
mod tests;
