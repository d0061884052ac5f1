//! Which runs of a pipeline are drawn: the newest, those of another page, or those around one of them.

use hindsight_proto::v1::{ListRunsRequest, RunRow};

use super::super::list::newest_first;
use super::super::series::{Around, Series, asking};
use super::RUNS;
use crate::api::Refusal;
use crate::ask::Ask;
use crate::route::encoded;

/// The runs that are drawn, the newest first.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) runs: Vec<RunRow>,
    /// Where the run is that was asked for.
    pub(super) middle: Option<usize>,
    pub(super) older: Option<String>,
    pub(super) newest: Option<String>,
}

/// The newest runs, those of another page, or those around the run that the address names.
pub(super) async fn window(
    ask: &Ask,
    series: Series<'_>,
    parent: &str,
    namespace: &str,
) -> Result<Window, Refusal> {
    let page = |run: &str| {
        ask.links
            .pipeline_around(series.of, parent, namespace, series.name, run)
    };
    let (record, token) = (ask.query.get("run"), ask.query.get("page"));
    if let Some(moment) = series.moment(ask, namespace, record).await? {
        let around = series.around(ask, (parent, namespace), moment, RUNS);
        let (runs, at) = centred(around.await?, record);
        let oldest = runs.last().filter(|run| run.record != record);
        return Ok(Window {
            middle: Some(at),
            older: oldest.map(|run| page(&run.record)),
            newest: Some(page("")),
            runs,
        });
    }
    let request = ListRunsRequest {
        page_size: i32::try_from(RUNS).unwrap_or(i32::MAX),
        page_token: token.to_owned(),
        ..asking(parent, &series.query(namespace))
    };
    let found = ask.api.list_runs(request).await?;
    let mut runs = found.runs;
    newest_first(&mut runs);
    Ok(Window {
        runs,
        middle: None,
        older: (!found.next_page_token.is_empty()).then(|| {
            let page = page("");
            let next = encoded(&found.next_page_token);
            let mark = if page.contains('?') { '&' } else { '?' };
            format!("{page}{mark}page={next}")
        }),
        newest: (!token.is_empty()).then(|| page("")),
    })
}

/// As many runs as are drawn, the newest first, and the place of this one: the middle if enough are there.
fn centred(Around { before, after }: Around, record: &str) -> (Vec<RunRow>, usize) {
    let newer = after
        .len()
        .min((RUNS / 2).max(RUNS.saturating_sub(before.len())));
    let newer = after.into_iter().take(newer);
    let mut runs: Vec<_> = newer.collect();
    runs.reverse();
    runs.extend(before);
    runs.truncate(RUNS);
    let at = runs.iter().position(|run| run.record == record);
    (runs, at.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_in_the_middle_as_far_as_there_are_others() {
        let runs = |from: usize, to: usize| {
            let runs = (from..to).map(|at| RunRow {
                record: at.to_string(),
                ..RunRow::default()
            });
            runs.collect::<Vec<_>>()
        };
        for (before, after, count, at) in [
            (60, 60, 60, 30),
            (1, 60, 60, 59),
            (60, 0, 60, 0),
            (5, 3, 8, 3),
        ] {
            // The run itself is 100, those before it count down.
            let mut older = runs(101 - before, 101);
            older.reverse();
            let around = Around {
                before: older,
                after: runs(101, 101 + after),
            };
            let (window, place) = centred(around, "100");
            assert_eq!((window.len(), place), (count, at), "{before} {after}");
            let numbers: Vec<usize> = window
                .iter()
                .map(|run| run.record.parse().unwrap())
                .collect();
            assert!(numbers.is_sorted_by(|a, b| *a == b + 1), "{numbers:?}");
        }
    }
}
