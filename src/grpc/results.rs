//! The eleven methods of `tekton.results.v1alpha2.Results`.
//!
//! Names are judged before the caller is, so that a malformed name says so to anybody.

use hindsight_proto::v1alpha2::{self as pb, results_server::Results};
use prost_types::FieldMask;
use tonic::{Request, Response, Status};

use super::{ResultsServer, call::with_warnings, convert, fields, selector::selector};
use crate::service::{Error, ListRequest, RecordChange, SummaryQuery, page_size};
use hindsight_access::auth::Verb;
use hindsight_filter::model::{ParentPattern, RecordName, Resource, ResultName};

const RESULTS: Resource = Resource::Results;
const RECORDS: Resource = Resource::Records;

/// The parent given beside a resource must be the one in its name; empty asks for nothing.
fn same_parent(given: &str, named: &str) -> Result<(), Error> {
    if given.is_empty() || given == named {
        Ok(())
    } else {
        Err(Error::Invalid(format!(
            "requested parent does not match resource name: parent is `{given}`, the name says \
             `{named}`"
        )))
    }
}

/// What an update of a record does, by its mask. Fields that only the server sets, and the name
/// and etag that identify the record, may be named and change nothing.
fn change(data: Option<pb::Any>, mask: Option<FieldMask>) -> Result<RecordChange, Error> {
    let paths = mask.map(|mask| mask.paths).unwrap_or_default();
    let given = data.clone().unwrap_or_default();
    let some_text = (!given.r#type.is_empty()).then(|| given.r#type.clone());
    let some_value = (!given.value.is_empty()).then(|| given.value.clone());
    if paths.is_empty() {
        return Ok(RecordChange::Merge {
            data_type: some_text,
            value: some_value,
        });
    }
    let (mut data_type, mut value, mut whole) = (None, None, false);
    for path in &paths {
        match path.as_str() {
            "data" | "*" => whole = true,
            "data.type" => data_type = Some(given.r#type.clone()),
            "data.value" => value = Some(given.value.clone()),
            "name" | "id" | "uid" | "etag" | "created_time" | "create_time" | "updated_time"
            | "update_time" => {}
            _ => {
                return Err(Error::Invalid(format!(
                    "update_mask: `{path}` is not a field of a record; want data, data.type or \
                     data.value"
                )));
            }
        }
    }
    Ok(if whole {
        RecordChange::Replace(convert::to_payload(data))
    } else {
        RecordChange::Merge { data_type, value }
    })
}

#[tonic::async_trait]
impl Results for ResultsServer {
    async fn create_result(
        &self,
        request: Request<pb::CreateResultRequest>,
    ) -> Result<Response<pb::Result>, Status> {
        self.answer("CreateResult", request, |metadata, request| async move {
            let result = convert::required("result", request.result)?;
            let name: ResultName = convert::name("result.name", &result.name)?;
            same_parent(&request.parent, name.parent().as_str())?;
            let (by, grant) = self.grant_change(&metadata, Verb::Create, &name).await?;
            let summary = result.summary.map(convert::to_summary).transpose();
            let summary = self.service.audited(&by, Verb::Create, &name, summary);
            let summary = summary.await?;
            let stored = self
                .service
                .create_result(&by, &grant, name, result.annotations, summary);
            Ok(convert::from_result(stored.await?))
        })
        .await
    }

    async fn update_result(
        &self,
        request: Request<pb::UpdateResultRequest>,
    ) -> Result<Response<pb::Result>, Status> {
        self.answer("UpdateResult", request, |metadata, request| async move {
            let result = request.result.unwrap_or_default();
            let (field, text) = match request.name.as_str() {
                "" => ("result.name", &result.name),
                _ => ("name", &request.name),
            };
            let name: ResultName = convert::name(field, text)?;
            if !result.name.is_empty() && result.name != *text {
                return Err(Error::Invalid(format!(
                    "result.name: `{}` is another result than name, `{text}`",
                    result.name
                )));
            }
            let (by, grant) = self.grant_change(&metadata, Verb::Update, &name).await?;
            let summary = result.summary.map(convert::to_summary).transpose();
            let summary = self.service.audited(&by, Verb::Update, &name, summary);
            let summary = summary.await?;
            let etags = [request.etag.as_str(), result.etag.as_str()];
            let stored =
                self.service
                    .update_result(&by, &grant, &name, result.annotations, summary, etags);
            Ok(convert::from_result(stored.await?))
        })
        .await
    }

    async fn get_result(
        &self,
        request: Request<pb::GetResultRequest>,
    ) -> Result<Response<pb::Result>, Status> {
        self.answer("GetResult", request, |metadata, request| async move {
            let name: ResultName = convert::name("name", &request.name)?;
            let parent = ParentPattern::Exact(name.parent().clone());
            let (_by, grant) = self.grant(&metadata, Verb::Get, RESULTS, parent).await?;
            let found = self.service.get_result(&grant, &name).await?;
            Ok(convert::from_result(found))
        })
        .await
    }

    async fn delete_result(
        &self,
        request: Request<pb::DeleteResultRequest>,
    ) -> Result<Response<()>, Status> {
        self.answer("DeleteResult", request, |metadata, request| async move {
            let name: ResultName = convert::name("name", &request.name)?;
            let (by, grant) = self.grant_change(&metadata, Verb::Delete, &name).await?;
            self.service.delete_result(&by, &grant, &name).await
        })
        .await
    }

    async fn list_results(
        &self,
        request: Request<pb::ListResultsRequest>,
    ) -> Result<Response<pb::ListResultsResponse>, Status> {
        self.answer("ListResults", request, |metadata, request| async move {
            let parent: ParentPattern = convert::name("parent", request.parent.trim())?;
            let (by, grant) = self.grant(&metadata, Verb::List, RESULTS, parent).await?;
            let list = ListRequest {
                selector: selector(&metadata, request.filter)?,
                order_by: request.order_by,
                size: page_size(request.page_size)?,
                token: request.page_token,
                payloads: false,
            };
            let page = self.service.list_results(&by, &grant, list).await?;
            Ok(pb::ListResultsResponse {
                results: page.items.into_iter().map(convert::from_result).collect(),
                next_page_token: page.next,
            })
        })
        .await
    }

    async fn create_record(
        &self,
        request: Request<pb::CreateRecordRequest>,
    ) -> Result<Response<pb::Record>, Status> {
        self.answer("CreateRecord", request, |metadata, request| async move {
            let record = convert::required("record", request.record)?;
            let name: RecordName = convert::name("record.name", &record.name)?;
            same_parent(&request.parent, &name.result().to_string())?;
            let (by, grant) = self.grant_change(&metadata, Verb::Create, &name).await?;
            let data = convert::to_payload(record.data);
            let stored = self.service.create_record(&by, &grant, name, data).await?;
            Ok(convert::from_record(stored))
        })
        .await
    }

    async fn update_record(
        &self,
        request: Request<pb::UpdateRecordRequest>,
    ) -> Result<Response<pb::Record>, Status> {
        self.answer("UpdateRecord", request, |metadata, request| async move {
            let record = convert::required("record", request.record)?;
            let name: RecordName = convert::name("record.name", &record.name)?;
            let (by, grant) = self.grant_change(&metadata, Verb::Update, &name).await?;
            let change = change(record.data, request.update_mask);
            let change = self.service.audited(&by, Verb::Update, &name, change);
            let change = change.await?;
            let etags = [request.etag.as_str(), record.etag.as_str()];
            let stored = self
                .service
                .update_record(&by, &grant, &name, &change, etags);
            Ok(convert::from_record(stored.await?))
        })
        .await
    }

    async fn get_record(
        &self,
        request: Request<pb::GetRecordRequest>,
    ) -> Result<Response<pb::Record>, Status> {
        self.answer("GetRecord", request, |metadata, request| async move {
            let name: RecordName = convert::name("name", &request.name)?;
            let parent = ParentPattern::Exact(name.result().parent().clone());
            let (by, grant) = self.grant(&metadata, Verb::Get, RECORDS, parent).await?;
            let found = self.service.get_record(&by, &grant, &name).await?;
            Ok(convert::from_record(found))
        })
        .await
    }

    async fn list_records(
        &self,
        request: Request<pb::ListRecordsRequest>,
    ) -> Result<Response<pb::ListRecordsResponse>, Status> {
        self.answer("ListRecords", request, |metadata, request| async move {
            let (by, grant, of) = self.grant_list(&metadata, &request.parent).await?;
            let list = ListRequest {
                selector: selector(&metadata, request.filter)?,
                order_by: request.order_by,
                size: page_size(request.page_size)?,
                token: request.page_token,
                payloads: fields::want_payloads(&metadata),
            };
            let service = self.of_tier(&metadata)?;
            let page = service.list_records(&by, &grant, of.id, list).await?;
            let reply = pb::ListRecordsResponse {
                records: page.items.into_iter().map(convert::from_record).collect(),
                next_page_token: page.next,
            };
            Ok((reply, page.advice))
        })
        .await
        .map(with_warnings)
    }

    async fn delete_record(
        &self,
        request: Request<pb::DeleteRecordRequest>,
    ) -> Result<Response<()>, Status> {
        self.answer("DeleteRecord", request, |metadata, request| async move {
            let name: RecordName = convert::name("name", &request.name)?;
            let (by, grant) = self.grant_change(&metadata, Verb::Delete, &name).await?;
            self.service.delete_record(&by, &grant, &name).await
        })
        .await
    }

    async fn get_record_list_summary(
        &self,
        request: Request<pb::RecordListSummaryRequest>,
    ) -> Result<Response<pb::RecordListSummary>, Status> {
        self.answer(
            "GetRecordListSummary",
            request,
            |metadata, ask| async move {
                let (by, grant, of) = self.grant_list(&metadata, &ask.parent).await?;
                let query = SummaryQuery {
                    selector: selector(&metadata, ask.filter)?,
                    summary: ask.summary,
                    group_by: ask.group_by,
                    order_by: ask.order_by,
                };
                let groups = self.service.summarize_records(&by, &grant, of.id, query);
                Ok(convert::from_groups(groups.await?))
            },
        )
        .await
    }
}
