//! The Hindsight server: stores results and records for years and answers filters over them.
