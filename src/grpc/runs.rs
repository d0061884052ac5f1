//! `hindsight.v1.Runs`: questions about single runs.

mod diff;

use hindsight_proto::v1::{DiffRunsRequest, RunDiff, runs_server::Runs};
use tonic::{Request, Response, Status};

use super::ResultsServer;

#[tonic::async_trait]
impl Runs for ResultsServer {
    async fn diff_runs(
        &self,
        request: Request<DiffRunsRequest>,
    ) -> Result<Response<RunDiff>, Status> {
        self.answer("DiffRuns", request, |metadata, request| {
            diff::diff_runs(self, metadata, request)
        })
        .await
    }
}
