//! Uploads of packages: a form with a file, and what is said of it in the query.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header},
    routing::post,
};
use futures::StreamExt as _;
use hindsight_kfp::{
    AskedPipeline, AskedVersion,
    download::File,
    model::Tags,
    package::{LARGEST, check_size},
};
use hindsight_proto::metadata::REQUEST_ID;
use hindsight_transcode::{Rest, call_metadata};
use multer::Multipart;
use serde_json::json;
use tonic::{Code, Status, metadata::MetadataMap};

use crate::grpc::{KfpServer, UploadedPipeline, UploadedVersion};

const PIPELINES: &str = "/apis/v2beta1/pipelines";
/// The part of the form that is read.
const FILE: &str = "uploadfile";
/// What names and boundaries of a form may take beside the file.
const FORM: usize = 64 << 10;
/// Most parts of a form.
const PARTS: usize = 16;

/// Why nothing was created.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    message: &'static str,
    details: String,
}

/// What is said in the texts that users read.
#[derive(Debug, Clone, Copy)]
struct Words {
    failed: &'static str,
    no_file: &'static str,
}

const PIPELINE: Words = Words {
    failed: "Failed to create a pipeline and a pipeline version",
    no_file: "Failed to read pipeline from file",
};

const VERSION: Words = Words {
    failed: "Failed to create a pipeline version",
    no_file: "Failed to create a pipeline version",
};

