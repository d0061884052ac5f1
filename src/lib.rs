//! The Hindsight server: stores results and records for years and answers filters over them.
//!
//! The modules below are in reading order; `docs/ARCHITECTURE.md` is the map.

pub mod background;
pub mod clock;
pub mod error;

pub mod filter;
pub mod measure;
pub mod model;
pub mod storage;

pub mod budget;

pub mod audit;
pub mod auth;
pub mod query;
pub mod service;

pub mod admin;
pub mod app;
pub mod cli;
pub mod grpc;
pub mod import;
pub mod rest;

pub mod config;
pub mod telemetry;
