//! What an API server must do, as cases that run against the simulator and against a real server
//! alike. A difference is a bug of the simulator. The cases know neither: they see an [`Arena`].

use std::fmt::Debug;

use futures::future::BoxFuture;
use kube::api::DynamicObject;

pub mod access;
pub mod applies;
mod arena;
mod cases;
mod clean;
pub mod creates;
pub mod deletes;
mod difference;
pub mod discovery;
mod ground;
pub mod jobs;
pub mod leases;
pub mod limits;
pub mod lists;
pub mod logs;
mod seen;
pub mod watches;
pub mod writes;

pub use arena::{Arena, create, dynamic, widget};
pub use cases::CASES;
pub use difference::{Difference, Verdict, eventually, holds, refused, same};
pub use ground::{Ground, Outcome};
pub use seen::Seen;

use difference::PATIENCE;

/// A part of the contract.
#[derive(Clone, Copy)]
pub struct Case {
    /// Module and function of the case: `module::function`.
    pub name: &'static str,
    /// What it cannot run without.
    pub needs: Needs,
    /// The function that runs the case in an arena of its own.
    pub run: fn(Arena) -> BoxFuture<'static, Verdict>,
}

impl Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .field("needs", &self.needs)
            .finish()
    }
}

/// What a server must offer beside the API for a case to make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing beside the API itself.
    Nothing,
    /// A garbage collector and a namespace controller.
    Controllers,
    /// Somebody who can make the server forget its history.
    Forgetting,
    /// Requests that are checked against roles.
    Roles,
}

/// The group of the two kinds that exist for the contract.
pub const GROUP: &str = "contract.kubesim.dev";

/// The names of objects, in their order.
pub fn names<'a>(objects: impl IntoIterator<Item = &'a DynamicObject>) -> Vec<String> {
    objects
        .into_iter()
        .map(|object| object.metadata.name.clone().unwrap_or_default())
        .collect()
}

/// The version of an object.
pub fn version(object: &DynamicObject) -> String {
    object.metadata.resource_version.clone().unwrap_or_default()
}

/// The uid of an object.
pub fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}
