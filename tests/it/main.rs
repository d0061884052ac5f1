//! Whole-app tests: a real server on a real SQLite and a real PostgreSQL, asked over gRPC and by
//! its command line, with the watcher on a simulated cluster.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that meets the unexpected fails"
)]

mod all_in_one;
mod answers;
mod auth;
mod bad_input;
mod browser;
mod chaos;
mod commands;
mod completion;
mod contexts;
mod crash;
mod custom_tasks;
mod deploy;
mod docs;
mod events;
mod explain;
mod exports;
mod fuzz;
mod histories;
mod hostile;
mod import;
mod index;
mod ingest;
mod json;
mod keeping;
mod kfp;
mod kills;
mod lists;
mod logs;
mod old_commands;
mod outside;
mod ray;
mod resources;
mod rest;
mod runs;
mod selectors;
mod server;
mod summaries;
mod support;
mod web;
mod wire;
mod workflows;
