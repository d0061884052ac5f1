//! A look at some of the rows that a filter was evaluated on, to tell a question to which the answer
//! is "none" from one that was misspelt.

use std::{num::NonZeroU32, sync::Arc};

use hindsight_run::json;

use super::{Engine, Error, list::run_low_priority};
use hindsight_filter::model::ResultPattern;
use hindsight_filter::{
    Filter, Order,
    condition::{Ability, Column, Test},
};
use hindsight_storage::{ListQuery, Priority};

/// How many records are looked at: the newest of those that the database returned.
const LOOKED_AT: NonZeroU32 = NonZeroU32::new(50).expect("50 is not 0");
/// After how many bytes of payloads no more are read.
const MOST_BYTES: usize = 4 << 20;

impl Engine {
    /// What is probably wrong with `filter`, which matches no record of `scope`.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn advice(
        &self,
        scope: ResultPattern,
        filter: Arc<Filter>,
    ) -> Result<Vec<String>, Error> {
        // An index of a part of payloads gives only values of the type that is asked for.
        let ability = |test: &Test| match test.column {
            Column::Indexed(_) => Ability::None,
            _ => self.store().ability(test),
        };
        let split = filter.split(&ability);
        if !split.residual || !filter.needs_body() {
            return Ok(Vec::new());
        }
        let query = ListQuery {
            limit: LOOKED_AT,
            max_bytes: Some(MOST_BYTES),
            ..ListQuery::whole_rows(scope, split.condition, Order::newest_first(), Priority::Low)
        };
        let engine = self.clone();
        let work = async move {
            let records = engine.store().list_records(&query).await?;
            let payloads = records
                .iter()
                .filter_map(|listed| listed.item.data.as_ref());
            let payloads = payloads.filter_map(|data| json::parse(&data.value).ok());
            Ok(filter.advice(&payloads.collect::<Vec<_>>()))
        };
        run_low_priority("advising", Box::pin(work)).await
    }
}
