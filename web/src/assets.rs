//! The files that pages load: in the binary, compressed once, under names that change with them.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{Response, header};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

use crate::headers::Content;

/// On answers whose content is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Shared;

/// A file as it is put together of the source tree: beginning and ending of its name, type, parts.
type File = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static [u8]],
);

const STYLE: File = (
    "ui",
    "css",
    "text/css; charset=utf-8",
    &[include_bytes!("../static/ui.css")],
);
const SCRIPT: File = (
    "ui",
    "js",
    "text/javascript; charset=utf-8",
    // One file is one request. htmx is started where it is first used, because browsers run scripts
    // before they paint.
    &[
        b"Object.defineProperty(self,\"htmx\",{configurable:true,get(){",
        HTMX,
        b"return Object.defineProperty(self,\"htmx\",{value:htmx}),htmx}});\n",
        include_bytes!("../static/ui.js"),
    ],
);
const HTMX: &[u8] = include_bytes!("../static/htmx.min.js");
const ICON: File = (
    "icon",
    "svg",
    "image/svg+xml",
    &[include_bytes!("../static/icon.svg")],
);

/// A file as it is served.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its name, with a part of its digest.
    pub(crate) name: String,
    media: &'static str,
    plain: Bytes,
    packed: Bytes,
}

/// All files that pages refer to.
#[derive(Debug)]
pub(crate) struct Assets {
    pub(crate) style: Asset,
    pub(crate) script: Asset,
    pub(crate) icon: Asset,
}

impl Assets {
    pub(crate) fn new() -> Self {
        Self {
            style: Asset::of(STYLE),
            script: Asset::of(SCRIPT),
            icon: Asset::of(ICON),
        }
    }

    /// The file of this name as an answer.
    pub(crate) fn answer(&self, name: &str, gzip: bool) -> Option<Response<Body>> {
        let all = [&self.style, &self.script, &self.icon];
        let asset = all.into_iter().find(|asset| asset.name == name)?;
        let mut response = Response::builder()
            .header(header::CONTENT_TYPE, asset.media)
            .header(header::VARY, "accept-encoding")
            .extension(Content::Asset)
            .extension(Shared);
        if gzip {
            response = response.header(header::CONTENT_ENCODING, "gzip");
        }
        let body = if gzip { &asset.packed } else { &asset.plain };
        response.body(Body::from(body.clone())).ok()
    }
}

impl Asset {
    fn of((stem, ending, media, parts): File) -> Self {
        let bytes = parts.concat();
        let digest = hex(&Sha256::digest(&bytes)[..8]);
        Self {
            name: format!("{stem}-{digest}.{ending}"),
            media,
            packed: Bytes::from(packed(&bytes, Compression::best())),
            plain: Bytes::from(bytes),
        }
    }
}

/// Bytes as gzip.
pub(crate) fn packed(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let written = encoder.write_all(bytes);
    written
        .and_then(|()| encoder.finish())
        .expect("memory takes everything")
}

/// Bytes as digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of others: name, version, licence and SHA-256, as they were released.
    const VENDORED: [(&str, &str, &str, &[u8], &str); 1] = [(
        "htmx.org",
        "2.0.11",
        "0BSD",
        HTMX,
        "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    )];

    #[test]
    fn files_of_others_are_as_they_were_released() {
        let table = include_str!("../static/VENDORED.md");
        for (name, version, licence, bytes, digest) in VENDORED {
            assert_eq!(hex(&Sha256::digest(bytes)), digest, "{name}");
            let row = format!("| {name} | {version} | {licence} | `{digest}` |");
            assert!(table.contains(&row), "{row}");
        }
        let version = format!("version:\"{}\"", VENDORED[0].1);
        assert!(String::from_utf8_lossy(HTMX).contains(&version));
    }

    #[test]
    fn the_scripts_of_all_pages_together_are_small() {
        let assets = Assets::new();
        let scripts = assets.script.packed.len();
        assert!(scripts < 20 << 10, "{scripts}");
        assert!(assets.style.packed.len() < 10 << 10);
    }
}
