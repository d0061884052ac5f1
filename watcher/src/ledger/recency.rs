//! Which finished runs of a pipeline are the newest, for policies that keep the last few.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Bound,
    sync::Arc,
};

use jiff::Timestamp;

use super::Uid;

/// Runs that are counted together: those of a pipeline in a namespace, of one kind, for which the
/// same rule holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Series {
    /// Kind of the runs, such as `PipelineRun`.
    pub kind: &'static str,
    /// Namespace that the runs are in.
    pub namespace: Box<str>,
    /// The pipeline; empty for runs of none.
    pub pipeline: Box<str>,
    /// Which rule of collection holds.
    pub rule: Option<usize>,
}

/// The finished runs of each series, by when they ended.
#[derive(Debug, Default)]
pub struct Recency {
    series: HashMap<Arc<Series>, BTreeSet<(Timestamp, Uid)>>,
    places: HashMap<Uid, (Arc<Series>, Timestamp)>,
}

impl Recency {
    /// Notes that a run of `series` ended at `ended`. Returns how many are newer, up to `keep`,
    /// and the run that is no longer among the newest `keep` because of that, if there is one.
    pub fn place(
        &mut self,
        uid: &Uid,
        series: Series,
        ended: Timestamp,
        keep: usize,
    ) -> (usize, Option<Uid>) {
        let known = self.places.get(uid);
        let is_new = known.is_none_or(|(of, at)| **of != series || *at != ended);
        if is_new {
            self.remove(uid);
            let series = match self.series.get_key_value(&series) {
                Some((known, _)) => Arc::clone(known),
                None => Arc::new(series),
            };
            let runs = self.series.entry(Arc::clone(&series)).or_default();
            runs.insert((ended, uid.clone()));
            self.places.insert(uid.clone(), (series, ended));
        }
        let Some((series, _)) = self.places.get(uid) else {
            return (0, None);
        };
        let Some(runs) = self.series.get(series) else {
            return (0, None);
        };
        let after = (Bound::Excluded((ended, uid.clone())), Bound::Unbounded);
        let newer = runs.range(after).take(keep).count();
        let pushed_out = runs.iter().rev().nth(keep);
        let pushed_out = pushed_out.filter(|(_, other)| is_new && newer < keep && other != uid);
        (newer, pushed_out.map(|(_, other)| other.clone()))
    }

    /// Takes a run out of its series, if it is in one.
    pub fn remove(&mut self, uid: &Uid) {
        let Some((series, ended)) = self.places.remove(uid) else {
            return;
        };
        if let Some(runs) = self.series.get_mut(&series) {
            runs.remove(&(ended, uid.clone()));
            if runs.is_empty() {
                self.series.remove(&series);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{Recency, Series, Uid};

    fn series(pipeline: &str) -> Series {
        Series {
            kind: "PipelineRun",
            namespace: "ci".into(),
            pipeline: pipeline.into(),
            rule: None,
        }
    }

    fn place(recency: &mut Recency, uid: &str, ended: i64) -> (usize, Option<String>) {
        let ended = Timestamp::from_second(ended).unwrap();
        let (newer, out) = recency.place(&uid.into(), series("nightly"), ended, 2);
        (newer, out.map(|uid| uid.to_string()))
    }

    #[test]
    fn a_newer_run_pushes_out_the_oldest_of_those_that_stay() {
        let mut recency = Recency::default();
        assert_eq!(place(&mut recency, "a", 10), (0, None));
        assert_eq!(place(&mut recency, "b", 20), (0, None));
        assert_eq!(place(&mut recency, "b", 20), (0, None));
        assert_eq!(place(&mut recency, "c", 30), (0, Some("a".into())));
        assert_eq!(place(&mut recency, "a", 10), (2, None));
        // An old one that is seen late pushes nobody out.
        assert_eq!(place(&mut recency, "old", 5), (2, None));
        assert_eq!(place(&mut recency, "mid", 25), (1, Some("b".into())));
    }

    #[test]
    fn runs_that_left_and_runs_of_other_pipelines_do_not_count() {
        let mut recency = Recency::default();
        place(&mut recency, "a", 10);
        place(&mut recency, "b", 20);
        recency.remove(&Uid::from("b"));
        let ended = Timestamp::from_second(99).unwrap();
        recency.place(&"x".into(), series("other"), ended, 2);
        assert_eq!(place(&mut recency, "c", 30), (0, None));
        assert_eq!(place(&mut recency, "a", 10), (1, None));
        for uid in ["a", "c", "x"] {
            recency.remove(&uid.into());
        }
        assert!(recency.series.is_empty() && recency.places.is_empty());
    }
}
