//! What filters match, what they refuse, and that their two halves agree with the whole.

mod clients;
mod hostile;
mod indexes;
mod language;
mod limits;
mod refusals;
mod resources;
mod rows;
mod splits;
