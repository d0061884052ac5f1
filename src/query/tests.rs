//! Lists on real stores.

mod clients;
mod differential;
mod literals;
mod promoted;
mod rows;
