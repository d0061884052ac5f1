//! `hindsight.v1.Runs`: single runs, on both databases, by REST and gRPC.

mod commands;
mod diff;
mod failure;
mod list;
mod objects;
mod rights;
mod tree;
