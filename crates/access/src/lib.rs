//! Who a caller is, what it may do and use, and the log of what it changed.

pub mod audit;
pub mod auth;
pub mod budget;
mod request;

pub use request::RequestContext;
