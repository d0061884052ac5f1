//! `hindsight explain`.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{Certainty, ExplainRequest, ExplainResponse, LeftOver, Listed};

use super::{
    connect::Connect,
    failure::Failure,
    list::{Asked, What},
    output,
    pager::Paging,
    place::Place,
};

/// Explain how a list would be answered: what the database is asked, and what it costs
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight explain runs -n ci --filter 'data.spec.retries > 0'
  hindsight explain records -A -l app=shop --order-by 'duration desc'
  hindsight explain results -n ci --filter 'summary.status == FAILURE'")]
pub(super) struct Explain {
    /// What would be listed
    #[arg(value_enum)]
    what: What,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    asked: Asked,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    connect: Connect,
}

impl Explain {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let (listed, filter) = match self.what {
            What::Results => (Listed::Results, self.asked.rows.filter.clone()),
            What::Runs | What::Records => (
                Listed::Records,
                self.asked.rows.record_filter(self.what == What::Runs)?,
            ),
        };
        let request = ExplainRequest {
            parent: format!("{}/results/-", self.place.parent()),
            listed: listed.into(),
            filter,
            order_by: self.asked.order_by.clone(),
            page_size: 0,
        };
        let mut queries = self.connect.client()?.queries();
        let reply = queries.explain(self.asked.rows.request(request)?).await;
        let reply = reply
            .map_err(|status| self.connect.failure(&status))?
            .into_inner();
        output::facts(&facts(&reply), &self.paging)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn facts(reply: &ExplainResponse) -> Vec<Vec<String>> {
    let left_over = match reply.left_over() {
        LeftOver::Nothing => "nothing",
        LeftOver::EachRow => "the filter, on each row",
        LeftOver::EachPayload => "the filter, on the payload of each row",
    };
    let rows = match reply.certainty() {
        Certainty::Counted => reply.rows.to_string(),
        Certainty::AtLeast => format!("{} or more", reply.rows),
        Certainty::Estimated => format!("about {}", reply.rows),
    };
    let budget = match (reply.left_over(), reply.may_exceed_budget) {
        (LeftOver::Nothing, _) => "not touched".to_owned(),
        (_, false) => format!("within the {} of one call", reply.scan_budget),
        (_, true) => format!(
            "more than the {} of one call: pages may end early, and a list that finds nothing in \
             so many rows is refused",
            reply.scan_budget
        ),
    };
    let indexes = match reply.indexes.is_empty() {
        true => "none".to_owned(),
        false => reply.indexes.join(", "),
    };
    let mut facts = vec![
        ("Database is asked", reply.asked.clone()),
        ("Left for the server", left_over.to_owned()),
        ("Indexes", indexes),
        ("Rows", rows),
        ("Scan budget", budget),
    ];
    if reply.cost > 0.0 {
        facts.push(("Cost of the first page", reply.cost.to_string()));
    }
    facts.push(("Plan", reply.plan.join("\n")));
    facts
        .into_iter()
        .map(|(name, value)| vec![format!("{name}:"), value])
        .collect()
}
