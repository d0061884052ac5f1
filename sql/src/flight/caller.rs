//! Who calls: the token that is shown to the Hindsight server, and the parents that are asked for.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hindsight_client::Client;
use hindsight_proto::v1::ListRunsRequest;
use tonic::{Code, Status, metadata::MetadataMap};

use crate::{Engine, Scope};

/// Parents between commas, beside which nothing is read.
const PARENT: &str = "hindsight-parent";

/// Clients of Go leave the padding out, others do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A caller of Flight SQL.
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) scope: Scope,
}

impl Caller {
    /// The caller of these headers, of whom nothing is known yet.
    pub(super) fn of(
        engine: &Engine,
        usual: &Scope,
        headers: &MetadataMap,
    ) -> Result<Self, Status> {
        let connect = engine.source().connect().ok_or_else(|| {
            Status::failed_precondition(
                "files without a server are not served: nothing would say who may read them",
            )
        })?;
        let client = connect
            .client_for(bearer(headers)?)
            .map_err(|failure| Status::unauthenticated(failure.to_string()))?;
        let scope = scope(headers)?.unwrap_or_else(|| usual.clone());
        Ok(Self { client, scope })
    }

    /// Fails if the Hindsight server does not know the caller. What they may read is asked with each statement.
    pub(super) async fn check(&self) -> Result<(), Status> {
        let parent = match &self.scope {
            Scope::Parents(parents) => parents.first().map(ToString::to_string),
            Scope::All => None,
        };
        let request = ListRunsRequest {
            parent: format!("{}/results/-", parent.as_deref().unwrap_or("-")),
            page_size: 1,
            ..ListRunsRequest::default()
        };
        match self.client.runs().list_runs(request).await {
            Err(status) if status.code() != Code::PermissionDenied => {
                Err(Status::new(status.code(), status.message()))
            }
            _ => Ok(()),
        }
    }
}

fn header<'h>(headers: &'h MetadataMap, name: &str) -> Result<Option<&'h str>, Status> {
    let value = headers.get(name).map(|value| value.to_str());
    value
        .transpose()
        .map_err(|_not_text| Status::invalid_argument(format!("the header `{name}` is not text")))
}

fn bearer(headers: &MetadataMap) -> Result<Option<String>, Status> {
    let Some(given) = header(headers, "authorization")? else {
        return Ok(None);
    };
    let of = |scheme: &str| {
        let (found, value) = given.trim().split_once(' ')?;
        found.eq_ignore_ascii_case(scheme).then(|| value.trim())
    };
    match of("bearer") {
        Some(token) if !token.is_empty() => Ok(Some(token.to_owned())),
        _ => Err(Status::unauthenticated(
            "`authorization` is not `Bearer TOKEN`; connect with a token of the Hindsight server",
        )),
    }
}

/// The password of a handshake, which is a token. Clients that know users alone send it as the password of any user.
pub(super) fn password(headers: &MetadataMap) -> Result<String, Status> {
    let wrong = || {
        Status::unauthenticated(
            "a handshake wants `authorization: Basic`, with a token of the Hindsight server as the password of any \
             user",
        )
    };
    let given = header(headers, "authorization")?.ok_or_else(wrong)?;
    if let Ok(Some(token)) = bearer(headers) {
        return Ok(token);
    }
    let (scheme, encoded) = given.trim().split_once(' ').ok_or_else(wrong)?;
    let decoded = BASE64.decode(encoded.trim()).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.as_deref().and_then(|text| text.split_once(':')) {
        Some((_, password)) if scheme.eq_ignore_ascii_case("basic") && !password.is_empty() => {
            Ok(password.to_owned())
        }
        _ => Err(wrong()),
    }
}

fn scope(headers: &MetadataMap) -> Result<Option<Scope>, Status> {
    let Some(given) = header(headers, PARENT)? else {
        return Ok(None);
    };
    let parents = given.split(',').map(|parent| parent.trim().parse());
    let parents: Result<Vec<_>, _> = parents.collect();
    let parents = parents
        .map_err(|error| Status::invalid_argument(format!("the header `{PARENT}`: {error}")))?;
    Ok(Some(Scope::Parents(parents)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> MetadataMap {
        let mut headers = MetadataMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn a_token_is_a_bearer_or_the_password_of_a_handshake() {
        let of = |value| bearer(&headers("authorization", value)).ok();
        assert_eq!(of("Bearer abc"), Some(Some("abc".to_owned())));
        assert_eq!(of("bearer  abc "), Some(Some("abc".to_owned())));
        assert_eq!(of("Basic eDp5"), None);
        assert_eq!(bearer(&MetadataMap::new()).unwrap(), None);
        let of = |value| password(&headers("authorization", value)).ok();
        assert_eq!(of("Basic eDp5"), Some("y".to_owned()));
        assert_eq!(of("Basic eDp5eg=="), Some("yz".to_owned()));
        assert_eq!(of("Basic eDp5eg"), Some("yz".to_owned()));
        assert_eq!(of("Bearer abc"), Some("abc".to_owned()));
        assert_eq!(of("Basic eDo="), None);
        assert_eq!(of("Basic !"), None);
    }

    #[test]
    fn parents_are_named_between_commas() {
        let of = |value| scope(&headers(PARENT, value));
        let wanted = Scope::Parents(vec![
            "ci".parse().unwrap(),
            "cluster/e/namespace/x".parse().unwrap(),
        ]);
        assert_eq!(of("ci, cluster/e/namespace/x").unwrap(), Some(wanted));
        assert!(of("ci,").is_err());
    }
}
