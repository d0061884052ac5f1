//! `hindsight.v1.Runs`: questions about runs.

mod diff;
mod failure;
mod flaky;
mod list;
mod regressions;
mod suggest;
mod tree;
mod watch;

use hindsight_proto::v1::{
    DiffRunsRequest, ExplainFailureRequest, FailureExplanation, GetRunTreeRequest,
    ListFlakyRequest, ListFlakyResponse, ListRegressionsRequest, ListRegressionsResponse,
    ListRunsRequest, ListRunsResponse, RunDiff, RunTree, SuggestRequest, SuggestResponse,
    WatchRunsRequest, runs_server::Runs,
};
use tonic::{Request, Response, Status};

use super::ResultsServer;

#[tonic::async_trait]
impl Runs for ResultsServer {
    async fn list_runs(
        &self,
        request: Request<ListRunsRequest>,
    ) -> Result<Response<ListRunsResponse>, Status> {
        self.answer("ListRuns", request, |metadata, request| {
            list::list_runs(self, metadata, request)
        })
        .await
    }

    async fn get_run_tree(
        &self,
        request: Request<GetRunTreeRequest>,
    ) -> Result<Response<RunTree>, Status> {
        self.answer("GetRunTree", request, |metadata, request| {
            tree::get_run_tree(self, metadata, request)
        })
        .await
    }

    async fn diff_runs(
        &self,
        request: Request<DiffRunsRequest>,
    ) -> Result<Response<RunDiff>, Status> {
        self.answer("DiffRuns", request, |metadata, request| {
            diff::diff_runs(self, metadata, request)
        })
        .await
    }

    async fn explain_failure(
        &self,
        request: Request<ExplainFailureRequest>,
    ) -> Result<Response<FailureExplanation>, Status> {
        self.answer("ExplainFailure", request, |metadata, request| {
            failure::explain_failure(self, metadata, request)
        })
        .await
    }

    async fn list_regressions(
        &self,
        request: Request<ListRegressionsRequest>,
    ) -> Result<Response<ListRegressionsResponse>, Status> {
        self.answer("ListRegressions", request, |metadata, request| {
            regressions::list_regressions(self, metadata, request)
        })
        .await
    }

    async fn list_flaky(
        &self,
        request: Request<ListFlakyRequest>,
    ) -> Result<Response<ListFlakyResponse>, Status> {
        self.answer("ListFlaky", request, |metadata, request| {
            flaky::list_flaky(self, metadata, request)
        })
        .await
    }

    async fn suggest(
        &self,
        request: Request<SuggestRequest>,
    ) -> Result<Response<SuggestResponse>, Status> {
        self.answer("Suggest", request, |metadata, request| {
            suggest::suggest(self, metadata, request)
        })
        .await
    }

    type WatchRunsStream = watch::Events;

    async fn watch_runs(
        &self,
        request: Request<WatchRunsRequest>,
    ) -> Result<Response<Self::WatchRunsStream>, Status> {
        self.answer("WatchRuns", request, |metadata, request| {
            watch::watch_runs(self, metadata, request)
        })
        .await
    }
}
