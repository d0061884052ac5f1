//! Runs are protected however much waits to be stored, and however long.

use super::{patient, protected};
use crate::support::{World, task_run, within};

#[tokio::test]
async fn runs_are_protected_also_while_all_workers_wait_for_the_server() {
    let mut config = patient();
    config.threadiness = std::num::NonZeroUsize::new(2).unwrap();
    // Longer than this test has patience.
    config.tuning.server.first = std::time::Duration::from_secs(600);
    config.tuning.server.most = config.tuning.server.first;
    let world = World::new(config).await;
    world.sink.away(true);
    for name in ["a", "b", "c", "d"] {
        world.create(task_run(name));
        protected(&world, name).await;
    }
    for name in ["a", "b", "c", "d"] {
        world.finish("taskruns", name);
    }
    within(world.sink.until(|sink| sink.calls() > 0)).await;
    for name in ["late", "later"] {
        world.create(task_run(name));
        protected(&world, name).await;
    }
}

#[tokio::test]
async fn runs_are_protected_also_while_many_others_wait_to_be_stored() {
    let mut config = patient();
    config.threadiness = std::num::NonZeroUsize::new(1).unwrap();
    let world = World::new(config).await;
    world.sink.take(std::time::Duration::from_millis(20));
    world.finish_all("done", 200);
    within(world.sink.until(|sink| sink.writes() > 0)).await;
    for n in 0..20 {
        world.create(task_run(&format!("new-{n}")));
    }
    for n in 0..20 {
        protected(&world, &format!("new-{n}")).await;
    }
    let stored = world.sink.writes();
    assert!(stored < 50, "{stored} were stored before");
}

/// The server takes so long that nothing gets on, and no more is held than a few runs.
#[tokio::test]
async fn runs_are_protected_also_while_as_much_waits_as_may_be_held() {
    let mut config = patient();
    config.threadiness = std::num::NonZeroUsize::new(1).unwrap();
    config.tuning.hold_bytes = 64 << 10;
    let world = World::new(config).await;
    world.sink.take(std::time::Duration::from_secs(600));
    let finished = world.finish_all("done", 200);
    for n in 0..20 {
        world.create(task_run(&format!("new-{n}")));
    }
    for n in 0..20 {
        protected(&world, &format!("new-{n}")).await;
    }
    assert_eq!(world.sink.writes(), 0);
    let held = world.progress().held;
    assert!(held <= 64 << 10, "{held} bytes are held");
    world.sink.take(std::time::Duration::ZERO);
    world.until(|p| p.stored == 200).await;
    assert!(world.all_done(&finished));
}

/// Those that end before they could be protected, as after a stop of the watcher.
#[tokio::test]
async fn runs_that_ended_are_protected_also_while_the_server_is_away() {
    let mut config = patient();
    config.threadiness = std::num::NonZeroUsize::new(1).unwrap();
    config.tuning.server.first = std::time::Duration::from_secs(600);
    config.tuning.server.most = config.tuning.server.first;
    let mut world = World::without_watcher(config);
    world.sink.away(true);
    world.finish_all("done", 20);
    world.start().await;
    for n in 0..20 {
        protected(&world, &format!("done-{n}")).await;
    }
}
