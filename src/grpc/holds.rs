//! `hindsight.v1.Holds`: results that retention leaves alone.

use std::num::NonZeroU32;

use hindsight_proto::v1::{self as pb, holds_server::Holds};
use tonic::{Request, Response, Status};

use super::{ResultsServer, convert};
use crate::service::Error;
use hindsight_access::auth::Verb;
use hindsight_filter::model::{ParentPattern, Resource, ResultName};
use hindsight_storage::Hold;

/// Holds of a page where the request does not say.
const USUAL_PAGE: i32 = 100;
/// Most holds of one.
const MOST_PAGE: i32 = 1_000;

#[tonic::async_trait]
impl Holds for ResultsServer {
    async fn create_hold(
        &self,
        request: Request<pb::CreateHoldRequest>,
    ) -> Result<Response<pb::Hold>, Status> {
        self.answer("CreateHold", request, |metadata, request| async move {
            let name: ResultName = convert::name("result", &request.result)?;
            let (by, grant) = self.grant_change(&metadata, Verb::Update, &name).await?;
            let expires = request.expire_time;
            let expires = expires.map(|time| convert::to_time("expire_time", time));
            let expires = expires.transpose()?;
            let hold = self
                .service
                .create_hold(&by, &grant, name, request.reason, expires);
            Ok(from_hold(hold.await?))
        })
        .await
    }

    async fn delete_hold(
        &self,
        request: Request<pb::DeleteHoldRequest>,
    ) -> Result<Response<()>, Status> {
        self.answer("DeleteHold", request, |metadata, request| async move {
            let name: ResultName = convert::name("result", &request.result)?;
            let (by, grant) = self.grant_change(&metadata, Verb::Update, &name).await?;
            self.service.delete_hold(&by, &grant, name).await
        })
        .await
    }

    async fn list_holds(
        &self,
        request: Request<pb::ListHoldsRequest>,
    ) -> Result<Response<pb::ListHoldsResponse>, Status> {
        self.answer("ListHolds", request, |metadata, request| async move {
            let parent: ParentPattern = convert::name("parent", &request.parent)?;
            let size = match request.page_size {
                0 => USUAL_PAGE,
                size => size,
            };
            let within = (1..=MOST_PAGE).contains(&size);
            let size = u32::try_from(size).ok().filter(|_| within);
            let size = size.and_then(NonZeroU32::new).ok_or_else(|| {
                Error::Invalid(format!(
                    "page_size of {} is out of range: want 1 to {MOST_PAGE}, or 0 for {USUAL_PAGE}",
                    request.page_size
                ))
            })?;
            let (_by, grant) = self
                .grant(&metadata, Verb::List, Resource::Results, parent)
                .await?;
            let page = self.service.list_holds(&grant, size, &request.page_token);
            let page = page.await?;
            Ok(pb::ListHoldsResponse {
                holds: page.holds.into_iter().map(from_hold).collect(),
                next_page_token: page.next,
            })
        })
        .await
    }
}

fn from_hold(hold: Hold) -> pb::Hold {
    pb::Hold {
        result: hold.result.to_string(),
        reason: hold.reason,
        caller: hold.caller,
        create_time: Some(convert::from_time(hold.create_time)),
        expire_time: hold.expire_time.map(convert::from_time),
    }
}
