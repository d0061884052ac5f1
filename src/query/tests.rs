//! Lists on real stores.

mod chunks;
mod clients;
mod damage;
mod differential;
mod indexed;
mod literals;
mod rows;
mod tiers;
