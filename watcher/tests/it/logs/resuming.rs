//! Reading goes on after interruptions: no line is stored twice, and none is left out.

use std::fs;

use hindsight_watcher::config::{Config, Logs, SpoolConfig};

use super::{begin, finish, finish_run, logs, reading, sealed, write};
use crate::support::{NAMESPACE, World, eventually};

fn numbered(from: usize, to: usize) -> String {
    (from..to).map(|n| format!("line {n}\n")).collect()
}

fn all(to: usize) -> Vec<String> {
    (0..to).map(|n| format!("line {n}")).collect()
}

#[tokio::test]
async fn a_new_watcher_goes_on_where_the_old_one_was_killed() {
    let mut world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    for n in 0..5 {
        write(&world, "build", &numbered(20 * n, 20 * n + 10));
        eventually(|| !logs(&world).of("build-pod", "step-a", 0).lines.is_empty()).await;
        world.kill().await;
        write(&world, "build", &numbered(20 * n + 10, 20 * n + 20));
        world.start().await;
    }
    finish(&world, "build");
    assert_eq!(sealed(&world, "build").await, all(100));
    assert_eq!(logs(&world).of("build-pod", "step-a", 0).holes.len(), 0);
}

#[tokio::test]
async fn a_connection_that_breaks_is_opened_again() {
    let world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    for n in 0..5 {
        write(&world, "build", &numbered(10 * n, 10 * n + 10));
        let stored = || logs(&world).of("build-pod", "step-a", 0).lines.len();
        eventually(|| stored() >= 10 * n).await;
        world.sim.faults().drop_logs();
    }
    finish(&world, "build");
    assert_eq!(sealed(&world, "build").await, all(50));
}

#[tokio::test]
async fn a_server_that_was_away_gets_every_line() {
    let world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    world.sink.away(true);
    write(&world, "build", &numbered(0, 20_000));
    finish(&world, "build");
    world.until(|p| !p.is_server_up).await;
    world.sink.away(false);
    assert_eq!(sealed(&world, "build").await, all(20_000));
}

#[tokio::test]
async fn a_server_that_lost_the_log_gets_it_again() {
    let world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    write(&world, "build", &numbered(0, 10));
    eventually(|| logs(&world).of("build-pod", "step-a", 0).lines.len() == 10).await;
    logs(&world).forget();
    write(&world, "build", &numbered(10, 20));
    finish(&world, "build");
    assert_eq!(sealed(&world, "build").await, all(20));
}

#[tokio::test]
async fn a_log_that_was_rotated_meanwhile_has_a_hole_that_says_so() {
    let mut world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    write(&world, "build", "one\n");
    eventually(|| logs(&world).of("build-pod", "step-a", 0).lines.len() == 1).await;
    world.kill().await;
    write(&world, "build", "two\nthree\n");
    let sim = &world.sim;
    sim.rotate_log(NAMESPACE, "build-pod", "step-a", 1).unwrap();
    world.start().await;
    finish(&world, "build");
    assert_eq!(sealed(&world, "build").await, ["one", "three"]);
    let stored = logs(&world).of("build-pod", "step-a", 0);
    assert_eq!(stored.holes, [1]);
    assert!(
        stored.holes()[0].contains("rotated"),
        "{:?}",
        stored.holes()
    );
}

#[tokio::test]
async fn a_container_that_is_restarted_has_a_log_for_each_start() {
    for how in [Logs::Follow, Logs::Finished] {
        let world = World::new(reading(how)).await;
        begin(&world, "build");
        let sim = &world.sim;
        for start in 0..3 {
            write(&world, "build", &format!("of start {start}\n"));
            sim.end_container(NAMESPACE, "build-pod", "step-a", 1)
                .unwrap();
            if start < 2 {
                sim.start_container(NAMESPACE, "build-pod", "step-a")
                    .unwrap();
                let ended = || logs(&world).of("build-pod", "step-a", start).sealed;
                eventually(ended).await;
            }
        }
        for start in 0..3 {
            let stored = || logs(&world).of("build-pod", "step-a", start);
            eventually(|| stored().sealed).await;
            assert_eq!(stored().texts(), [format!("of start {start}")], "{how}");
        }
    }
}

#[tokio::test]
async fn what_was_read_outlives_watcher_and_pod_while_the_server_is_away() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        spool: Some(SpoolConfig {
            dir: dir.path().to_owned(),
            limit: 1 << 20,
        }),
        ..reading(Logs::Follow)
    };
    let mut world = World::new(config).await;
    let names = ["first", "second"];
    for name in names {
        begin(&world, name);
        write(&world, name, &numbered(0, 10));
        eventually(|| {
            logs(&world)
                .of(&format!("{name}-pod"), "step-a", 0)
                .lines
                .len()
                == 10
        })
        .await;
    }
    world.sink.away(true);
    for name in names {
        write(&world, name, &numbered(10, 20));
    }
    finish(&world, "first");
    let spooled = || {
        let files = fs::read_dir(dir.path().join("logs")).unwrap();
        let files = files.filter_map(|file| fs::read(file.ok()?.path()).ok());
        let bytes: Vec<u8> = files.flatten().collect();
        let lines = bytes.split(|byte| *byte == b'\n');
        lines.filter(|line| line.ends_with(b"line 19")).count()
    };
    eventually(|| spooled() == 2).await;
    world.kill().await;
    for name in names {
        let pod = format!("{name}-pod");
        world.sim.delete("", "pods", NAMESPACE, &pod).unwrap();
    }
    world.start().await;
    world.until(|p| !p.is_server_up).await;
    world.sink.away(false);
    finish_run(&world, "second");
    for name in names {
        assert_eq!(sealed(&world, name).await, all(20), "{name}");
    }
    // Of the one that was not at its end nobody knows whether more was written.
    let holes = |name: &str| logs(&world).of(&format!("{name}-pod"), "step-a", 0).holes;
    assert_eq!(holes("second"), [20]);
    eventually(|| spooled() == 0).await;
}

#[tokio::test]
async fn lines_that_were_numbered_as_those_of_another_watcher_outlive_their_pod() {
    let world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    let log = || logs(&world).of("build-pod", "step-a", 0);
    write(&world, "build", &numbered(0, 10));
    eventually(|| log().lines.len() == 10).await;
    world.sink.away(true);
    write(&world, "build", &numbered(10, 20));
    finish(&world, "build");
    world.until(|p| !p.is_server_up).await;
    world
        .sim
        .delete("", "pods", NAMESPACE, "build-pod")
        .unwrap();
    logs(&world).add_hole("build-pod", "step-a");
    world.sink.away(false);
    assert_eq!(sealed(&world, "build").await, all(20));
    assert_eq!(log().holes, [10]);
}
