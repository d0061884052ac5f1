//! What is counted of answers about callers.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};

use hindsight_runtime::telemetry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    cache: &'static str,
    answer: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Entry {
    cache: &'static str,
    says: &'static str,
}

/// Counters `auth_cache_answers_total{cache,answer}`, gauges `auth_cache_entries{cache,says}`.
#[derive(Debug)]
pub(super) struct Metrics {
    answers: Family<Asked, Counter>,
    entries: Family<Entry, Gauge>,
}

/// What is counted of one cache. Clones share their values.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// Answers that were remembered.
    pub(super) hit: Counter,
    /// Answers of a question that was pending already.
    pub(super) shared: Counter,
    /// Questions that were asked.
    pub(super) miss: Counter,
    /// How many answers are held that say yes.
    pub(super) allowed: Gauge,
    /// How many answers are held that say no.
    pub(super) denied: Gauge,
}

impl Metrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            answers: registry.register(
                "auth_cache_answers",
                "Answers about callers by where they come from: remembered, asked for by somebody \
                 else already, or asked for",
            ),
            entries: registry.register(
                "auth_cache_entries",
                "Answers about callers that are held, also those that do not count any more",
            ),
        }
    }

    pub(super) fn of(&self, cache: &'static str) -> Counts {
        let answers = |answer| self.answers.get_or_create_owned(&Asked { cache, answer });
        let entries = |says| self.entries.get_or_create_owned(&Entry { cache, says });
        Counts {
            hit: answers("hit"),
            shared: answers("shared"),
            miss: answers("miss"),
            allowed: entries("yes"),
            denied: entries("no"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// `auth_rejected_tokens_total{reason}`. Clones share their values.
#[derive(Debug, Clone)]
pub(super) struct Rejections(Family<Reason, Counter>);

impl Rejections {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self(registry.register(
            "auth_rejected_tokens",
            "Tokens of auth `oidc` that were looked at and rejected, by reason",
        ))
    }

    pub(super) fn count(&self, reason: &'static str) {
        self.0.get_or_create_owned(&Reason { reason }).inc();
    }
}
