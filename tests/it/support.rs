//! Servers, databases and objects for tests.

pub mod cluster;
pub mod database;
pub mod frames;
pub mod http;
pub mod loki;
pub mod mariadb;
pub mod objects;
pub mod process;
pub mod program;
pub mod receiver;
pub mod s3;
pub mod scene;
pub mod schema;
pub mod server;
pub mod terminal;

pub use database::{Database, each_database};
pub use server::TestServer;
