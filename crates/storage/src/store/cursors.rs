//! Holding and moving the cursors of receivers.

use std::time::Duration;

use super::SqlStore;
use crate::{
    driver::Database,
    seam::{Error, FeedPosition},
    sql::cursors as sql,
};

/// The place of a cursor that `holder` holds from now on for so long; none while another does.
pub(super) async fn hold(
    store: &SqlStore<impl Database>,
    name: &str,
    holder: &str,
    time: Duration,
) -> Result<Option<FeedPosition>, Error> {
    if store.ask(&sql::place(name)).await?.is_empty() {
        let end = super::feed::end(store).await?;
        store.tell(vec![sql::create(name, end)]).await?;
    }
    let hold = sql::hold(store.dialect(), name, holder, millis(time));
    if store.tell(vec![hold]).await? == 0 {
        return Ok(None);
    }
    let rows = store.ask(&sql::place(name)).await?;
    rows.first().map(sql::place_in).transpose()
}

/// Moves a cursor that `holder` holds, for so long from now on; false if another may have it.
pub(super) async fn advance(
    store: &SqlStore<impl Database>,
    name: &str,
    holder: &str,
    place: FeedPosition,
    time: Duration,
) -> Result<bool, Error> {
    let advance = sql::advance(store.dialect(), name, holder, place, millis(time));
    Ok(store.tell(vec![advance]).await? > 0)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2)
}
