//! Answers as they are sent: pages, files, ways to other pages, cookies.

use std::convert::Infallible;
use std::future::ready;
use std::io::{self, Write as _};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use flate2::{Compression, write::GzEncoder};
use futures::stream::{self, Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};

use crate::ask::Ask;
use crate::assets::{hex, packed};
use crate::headers::Content;
use crate::pages::{self, Begun, Form, LogFile, Page, Payload};
use crate::turns::Turn;
use crate::web::Answered;

/// What an answer depends on beside its address.
const VARY: &str = "accept-encoding, authorization, cookie";
/// Pages below this size are sent as they are.
const PACKED_FROM: usize = 1 << 10;

pub(super) fn see(location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

pub(super) fn set_cookie(response: &mut Response<Body>, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT_ENCODING);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| {
        accept.split(',').any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim() == "gzip" && !weight.replace(' ', "").starts_with("q=0")
        })
    })
}

/// A page as it is sent: compressed, and not again if the browser has it.
pub(super) fn sent(page: Page, headers: &HeaderMap) -> Response<Body> {
    let Page { status, html, kind } = page;
    let tag = format!("W/\"{}\"", hex(&Sha256::digest(&html)[..12]));
    let known = headers.get(header::IF_NONE_MATCH);
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, kind.media())
        .extension(kind.content())
        .header(header::ETAG, &tag)
        .header(header::VARY, VARY);
    let is_known = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let body = if is_known && status == StatusCode::OK {
        response = response.status(StatusCode::NOT_MODIFIED);
        Body::empty()
    } else {
        response = response.status(status);
        if html.len() >= PACKED_FROM && takes_gzip(headers) {
            response = response.header(header::CONTENT_ENCODING, "gzip");
            Body::from(packed(html.as_bytes(), Compression::fast()))
        } else {
            Body::from(html)
        }
    };
    response.body(body).unwrap_or_default()
}

/// A page of which the beginning is sent at once. The turn ends with the page, and the page is no longer made once
/// the browser goes away.
pub(super) fn begun(page: Begun, ask: &Ask, turn: Turn, headers: &HeaderMap) -> Response<Body> {
    let ask = ask.clone();
    let whole = async move {
        let page = page
            .whole
            .await
            .unwrap_or_else(|fault| pages::error(&ask, &fault));
        drop(turn);
        page.rest()
    };
    let texts = stream::once(ready(page.head)).chain(stream::once(whole));
    let packs = takes_gzip(headers);
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, Form::Html.media())
        .extension(Form::Html.content())
        .extension(Answered)
        .header(header::VARY, VARY);
    let body = match packs {
        true => {
            response = response.header(header::CONTENT_ENCODING, "gzip");
            Body::from_stream(packed_one_by_one(texts))
        }
        false => Body::from_stream(texts.map(Ok::<_, Infallible>)),
    };
    response.body(body).unwrap_or_default()
}

/// Two texts as one file of gzip, the first as soon as it is there.
fn packed_one_by_one(
    texts: impl Stream<Item = String> + Send + 'static,
) -> impl Stream<Item = io::Result<Vec<u8>>> + Send {
    let packer = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = texts.map(Some).chain(stream::once(ready(None)));
    packed.scan(packer, |packer, text| {
        let written = match text {
            Some(text) => packer
                .write_all(text.as_bytes())
                .and_then(|()| packer.flush()),
            None => packer.try_finish(),
        };
        ready(Some(written.map(|()| std::mem::take(packer.get_mut()))))
    })
}

/// What programs are answered that did not say who they are.
pub(super) fn unasked() -> Response<Body> {
    let response = Response::builder()
        .status(StatusCode::UNAUTHORIZED)
        .header(header::WWW_AUTHENTICATE, "Bearer")
        .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
        .body(Body::from(
            "send a bearer token, or the cookie of a session\n",
        ));
    response.unwrap_or_default()
}

/// A stored payload, byte for byte, as a file.
pub(super) fn download(payload: Payload) -> Response<Body> {
    let name = format!("attachment; filename=\"{}\"", payload.file);
    let response = Response::builder()
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::CONTENT_DISPOSITION, name)
        .extension(Content::Payload)
        .extension(Answered)
        .body(Body::from(payload.bytes));
    response.unwrap_or_default()
}

/// A log, byte for byte, as a file that is sent while it is read.
pub(super) fn streamed(log: LogFile) -> Response<Body> {
    let name = format!("attachment; filename=\"{}\"", log.file);
    let parts = log
        .parts
        .map(|part| part.map_err(|refusal| std::io::Error::other(refusal.message)));
    let response = Response::builder()
        .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(header::CONTENT_DISPOSITION, name)
        .extension(Content::Payload)
        .extension(Answered)
        .body(Body::from_stream(parts));
    response.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::fault::Fault;
    use crate::turns::Turns;

    #[tokio::test]
    async fn a_page_that_begins_and_has_no_content_says_why() {
        let ask = Ask::sample();
        let whole = pages::error(&ask, &Fault::Busy).html;
        let head = whole[..whole.len() - pages::error(&ask, &Fault::Busy).rest().len()].to_owned();
        let page = Begun {
            head,
            whole: ready(Err(Fault::Busy)).boxed(),
        };
        let turn = Turns::new().page("", 1).await.unwrap();
        let response = begun(page, &ask, turn, &HeaderMap::new());
        assert_eq!(response.status(), StatusCode::OK);
        let sent = response.into_body().collect().await.unwrap().to_bytes();
        assert!(whole.contains("The server is busy"));
        assert_eq!(sent, whole);
    }
}
