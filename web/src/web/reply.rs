//! Answers as they are sent: pages, files, ways to other pages, cookies.

use std::future::ready;
use std::io::{self, Write as _};

use axum::body::Body;
use axum::http::response::Builder;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use flate2::{Compression, write::GzEncoder};
use futures::stream::{self, Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use crate::ask::Ask;
use crate::assets::{hex, packed};
use crate::headers::Content;
use crate::pages::{self, Begun, Form, LogFile, Page, Payload};
use crate::turns::Turn;
use crate::web::Answered;

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
    let mut response = page_answer(kind).header(header::ETAG, &tag);
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

/// A page of which the beginning is sent at once. It is made meanwhile, whether or not the browser reads, so that its
/// turn ends; it is no longer made once the browser goes away.
pub(super) fn begun(page: Begun, ask: &Ask, turn: Turn, headers: &HeaderMap) -> Response<Body> {
    let (ask, whole) = (ask.clone(), page.whole);
    let mut making = JoinSet::new();
    making.spawn(async move {
        let made = whole.await;
        drop(turn);
        made.unwrap_or_else(|fault| pages::error(&ask, &fault))
            .rest()
    });
    let rest = stream::once(async move { making.join_next().await.transpose() });
    let rest = rest.map(|made| Ok::<_, io::Error>(made?.unwrap_or_default()));
    let texts = stream::once(ready(Ok(page.head))).chain(rest);
    let mut response = page_answer(Form::Html).extension(Answered);
    let body = match takes_gzip(headers) {
        true => {
            response = response.header(header::CONTENT_ENCODING, "gzip");
            Body::from_stream(packed_one_by_one(texts))
        }
        false => Body::from_stream(texts),
    };
    response.body(body).unwrap_or_default()
}

/// What answers with pages have in common.
fn page_answer(kind: Form) -> Builder {
    Response::builder()
        .header(header::CONTENT_TYPE, kind.media())
        .extension(kind.content())
        .header(header::VARY, "accept-encoding, authorization, cookie")
}

/// Texts as one file of gzip, each as soon as it is there.
fn packed_one_by_one(
    texts: impl Stream<Item = io::Result<String>> + Send + 'static,
) -> impl Stream<Item = io::Result<Vec<u8>>> + Send {
    let packer = GzEncoder::new(Vec::new(), Compression::fast());
    let texts = texts.map(Some).chain(stream::once(ready(None)));
    texts.scan(packer, |packer, text| {
        let written = match text {
            Some(text) => text.and_then(|text| {
                packer.write_all(text.as_bytes())?;
                packer.flush()
            }),
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
    use std::future::pending;
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::fault::Fault;
    use crate::pages::Shown;
    use crate::turns::Turns;

    fn gzip() -> HeaderMap {
        [(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]
            .into_iter()
            .collect()
    }

    async fn beginning(
        whole: BoxFuture<'static, Shown>,
        turns: &Turns,
        headers: &HeaderMap,
    ) -> Body {
        let head = "<main>".to_owned();
        let turn = turns.page("caller", 24).await.unwrap();
        let response = begun(Begun { head, whole }, &Ask::sample(), turn, headers);
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body()
    }

    #[tokio::test]
    async fn a_page_that_begins_and_has_no_content_says_why() {
        let whole = ready(Err(Fault::Busy)).boxed();
        let body = beginning(whole, &Turns::new(), &HeaderMap::new()).await;
        let sent = body.collect().await.unwrap().to_bytes();
        let rest = pages::error(&Ask::sample(), &Fault::Busy).rest();
        assert!(rest.contains("The server is busy"));
        assert_eq!(sent, format!("<main>{rest}"));
    }

    #[tokio::test]
    async fn a_page_begins_before_it_is_made() {
        for headers in [HeaderMap::new(), gzip()] {
            let mut body = beginning(pending().boxed(), &Turns::new(), &headers).await;
            let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
            let first = match headers.is_empty() {
                true => first.to_vec(),
                false => {
                    let mut plain = [0; 6];
                    GzDecoder::new(&first[..]).read_exact(&mut plain).unwrap();
                    plain.to_vec()
                }
            };
            assert_eq!(first, b"<main>");
            assert!(
                body.frame().now_or_never().is_none(),
                "the rest is not made"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_of_which_nothing_is_read_takes_no_turn() {
        let turns = Turns::new();
        let whole = ready(Err(Fault::Busy)).boxed();
        let unread = beginning(whole, &turns, &HeaderMap::new()).await;
        turns.page("caller", 24).await.unwrap();
        drop(unread);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_not_made_for_a_browser_that_is_gone() {
        let turns = Turns::new();
        drop(beginning(pending().boxed(), &turns, &HeaderMap::new()).await);
        turns.page("caller", 24).await.unwrap();
    }
}
