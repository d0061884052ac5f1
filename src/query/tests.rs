//! Lists on real stores.

mod clients;
mod damage;
mod differential;
mod literals;
mod promoted;
mod rows;
