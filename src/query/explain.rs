//! How a list would be answered, and what it would cost.

use std::sync::Arc;

use super::{Engine, Error, List, list::run_low_priority};
use hindsight_filter::model::Resource;
use hindsight_storage::{Estimate, ListQuery, Plan, Priority};

/// How a list would be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// What the database is asked, for people.
    pub asked: String,
    /// What is left for the server.
    pub rest: Rest,
    /// What the database says.
    pub plan: Plan,
    /// Most rows that one call may read for what is left over.
    pub scan_budget: u64,
}

/// What is left of a filter after the database answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The database answers the whole filter; the server evaluates none of it.
    Nothing,
    /// The filter is evaluated on each row that the database returns.
    Rows,
    /// Likewise, and it reads the payload of each.
    Payloads,
}

/// How sure the number of rows is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certain {
    /// The number is exact: the database counted all of these rows.
    Counted,
    /// They were counted so far and no further.
    AtLeast,
    /// The database guesses it from its statistics.
    Estimated,
}

impl Explanation {
    /// How sure the number of rows in the plan is.
    pub fn certain(&self) -> Certain {
        match self.plan.rows {
            Estimate::Exactly(_) => Certain::Counted,
            Estimate::AtLeast(_) => Certain::AtLeast,
            Estimate::About(_) => Certain::Estimated,
        }
    }

    /// Whether a call may have to read more rows than it may. It is then refused if none of
    /// those matched, and otherwise its page ends early, with a token.
    pub fn may_exceed_budget(&self) -> bool {
        self.rest != Rest::Nothing && self.plan.rows.rows() > self.scan_budget
    }
}

impl Engine {
    /// How a list of `resource` would be answered. Nothing is listed; tokens do not matter.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn explain(&self, list: List, resource: Resource) -> Result<Explanation, Error> {
        if resource == Resource::Records {
            self.store().refresh_indexes().await?;
        }
        let split = self.split(&list.filter).await?;
        let rest = match (split.residual, list.filter.needs_body()) {
            (false, _) => Rest::Nothing,
            (true, false) => Rest::Rows,
            (true, true) => Rest::Payloads,
        };
        let asked = split.condition.to_string();
        let query = ListQuery {
            limit: list.size,
            ..ListQuery::whole_rows(list.scope, split.condition, list.order, Priority::Low)
        };
        let budget = self.scan_budget();
        let store = Arc::clone(self.store());
        // Counting rows may take long.
        let plan = run_low_priority("explaining", async move {
            Ok(store
                .explain(resource, &query, budget.saturating_add(1))
                .await?)
        })
        .await?;
        Ok(Explanation {
            asked,
            rest,
            plan,
            scan_budget: budget,
        })
    }
}
