//! Families whose labels name namespaces. Namespaces come and go, as those of pull requests do, so
//! what was not counted for long is forgotten.

use std::{
    collections::HashMap,
    fmt::Debug,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::metrics::family::{Family, MetricConstructor};
use tokio::time::Instant;

/// A family that can forget.
#[derive(Debug)]
pub struct Forgetful<L, M, C = fn() -> M> {
    family: Family<L, M, C>,
    touched: Mutex<HashMap<L, Instant>>,
}

impl<L, M, C> Forgetful<L, M, C>
where
    L: Clone + Hash + Eq,
    M: Clone,
    C: MetricConstructor<M>,
{
    /// A family that is new.
    pub fn new(family: Family<L, M, C>) -> Self {
        Self {
            family,
            touched: Mutex::default(),
        }
    }

    /// The family, for a registry.
    pub fn family(&self) -> Family<L, M, C>
    where
        C: Clone,
    {
        self.family.clone()
    }

    /// The metric with these labels.
    pub fn get_or_create(&self, labels: &L) -> M {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        touched.insert(labels.clone(), Instant::now());
        self.family.get_or_create_owned(labels)
    }

    /// Forgets what was not asked for in so long a time.
    pub fn forget(&self, idle: Duration) {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        touched.retain(|labels, at| {
            let is_kept = at.elapsed() < idle;
            if !is_kept {
                self.family.remove(labels);
            }
            is_kept
        });
        if touched.len() < touched.capacity() / 4 {
            touched.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_not_counted_for_long_is_forgotten() {
        let family: Forgetful<[(&str, String); 1], Counter> = Forgetful::new(
            Family::new_with_constructor(Counter::default as fn() -> Counter),
        );
        let of = |namespace: String| [("namespace", namespace)];
        let day = Duration::from_hours(24);
        for n in 0..1000 {
            family.get_or_create(&of(format!("pr-{n}"))).inc();
        }
        family.get_or_create(&of("ci".to_owned())).inc();
        tokio::time::advance(day / 2).await;
        family.get_or_create(&of("ci".to_owned())).inc();
        tokio::time::advance(day / 2).await;
        family.forget(day);
        assert!(family.family().get(&of("pr-1".to_owned())).is_none());
        assert_eq!(family.get_or_create(&of("ci".to_owned())).get(), 2);
    }
}
