//! Work on many payloads, on threads that may block where there is much of it.

use hindsight_runtime::cores::cores;

use crate::seam::Error;

/// Above so many bytes of payload, packing and unpacking leave the async threads.
pub(crate) const BIG: usize = 64 << 10;

/// Does `work` on each item, in order; if there is much of it, on as many threads as
/// there are cores.
pub(crate) async fn par_map_blocking<T, U>(
    items: Vec<T>,
    bytes: impl Fn(&T) -> usize,
    work: impl Fn(T) -> U + Clone + Send + 'static,
) -> Result<Vec<U>, Error>
where
    T: Send + 'static,
    U: Send + 'static,
{
    if items.iter().map(bytes).sum::<usize>() <= BIG {
        return Ok(items.into_iter().map(work).collect());
    }
    let most = items.len().div_ceil(cores()).max(1);
    let mut parts = Vec::new();
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let part: Vec<T> = items.by_ref().take(most).collect();
        let work = work.clone();
        parts.push(tokio::task::spawn_blocking(move || {
            part.into_iter().map(work).collect::<Vec<U>>()
        }));
    }
    let mut done = Vec::new();
    for part in parts {
        done.extend(part.await.map_err(|e| Error::Database {
            what: "packing or unpacking payloads",
            source: e.into(),
        })?);
    }
    Ok(done)
}
