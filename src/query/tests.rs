//! Lists on real stores.

mod clients;
mod damage;
mod differential;
mod indexed;
mod literals;
mod rows;
mod tiers;
