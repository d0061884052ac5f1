//! Pipelines of a server, over its REST API: that of Kubeflow, or one of these.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use futures::StreamExt as _;
use hindsight_run::json;
use hindsight_runtime::error::report;
use http::{
    HeaderValue, Request, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs as provider};
use serde_json::Value;
use tokio::time::timeout;

use super::{PAGE, Source};
use crate::{
    model::{Pipeline, PipelineVersion, Spec, Status, Tags},
    spec::Documents,
};

/// Most bytes of an answer.
const LARGEST: usize = 256 << 20;

/// Time for an answer.
const DEADLINE: Duration = Duration::from_secs(60);

/// Why a server cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum RestError {
    /// The address is none.
    #[error("`{0}` is not the address of a server; want `http://HOST:PORT` or `https://HOST:PORT`")]
    Address(String),
    /// What it is to be trusted by cannot be used.
    #[error("certificate authorities cannot be used: {0}")]
    Trust(String),
    /// The token cannot be sent.
    #[error("the token is not text that a header can have")]
    Token,
}

/// A server of `v2beta1` pipelines, asked by REST.
pub struct Rest {
    client: legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    base: String,
    authorization: Option<HeaderValue>,
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl Rest {
    /// The server at an address, which may have a path. It is trusted by the authorities of the system, or by those
    /// in `ca`, which is PEM.
    ///
    /// # Errors
    /// If one of these cannot be used.
    pub fn new(url: &str, token: Option<&str>, ca: Option<&[u8]>) -> Result<Self, RestError> {
        let address = || RestError::Address(url.to_owned());
        let uri: Uri = url.parse().map_err(|_error| address())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.query().is_some() {
            return Err(address());
        }
        let builder = HttpsConnectorBuilder::new();
        let builder = match ca {
            Some(pem) => builder.with_tls_config(trusting(pem)?),
            None => builder
                .with_provider_and_native_roots(provider::default_provider())
                .map_err(|error| RestError::Trust(report(&error)))?,
        };
        let authorization = token.map(|token| {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value = value.map_err(|_error| RestError::Token)?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(Self {
            client: legacy::Client::builder(TokioExecutor::new())
                .build(builder.https_or_http().enable_http1().build()),
            base: url.trim_end_matches('/').to_owned(),
            authorization: authorization.transpose()?,
        })
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, String> {
        let query = query.iter().filter(|(_, value)| !value.is_empty());
        let query: Vec<_> = query
            .map(|(key, value)| format!("{key}={}", escaped(value)))
            .collect();
        let uri = format!(
            "{}/apis/v2beta1/pipelines{path}?{}",
            self.base,
            query.join("&")
        );
        let mut request = Request::get(&uri).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request
            .body(Empty::new())
            .map_err(|error| format!("{uri}: {error}"))?;
        let answer = async {
            let answer = self
                .client
                .request(request)
                .await
                .map_err(|error| report(&error))?;
            let status = answer.status();
            let mut bytes = Vec::new();
            let mut body = answer.into_body().into_data_stream();
            while let Some(part) = body.next().await {
                bytes.extend_from_slice(&part.map_err(|error| report(&error))?);
                if bytes.len() > LARGEST {
                    return Err(format!("more than {LARGEST} bytes"));
                }
            }
            let answer = json::parse(&bytes);
            if !status.is_success() {
                let message = answer
                    .ok()
                    .and_then(|answer| answer["message"].as_str().map(str::to_owned));
                return Err(format!("{status}: {}", message.unwrap_or_default()));
            }
            answer.map_err(|error| format!("not JSON: {error}"))
        };
        let seconds = DEADLINE.as_secs();
        let answer = timeout(DEADLINE, answer).await;
        let answer = answer.map_err(|_elapsed| format!("{uri}: nothing within {seconds} s"))?;
        answer.map_err(|why| format!("{uri}: {why}"))
    }
}

fn trusting(pem: &[u8]) -> Result<ClientConfig, RestError> {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};
    let refused = |error: &dyn fmt::Display| RestError::Trust(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| refused(&error))?;
        roots.add(certificate).map_err(|error| refused(&error))?;
    }
    if roots.is_empty() {
        return Err(RestError::Trust(
            "there is no certificate in PEM".to_owned(),
        ));
    }
    let config = ClientConfig::builder_with_provider(provider::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&error))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[async_trait]
impl Source for Rest {
    async fn pipelines(
        &self,
        namespace: &str,
        token: &str,
    ) -> Result<(Vec<Pipeline>, String), String> {
        let size = PAGE.to_string();
        let query = [
            ("page_size", size.as_str()),
            ("page_token", token),
            ("namespace", namespace),
        ];
        let answer = self.get("", &query).await?;
        let items = answer["pipelines"].as_array().into_iter().flatten();
        Ok((
            items.map(pipeline).collect(),
            text(&answer["next_page_token"]),
        ))
    }

    async fn versions(
        &self,
        pipeline_id: &str,
        token: &str,
    ) -> Result<(Vec<PipelineVersion>, String), String> {
        let path = format!("/{}/versions", escaped(pipeline_id));
        let size = PAGE.to_string();
        let query = [("page_size", size.as_str()), ("page_token", token)];
        let answer = self.get(&path, &query).await?;
        let items = answer["pipeline_versions"].as_array().into_iter().flatten();
        Ok((
            items.map(version).collect(),
            text(&answer["next_page_token"]),
        ))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn tags(item: &Value) -> Tags {
    let tags = item["tags"].as_object().into_iter().flatten();
    tags.map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

fn time(item: &Value) -> Timestamp {
    let text = item["created_at"].as_str().unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// The first of both texts that is not empty.
fn either(first: &Value, second: &Value) -> String {
    match text(first) {
        empty if empty.is_empty() => text(second),
        first => first,
    }
}

fn pipeline(item: &Value) -> Pipeline {
    Pipeline {
        id: text(&item["pipeline_id"]),
        namespace: text(&item["namespace"]),
        name: either(&item["name"], &item["display_name"]),
        display_name: either(&item["display_name"], &item["name"]),
        description: text(&item["description"]),
        tags: tags(item),
        created_at: time(item),
        original_id: None,
    }
}

fn version(item: &Value) -> PipelineVersion {
    PipelineVersion {
        id: text(&item["pipeline_version_id"]),
        pipeline_id: text(&item["pipeline_id"]),
        name: either(&item["name"], &item["display_name"]),
        display_name: either(&item["display_name"], &item["name"]),
        description: text(&item["description"]),
        tags: tags(item),
        created_at: time(item),
        package_url: text(&item["package_url"]["pipeline_url"]),
        code_source_url: text(&item["code_source_url"]),
        status: Status::Ready,
        spec: spec(item),
        original_id: None,
    }
}

/// The documents of a version. What this server would refuse cannot be exported.
fn spec(item: &Value) -> Result<Spec, String> {
    if let Some(error) = item["error"]["message"].as_str() {
        return Err(error.to_owned());
    }
    let Spec { pipeline, platform } = Spec::of_shown(item["pipeline_spec"].clone());
    let documents = Documents::of(&pipeline, platform.as_ref());
    documents
        .map(Spec::from)
        .map_err(|invalid| invalid.to_string())
}
