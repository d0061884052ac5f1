//! Writing: big bodies are uploaded before the rows that refer to them are written.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::{Reference, depot::OF_ONE};
use crate::{
    Error,
    body::Packed,
    driver::Database,
    row::{Ready, in_parts},
    sql::objects as sql,
    store::SqlStore,
};

/// Uploads the bodies of changes that are big enough; they keep references then. What is uploaded
/// and never referred to, because the change is refused or the process dies, is noted in the
/// database already, and goes in the end.
///
/// # Errors
/// If one cannot be noted or uploaded; then nothing should be written.
pub(crate) async fn place(
    store: &SqlStore<impl Database>,
    changes: &mut [Ready],
) -> Result<(), Error> {
    let Some(objects) = store.objects() else {
        return Ok(());
    };
    let above = objects.above();
    let big = |body: &&mut Packed| body.bytes.len() > above && body.object.is_none();
    let mut bodies: Vec<&mut Packed> = changes
        .iter_mut()
        .filter_map(Ready::body)
        .filter(big)
        .collect();
    if bodies.is_empty() {
        return Ok(());
    }
    let bytes: Vec<Bytes> = bodies.iter().map(|body| body.bytes.clone()).collect();
    let refer = |bytes: Bytes| (Reference::new(&bytes), bytes);
    let uploads = in_parts(bytes, Bytes::len, refer).await?;
    for (body, (reference, _)) in bodies.iter_mut().zip(&uploads) {
        body.lie_in(reference.object, reference.write());
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
