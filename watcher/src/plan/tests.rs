//! What is planned: for real-looking objects of each kind in all situations (against
//! `testdata/kinds/<kind>/<case>.plan`), rule by rule, and over random histories.

mod collecting;
mod events;
mod histories;
mod logs;
mod model;
mod rules;
mod snapshots;
