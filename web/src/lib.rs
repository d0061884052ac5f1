//! The web UI: pages for browsers below `/ui`, over the same gRPC services that every client calls.
//!
//! Each page calls the server with the credentials of its caller, as any other client does, so that access,
//! limits and counters are those of any other client. Pages are complete HTML without scripts.
//! Everything that was stored is hostile: templates escape it, and one layer sets all headers.

mod ansi;
mod api;
mod ask;
mod assets;
mod fault;
mod form;
mod headers;
mod html;
mod layers;
mod origin;
mod pages;
mod pending;
mod query;
mod route;
mod sealed;
mod session;
mod status;
mod svg;
mod time;
mod turns;
mod web;

pub use api::{Begun, Callers, Returned, SignIn};
pub use assets::Shared;
pub use web::{Answered, Options, Peer, Web};
