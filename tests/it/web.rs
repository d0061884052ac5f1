//! The web UI on a server with runs: what pages show, what protects them, and how callers sign in.

mod crowds;
mod doors;
mod headers;
pub mod hostile;
pub mod logs;
pub mod oidc;
mod pages;
mod provider;
mod reports;
pub mod seed;
pub mod sign_in;
mod wide;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    TestServer,
    http::{Http, Reply},
};

/// A page, as a browser asks for it.
pub async fn page(http: &mut Http, target: &str) -> Reply {
    http.send("GET", target, &[("accept", "text/html")], "")
        .await
}

/// The whole answer to a request for a page of a server under this name.
async fn asked_as(server: &TestServer, host: &str, target: &str) -> String {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The addresses that a page links to, in its order.
pub fn links(html: &str) -> Vec<String> {
    let links = html.split("href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split_once('"').map(|(link, _)| link));
    links
        .map(|link| link.replace("&#38;", "&"))
        .map(|link| link.split('#').next().unwrap_or_default().to_owned())
        .filter(|link| link.starts_with('/'))
        .collect()
}

/// What no page may have: scripts, styles and handlers of its own, and addresses elsewhere.
#[track_caller]
fn is_tame(html: &str) {
    for script in html.split("<script").skip(1) {
        assert!(script.starts_with(" src=\"/"), "an inline script: {html}");
    }
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().unwrap_or_default();
        let names = tag.split('"').step_by(2).flat_map(str::split_whitespace);
        for name in names.skip(1) {
            let name = name.trim_end_matches('=').to_ascii_lowercase();
            let is_bad = name == "style" || name.starts_with("on");
            assert!(!is_bad, "`{name}` in <{tag}>");
        }
    }
    for bad in [
        "<style",
        "<iframe",
        "javascript:",
        "href=\"http",
        "src=\"http",
    ] {
        assert!(!html.contains(bad), "`{bad}` in {html}");
    }
}

/// Whether a text is well-formed XML without scripts and addresses that begin one.
fn is_well_formed(xml: &str) -> bool {
    let mut reader = quick_xml::Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return !xml.contains('\u{0}'),
            Ok(quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag)) => {
                let mut attributes = tag.attributes();
                let is_bad = tag.name().as_ref() == b"script"
                    || attributes
                        .any(|it| it.map_or(true, |it| it.value.starts_with(b"javascript")));
                if is_bad {
                    return false;
                }
            }
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
