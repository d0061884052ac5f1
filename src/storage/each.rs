//! Changes that are wanted each by itself, made ready together.

use super::{
    Batch, Change, Error, Store,
    pieces::{self, Pieces, Shelf},
    row::{self, Ready},
};

/// Makes changes ready, which costs most of the time, on all cores; has `write` do each by
/// itself; and does again the few whose piece was deleted meanwhile.
pub(super) async fn commit_each<S, W>(
    store: &S,
    pieces: &Pieces,
    changes: &[Change],
    write: impl FnOnce(Vec<Ready>) -> W + Send,
) -> Vec<Result<(), Error>>
where
    S: Store + Shelf,
    W: Future<Output = Vec<Result<(), Error>>> + Send,
{
    let batch = Batch {
        changes: changes.to_vec(),
    };
    let ready = match row::ready(&batch, Some(pieces), store).await {
        Ok(ready) => ready,
        Err(error) => return changes.iter().map(|_| Err(error.repeated())).collect(),
    };
    let mut outcomes = write(ready).await;
    for (outcome, change) in outcomes.iter_mut().zip(batch.changes) {
        if outcome.as_ref().is_err_and(pieces::is_gone) {
            pieces.forget();
            *outcome = store.commit(&change.into()).await;
        }
    }
    outcomes
}
