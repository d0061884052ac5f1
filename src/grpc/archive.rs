//! `hindsight.v1.Archive`: which records are in files, for programs that read those.

use hindsight_proto::{
    metadata::{DATABASE, TIER},
    v1::{self as pb, archive_server::Archive},
};
use tonic::{Request, Response, Status, metadata::MetadataMap};

use super::{ResultsServer, convert, selector::one};
use crate::service::{Error, LiveFile, Service};
use hindsight_access::auth::Verb;
use hindsight_filter::model::{ParentPattern, Resource};

/// Most files of a page.
const MOST_PAGE: usize = 1_000;

impl ResultsServer {
    /// The use-cases over the records that a list looks at, by its metadata.
    pub(super) fn of_tier(&self, metadata: &MetadataMap) -> Result<Service, Error> {
        match one(metadata, TIER)?.as_str() {
            "" => Ok(self.service.clone()),
            DATABASE => Ok(self.service.of_database()),
            other => Err(Error::Invalid(format!(
                "`{TIER}: {other}` is not known; give `{DATABASE}` for records that are not in files of the \
                 archive, or leave it out for all"
            ))),
        }
    }
}

#[tonic::async_trait]
impl Archive for ResultsServer {
    async fn list_archive_files(
        &self,
        request: Request<pb::ListArchiveFilesRequest>,
    ) -> Result<Response<pb::ListArchiveFilesResponse>, Status> {
        self.answer("ListArchiveFiles", request, |metadata, request| async move {
            let parent: ParentPattern = convert::name("parent", &request.parent)?;
            let size = match usize::try_from(request.page_size) {
                Ok(0) => MOST_PAGE,
                Ok(size) if size <= MOST_PAGE => size,
                _ => {
                    return Err(Error::Invalid(format!(
                        "page_size of {} is out of range: want 1 to {MOST_PAGE}, or 0 for {MOST_PAGE}",
                        request.page_size
                    )));
                }
            };
            let (_by, grant) = self
                .grant(&metadata, Verb::List, Resource::Records, parent)
                .await?;
            let page = self
                .service
                .list_archive_files(&grant, size, &request.page_token)
                .await?;
            Ok(pb::ListArchiveFilesResponse {
                files: page.files.into_iter().map(from_file).collect(),
                next_page_token: page.next,
                left_count: page.left,
            })
        })
        .await
    }
}

fn from_file(live: LiveFile) -> pb::ArchiveFile {
    let LiveFile { file, results, ids } = live;
    let count = |count| i64::try_from(count).unwrap_or(i64::MAX);
    pb::ArchiveFile {
        path: file.path,
        parent: file.parent.to_string(),
        begin_time: Some(convert::from_time(file.begin)),
        end_time: Some(convert::from_time(file.end)),
        bytes: count(file.bytes),
        records: count(file.records),
        results: count(results),
        result_ids: ids.into_iter().flatten().collect(),
    }
}
