//! Lists on real stores.

mod differential;
mod rows;
