//! An API server that refuses a part of what it is asked, or does not answer.

use kubesim::Fault;
use serde_json::json;

use crate::support::{GROUP, NAMESPACE, WORKFLOWS, World, complete, ending, step};

#[tokio::test]
async fn an_event_that_is_not_answered_holds_up_neither_a_watch_nor_a_pass() {
    let world = World::new().await;
    let names: Vec<String> = (0..20).map(|number| format!("done-{number}")).collect();
    for name in &names {
        world.create(name, &json!({}));
    }
    for name in &names {
        world.ended(name).await;
    }
    let silent = Fault::silent().group("events.k8s.io").lasting();
    world.sim.faults().plan(silent);
    for name in &names {
        world.sim.delete(GROUP, WORKFLOWS, NAMESPACE, name).unwrap();
    }
    world.create("next", &json!({"steps": {"one": step(&[])}}));
    // One call may take 30 seconds, and here are many.
    world.ended("next").await;
    assert_eq!(ending(&world.sim, "next"), complete());
}
