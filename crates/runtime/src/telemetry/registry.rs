//! The registry of metrics: one value per server, filled at the start, printed on demand.

use std::fmt::{self, Display};

use prometheus_client::{
    collector::Collector,
    encoding::text::encode,
    metrics::info::Info,
    registry::{Metric, Registry as Inner},
};

/// What the names of all metrics begin with.
const PREFIX: &str = "hindsight";

/// The metrics of one server.
///
/// A room that measures has a struct of typed handles and a constructor that takes
/// `&mut Registry`. Label values come from enums or static text, never from names of
/// resources or texts of errors, so that the number of series has a bound.
pub struct Registry {
    inner: Inner,
}

impl Registry {
    /// A registry that holds `hindsight_build_info` alone.
    #[must_use]
    pub fn new() -> Self {
        let mut inner = Inner::with_prefix(PREFIX);
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        inner.register("build", "Version of this program", build);
        Self { inner }
    }

    /// Adds `metric` as `hindsight_<name>`. Counters are printed with `_total` behind the
    /// name, so `name` has none; units belong into the name, as in `request_seconds`.
    /// `help` has no full stop; one is added. Gives it back, since clones share their value.
    pub fn register_with<M: Metric + Clone>(
        &mut self,
        name: &'static str,
        help: &'static str,
        metric: M,
    ) -> M {
        self.inner.register(name, help, metric.clone());
        metric
    }

    /// Adds a metric as [`Registry::register_with`] does that counts from nothing.
    pub fn register<M: Metric + Clone + Default>(
        &mut self,
        name: &'static str,
        help: &'static str,
    ) -> M {
        self.register_with(name, help, M::default())
    }

    /// Adds what is looked at when somebody asks; what [`Registry::register_with`] says of names and
    /// values holds for it too.
    pub fn collect(&mut self, collector: impl Collector) {
        self.inner.register_collector(Box::new(collector));
    }

    /// Everything, in the OpenMetrics text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.inner).expect("a String takes all text");
        text
    }

    /// The content type of [`Registry::render`].
    #[must_use]
    pub const fn content_type() -> &'static str {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn a_metric_is_printed_with_the_prefix_of_the_program() {
        let mut registry = Registry::new();
        let stored: Counter = registry.register("records_stored", "Records written");
        stored.inc_by(3);
        assert_eq!(
            registry.render(),
            format!(
                "# HELP hindsight_build Version of this program.\n\
                 # TYPE hindsight_build info\n\
                 hindsight_build_info{{version=\"{}\"}} 1\n\
                 # HELP hindsight_records_stored Records written.\n\
                 # TYPE hindsight_records_stored counter\n\
                 hindsight_records_stored_total 3\n\
                 # EOF\n",
                env!("CARGO_PKG_VERSION")
            )
        );
    }

    #[test]
    fn two_registries_share_nothing() {
        let mut first = Registry::new();
        let _: Counter = first.register("records_stored", "Records written");
        assert!(!Registry::new().render().contains("records_stored"));
    }
}
