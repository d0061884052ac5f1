//! `hindsight.v1.Runs`, on both databases, by REST, gRPC and the command line.

mod alike;
mod commands;
mod diff;
mod examples;
mod failure;
mod flaky;
mod list;
mod listing;
mod objects;
mod references;
mod regressions;
mod rights;
mod single;
mod suggest;
mod tree;
mod watch;