impl Refused {
    fn invalid(message: &'static str, details: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            message,
            details: details.into(),
        }
    }

    /// A refusal of the call that an upload is.
    fn of(status: &Status, message: &'static str) -> Self {
        let http = match status.code() {
            // Of a version: there is no such pipeline.
            Code::NotFound => 400,
            code => hindsight_runtime::error::http_status(code as i32),
        };
        Self {
            status: StatusCode::from_u16(http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            message,
            details: status.message().to_owned(),
        }
    }

    fn into_response(self) -> Response<Body> {
        let body = json!({ "error_message": self.message, "error_details": self.details });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// Adds uploads to what `rest` answers. Their bodies were charged to the caller before.
pub(in crate::app) fn uploads(
    http: Router,
    server: &KfpServer,
    rest: &Rest,
    most: Duration,
) -> Router {
    let (kfp, answers) = (server.clone(), rest.clone());
    let pipeline = move |request: Request<Body>| {
        let (kfp, answers) = (kfp.clone(), answers.clone());
        async move {
            let made = within(most, PIPELINE, pipeline(&kfp, request)).await;
            answer(&answers, PIPELINES, made)
        }
    };
    let (kfp, answers) = (server.clone(), rest.clone());
    let version = move |request: Request<Body>| {
        let (kfp, answers) = (kfp.clone(), answers.clone());
        async move {
            let made = within(most, VERSION, version(&kfp, request)).await;
            answer(&answers, &format!("{PIPELINES}/-/versions"), made)
        }
    };
    http.route(&format!("{PIPELINES}/upload"), post(pipeline))
        .route(&format!("{PIPELINES}/upload_version"), post(version))
}

async fn within<T>(
    most: Duration,
    words: Words,
    work: impl Future<Output = Result<T, Refused>>,
) -> Result<T, Refused> {
    let done = tokio::time::timeout(most, work).await;
    done.unwrap_or_else(|_elapsed| {
        Err(Refused {
            status: StatusCode::GATEWAY_TIMEOUT,
            message: words.failed,
            details: format!("it was not done within {most:?} (request_timeout)"),
        })
    })
}

fn answer(rest: &Rest, path: &str, made: Result<Vec<u8>, Refused>) -> Response<Body> {
    match made {
        Ok(message) => rest.answer_of(&Method::POST, path, message.into()),
        Err(refused) => refused.into_response(),
    }
}

async fn pipeline(kfp: &KfpServer, request: Request<Body>) -> Result<Vec<u8>, Refused> {
    let words = PIPELINE;
    let mut query = query(&request);
    let metadata = metadata(request.headers());
    let tags = tags(query.remove("tags"))?;
    let file = file(request, words).await?;
    let mut text = |name: &str| query.remove(name).unwrap_or_default();
    let uploaded = UploadedPipeline {
        pipeline: AskedPipeline {
            namespace: text("namespace"),
            name: text("name"),
            display_name: text("display_name"),
            description: text("description"),
            tags,
        },
        code_source_url: text("code_source_url"),
        file,
    };
    let made = kfp.upload(metadata, uploaded).await;
    made.map_err(|status| Refused::of(&status, words.failed))
}

async fn version(kfp: &KfpServer, request: Request<Body>) -> Result<Vec<u8>, Refused> {
    let words = VERSION;
    let mut query = query(&request);
    let metadata = metadata(request.headers());
    let pipeline_id = query.remove("pipelineid").unwrap_or_default();
    if pipeline_id.is_empty() {
        let why = "the query has no pipelineid; name the pipeline";
        return Err(Refused::invalid(words.failed, why));
    }
    let tags = tags(query.remove("tags"))?;
    let file = file(request, words).await?;
    let mut text = |name: &str| query.remove(name).unwrap_or_default();
    let uploaded = UploadedVersion {
        pipeline_id,
        version: AskedVersion {
            name: text("name"),
            display_name: text("display_name"),
            description: text("description"),
            tags,
            code_source_url: text("code_source_url"),
        },
        file,
    };
    let made = kfp.upload_version(metadata, uploaded).await;
    made.map_err(|status| Refused::of(&status, words.failed))
}

/// The parameters of a query; of several of one name the first.
fn query(request: &Request<Body>) -> BTreeMap<String, String> {
    let mut given = BTreeMap::new();
    let query = request.uri().query().unwrap_or_default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        given
            .entry(name.into_owned())
            .or_insert_with(|| value.into_owned());
    }
    given
}

fn metadata(headers: &HeaderMap) -> MetadataMap {
    let mut metadata = call_metadata(headers);
    if let Some(id) = headers.get(REQUEST_ID) {
        metadata.insert(REQUEST_ID, id.clone());
    }
    MetadataMap::from_headers(metadata)
}

fn tags(text: Option<String>) -> Result<Tags, Refused> {
    const WANT: &str =
        "Failed to parse tags query parameter. Expected JSON object with string keys and values";
    match text.as_deref() {
        None | Some("") => Ok(Tags::new()),
        Some(text) => {
            serde_json::from_str(text).map_err(|error| Refused::invalid(WANT, error.to_string()))
        }
    }
}

/// The file of a form.
async fn file(request: Request<Body>, words: Words) -> Result<File, Refused> {
    let refused = |why: String| Refused::invalid(words.no_file, why);
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(kind).map_err(|_other| {
        refused(format!(
            "the content type is `{kind}`; send a multipart/form-data form with a file {FILE}"
        ))
    })?;
    let mut came = 0_usize;
    let body = request.into_body().into_data_stream().map(move |part| {
        let part = part.map_err(std::io::Error::other)?;
        came += part.len();
        match came > LARGEST + FORM {
            true => Err(std::io::Error::other(TooLarge)),
            false => Ok(part),
        }
    });
    let mut form = Multipart::new(body, boundary);
    let broken = |error: multer::Error| refused(why(&error));
    for _ in 0..PARTS {
        let Some(mut part) = form.next_field().await.map_err(broken)? else {
            break;
        };
        if part.name() != Some(FILE) {
            continue;
        }
        let Some(name) = part.file_name().map(str::to_owned) else {
            return Err(refused(format!(
                "the part {FILE} of the form has no file name"
            )));
        };
        let mut bytes = Vec::new();
        while let Some(chunk) = part.chunk().await.map_err(broken)? {
            check_size(bytes.len() + chunk.len()).map_err(|error| refused(error.to_string()))?;
            bytes.extend_from_slice(&chunk);
        }
        return Ok(File { name, bytes });
    }
    Err(refused(format!("the form has no file {FILE}")))
}

#[derive(Debug, thiserror::Error)]
#[error("File size too large. Maximum supported size: {LARGEST}")]
struct TooLarge;

fn why(error: &multer::Error) -> String {
    hindsight_runtime::error::report(error)
}
