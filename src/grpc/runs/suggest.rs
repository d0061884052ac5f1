//! Messages of `hindsight.v1.Runs/Suggest`, to types and back.

use hindsight_proto::v1::{SuggestRequest, SuggestResponse, suggest_request::Kind};
use tonic::metadata::MetadataMap;

use super::{super::ResultsServer, list::label_keys, regressions::count};
use crate::service::{Error, SuggestAsk, Suggested};

pub(super) async fn suggest(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: SuggestRequest,
) -> Result<SuggestResponse, Error> {
    let (by, grant, of) = server.grant_list(&metadata, &request.parent).await?;
    let ask = SuggestAsk {
        what: what(request.kind(), request.label_key)?,
        prefix: request.prefix,
        limit: request.limit,
    };
    let found = server.service.suggest(&by, &grant, of.id, ask).await?;
    Ok(SuggestResponse {
        values: found.values,
        runs_read: count(found.runs_read),
        incomplete: !found.is_whole,
    })
}

fn what(kind: Kind, label_key: String) -> Result<Suggested, Error> {
    if kind != Kind::LabelValue && !label_key.is_empty() {
        return Err(Error::Invalid(
            "label_key is for the kind LABEL_VALUE alone".to_owned(),
        ));
    }
    match kind {
        Kind::Name => Ok(Suggested::Names),
        Kind::Pipeline => Ok(Suggested::Pipelines),
        Kind::Namespace => Ok(Suggested::Namespaces),
        Kind::LabelKey => Ok(Suggested::LabelKeys),
        Kind::LabelValue if label_key.is_empty() => Err(Error::Invalid(
            "label_key is missing; name the label whose values are asked for".to_owned(),
        )),
        Kind::LabelValue => {
            let keys = label_keys("label_key", vec![label_key])?;
            Ok(Suggested::LabelValues(keys.concat()))
        }
        Kind::Unspecified => Err(Error::Invalid(
            "kind is missing; want NAME, PIPELINE, NAMESPACE, LABEL_KEY or LABEL_VALUE".to_owned(),
        )),
    }
}
