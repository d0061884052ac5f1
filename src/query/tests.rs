//! Lists on real stores.

mod differential;
mod literals;
mod rows;
