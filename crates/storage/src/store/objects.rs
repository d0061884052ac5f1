//! Bodies that lie in an object store: whether they can be reached, and which are uploaded.

mod sweep;

pub(crate) use self::sweep::sweep;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::SqlStore;
use crate::{
    codec::{
        body::Packed,
        objects::{OF_ONE, Reference, Totals, without_depot},
        parallel::par_map_blocking,
        row::PreparedChange,
    },
    driver::Database,
    seam::Error,
    sql::objects as sql,
};

/// Uploads the bodies of changes that are big enough; they keep references then. What is uploaded
/// and never referred to, because the change is refused or the process dies, is noted in the
/// database already, and goes in the end.
///
/// Fails if one cannot be noted or uploaded; then nothing should be written.
pub(crate) async fn place(
    store: &SqlStore<impl Database>,
    changes: &mut [PreparedChange],
) -> Result<(), Error> {
    let Some(objects) = store.objects() else {
        return Ok(());
    };
    let above = objects.above();
    let big = |body: &&mut Packed| body.bytes.len() > above && body.object.is_none();
    let mut bodies: Vec<&mut Packed> = changes
        .iter_mut()
        .filter_map(PreparedChange::body)
        .filter(big)
        .collect();
    if bodies.is_empty() {
        return Ok(());
    }
    let bytes: Vec<Bytes> = bodies.iter().map(|body| body.bytes.clone()).collect();
    let refer = |bytes: Bytes| (Reference::new(&bytes), bytes);
    let uploads = par_map_blocking(bytes, Bytes::len, refer).await?;
    for (body, (reference, _)) in bodies.iter_mut().zip(&uploads) {
        body.externalize(reference.object, reference.write());
    }
    let references: Vec<Reference> = uploads.iter().map(|(reference, _)| *reference).collect();
    store.tell(vec![sql::expect(&references)]).await?;
    let put = |(reference, bytes): (Reference, Bytes)| objects.put(reference.object, bytes);
    stream::iter(uploads)
        .map(put)
        .buffer_unordered(OF_ONE)
        .try_collect()
        .await
}

/// Refuses a database whose objects cannot be reached: one that refers to some while no object
/// store is configured, or to those of another one than is configured. A store that does not
/// answer is no reason, because bodies in the database can be served meanwhile.
pub(crate) async fn fits(store: &SqlStore<impl Database>) -> Result<(), Error> {
    let held = store.ask(&sql::any_referenced()).await?;
    let holds = !held.is_empty();
    match store.objects() {
        None if holds => Err(without_depot(&count(store).await?)),
        None => Ok(()),
        Some(objects) => objects.know(holds).await,
    }
}

/// Above how many packed bytes a body lies outside, if any does.
pub(crate) fn above(store: &SqlStore<impl Database>) -> Option<usize> {
    store.objects().map(|objects| objects.above())
}

async fn count(store: &SqlStore<impl Database>) -> Result<Totals, Error> {
    let rows = store.ask(&sql::totals()).await?;
    sql::read_totals(&rows)
}
