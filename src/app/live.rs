//! Keys of the configuration that are applied without a restart, which are marked as live. Files that
//! other keys name are watched by themselves.

use std::sync::{Arc, Mutex, PoisonError};

use crate::config::{Amount, AuditLog, Config, Settings as _};
use hindsight_access::audit::{Audit, Place};
use hindsight_access::budget::{Budgets, Limits};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::cores::cores;
use hindsight_runtime::telemetry::{LogLevel, Registry};

/// The changeable part of a server. Clones change the same server.
#[derive(Debug, Clone)]
pub struct Live {
    budgets: Budgets,
    config: Arc<Mutex<Config>>,
}

impl Live {
    pub(super) fn new(config: &Config, budgets: Budgets) -> Self {
        Self {
            budgets,
            config: Arc::new(Mutex::new(config.clone())),
        }
    }

    /// Takes over what counts at once, and answers the keys that take a restart.
    pub fn apply(&self, config: &Config, log: &LogLevel) -> Vec<&'static str> {
        let mut current = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = current.differences(config);
        if changed.iter().any(|key| key.name == "log_level") {
            log.set(&config.log_level);
        }
        self.budgets.set(limits(config));
        *current = config.clone();
        let later = changed.iter().filter(|key| !key.live);
        later.map(|key| key.name).collect()
    }
}

/// The log of changes that is wanted. Fails if its file cannot be opened.
pub fn audit(config: &Config, registry: &mut Registry) -> std::io::Result<Audit> {
    let place = match &config.audit_log {
        AuditLog::Off => return Ok(Audit::default()),
        AuditLog::Stdout => Place::Stdout,
        AuditLog::File(path) => Place::File(path.clone()),
    };
    Ok(Audit::open(place, registry)?.with_denied_reads(config.audit_denied_reads))
}

pub(super) fn budgets(config: &Config, clock: Arc<dyn Clock>, registry: &mut Registry) -> Budgets {
    let half = || cores() / 2;
    let slots = config.scan_slots.map(|slots| slots.as_usize());
    Budgets::new(
        limits(config),
        slots.unwrap_or_else(half),
        config.max_request_memory.as_usize(),
        clock,
        registry,
    )
}

fn limits(config: &Config) -> Limits {
    Limits {
        in_flight: config.caller_max_requests.as_u32(),
        per_second: config.caller_max_rate.map(Amount::as_u32),
        scan_per_minute: config.caller_max_scan.map(Amount::as_u32),
    }
}
