//! Changes that are wanted each by itself, made ready together.

use std::sync::Arc;

use super::{
    Batch, Change, Error, Store, objects, pieces,
    promoted::{self, Desk, Known},
    row::{self, Ready},
};

/// Makes changes ready, which costs most of the time, on all cores; has `write` do each by
/// itself; and does again the few whose piece was deleted meanwhile.
pub(super) async fn commit_each<S, W>(
    store: &S,
    changes: &[Change],
    write: impl FnOnce(Vec<Ready>) -> W + Send,
) -> Vec<Result<(), Error>>
where
    S: Store + Desk,
    W: Future<Output = Vec<Result<(), Error>>> + Send,
{
    let batch = Batch {
        changes: changes.to_vec(),
    };
    let pieces = store.packed();
    let ready = match promoted::known(store).await {
        Ok(known) => ready(store, &batch, &known).await,
        Err(error) => Err(error),
    };
    let ready = match ready {
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

/// Changes with their big bodies uploaded.
async fn ready(store: &impl Desk, batch: &Batch, known: &Arc<Known>) -> Result<Vec<Ready>, Error> {
    let above = objects::above(store);
    let mut ready = row::ready(batch, Some(store.packed()), store, known, above).await?;
    objects::place(store, &mut ready).await?;
    Ok(ready)
}
