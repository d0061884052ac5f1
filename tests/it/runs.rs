//! `hindsight.v1.Runs`, on both databases, by REST, gRPC and the command line.

mod alike;
mod commands;
mod diff;
mod examples;
mod failure;
mod flaky;
mod golden;
mod list;
mod listing;
mod objects;
mod pager;
mod references;
mod regressions;
mod rights;
mod schemas;
mod seeds;
mod signatures;
mod single;
mod suggest;
mod tree;
mod watch;
