//! The API server and the results server go away and come back; nothing is lost, nothing
//! doubled.

use kubesim::{Fault, Mix, Plan, Player};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

use hindsight_watcher::{backoff::Backoff, config::Config, progress::Handle};

use crate::support::{NAMESPACE, World, collecting, eventually, is_done, quick, task_run, within};

#[tokio::test]
async fn what_finishes_while_the_server_is_away_is_stored_when_it_is_back() {
    let world = World::new(quick()).await;
    world.sink.away(true);
    let uids = world.finish_all("build", 50);
    world.until(|p| !p.is_server_up && p.in_cluster == 50).await;
    let listed = |w: &Handle| w.unstored(100).len() == 50;
    within(world.handle().until(listed)).await;
    world.sink.away(false);
    world.until(|p| p.stored == 50 && p.is_server_up).await;
    assert!(world.all_done(&uids));
    assert_eq!(world.sink.writes(), 50);
}

#[tokio::test]
async fn what_finishes_and_is_deleted_while_the_server_is_away_is_stored_too() {
    let world = World::new(quick()).await;
    world.sink.away(true);
    let uids: Vec<String> = (0..50)
        .map(|n| {
            let uid = world.finished(&format!("build-{n}"));
            world.delete(&format!("build-{n}"));
            uid
        })
        .collect();
    world.until(|p| !p.is_server_up && p.in_cluster == 50).await;
    world.sink.away(false);
    world.until(|p| p.in_cluster == 0 && p.stored == 50).await;
    assert!(world.all_done(&uids));
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_server_that_is_away_is_called_once_in_a_while() {
    let mut config = quick();
    config.tuning.server.first = Duration::from_secs(3600);
    config.tuning.server.most = Duration::from_secs(3600);
    let world = World::new(config).await;
    world.sink.away(true);
    world.finish_all("build", 100);
    world
        .until(|p| !p.is_server_up && p.in_cluster == 100)
        .await;
    // At most what was under way when the first call failed.
    assert!(world.sink.calls() <= 8, "{} calls", world.sink.calls());
}

#[tokio::test]
async fn a_run_that_the_server_cannot_stand_does_not_stop_the_others() {
    let mut config = quick();
    config.threadiness = std::num::NonZeroUsize::MIN;
    let world = World::new(config).await;
    world.sink.choke_on("bad");
    world.finished("bad");
    world.until(|p| !p.is_server_up).await;
    let good = world.finish_all("good", 10);
    world.until(|p| p.stored == 10).await;
    assert!(world.all_done(&good));
    world.sink.choke_on("");
    world.until(|p| p.stored == 11).await;
}

#[tokio::test]
async fn a_watcher_may_be_started_before_everybody_else() {
    let mut world = World::without_watcher(quick());
    world.sim.faults().down();
    world.sink.away(true);
    world.start().await;
    within(async {
        while world.sim.calls().count() < 5 {
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert!(!world.progress().is_listed);
    world.sim.faults().up();
    world.until(|p| p.is_listed).await;
    world.finished("build");
    world.sink.away(false);
    world.annotated("build").await;
}

#[tokio::test]
async fn runs_that_finish_while_the_cluster_is_away_are_stored_when_it_is_back() {
    let world = World::new(quick()).await;
    let uid = world.create(task_run("build"));
    world.until(|p| p.in_cluster == 1).await;
    world.sim.faults().down();
    world.finish("taskruns", "build");
    world.sim.faults().up();
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
}

#[tokio::test]
async fn a_run_that_vanishes_unseen_is_told_apart_from_one_that_finishes_unseen() {
    let world = World::new(quick()).await;
    world.create(task_run("vanishes"));
    let finishes = world.create(task_run("finishes"));
    world.until(|p| p.in_cluster == 2).await;
    world.sim.faults().down();
    world.finish("taskruns", "finishes");
    world.finish("taskruns", "vanishes");
    world.delete("vanishes");
    // The history that would tell of it is gone as well.
    world.sim.compact();
    world.sim.faults().up();
    world.annotated("finishes").await;
    world.until(|p| p.in_cluster == 1 && p.lost == 1).await;
    assert!(is_done(&world.copy(&finishes)));
    let lost = world.handle().lost(10);
    assert_eq!((lost.len(), lost[0].name.as_str()), (1, "vanishes"));
    assert!(lost[0].reason.contains("vanished"), "{}", lost[0].reason);
}

#[tokio::test]
async fn a_run_that_was_stored_and_vanishes_unseen_is_not_lost() {
    let world = World::new(quick()).await;
    let uid = world.finished("build");
    world.annotated("build").await;
    world.sim.faults().down();
    world.delete("build");
    world.sim.compact();
    world.sim.faults().up();
    world.until(|p| p.in_cluster == 0).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!((world.progress().lost, world.sink.writes()), (0, 1));
}

#[tokio::test]
async fn dropped_watches_and_expired_versions_are_part_of_the_protocol() {
    let world = World::new(quick()).await;
    for n in 0..20 {
        let name = format!("build-{n}");
        world.create(task_run(&name));
        world.sim.faults().drop_watches();
        world.finish("taskruns", &name);
        world.sim.compact();
    }
    world.until(|p| p.stored == 20).await;
    assert_eq!(world.sink.records().len(), 20);
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_watch_that_ends_at_once_is_begun_again_after_longer_and_longer_waits() {
    let mut config = quick();
    config.tuning.cluster = Backoff {
        first: Duration::from_millis(100),
        most: Duration::from_secs(10),
    };
    let mut world = World::without_watcher(config);
    let ends = Fault::ended_after(0).verb("watch").resource("taskruns");
    world.fault(ends.lasting());
    world.start().await;
    let begun = || world.sim.calls().verb("watch").resource("taskruns").count();
    eventually(|| begun() > 0).await;
    let storm = timeout(Duration::from_secs(1), eventually(|| begun() > 8)).await;
    assert!(storm.is_err(), "{} watches within a second", begun());
    world.sim.faults().clear();
    world.finished("build");
    world.annotated("build").await;
}

#[tokio::test]
async fn an_orderly_stop_stores_what_only_the_watcher_knows() {
    let mut config = quick();
    config.threadiness = std::num::NonZeroUsize::MIN;
    let mut world = World::new(config).await;
    world.sink.away(true);
    let uids: Vec<String> = (0..10)
        .map(|n| {
            let uid = world.finished(&format!("build-{n}"));
            world.delete(&format!("build-{n}"));
            uid
        })
        .collect();
    world.until(|p| p.in_cluster == 10 && !p.is_server_up).await;
    world
        .cluster(|sim| sim.count("tekton.dev", "taskruns") == 0)
        .await;
    within(
        world
            .handle()
            .until(|w| w.unstored(20).len() == 10 && w.progress().waiting >= 9),
    )
    .await;
    let sink = std::sync::Arc::clone(&world.sink);
    let back = tokio::spawn(async move {
        let calls = sink.calls();
        sink.until(|sink| sink.calls() > calls + 2).await;
        sink.away(false);
    });
    world.stop().await;
    back.await.unwrap();
    assert!(
        uids.iter()
            .all(|uid| world.sink.copy(uid).is_some_and(|copy| is_done(&copy)))
    );
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_server_that_is_away() {
    let config = Config {
        shutdown_grace: Duration::from_millis(50),
        ..quick()
    };
    let mut world = World::new(config).await;
    world.sink.away(true);
    world.finished("build");
    world.until(|p| !p.is_server_up).await;
    world.stop().await;
    assert_eq!(world.sink.writes(), 0);
}

/// The whole of it: a busy cluster, and everything that can go away does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_collected_unproven_in_a_storm() {
    let mut world = World::new(collecting()).await;
    let plan = Plan {
        seed: 7,
        runs: 200,
        rate: 400.0,
        concurrency: 40,
        namespaces: vec![NAMESPACE.to_owned(), "team-b".to_owned()],
        mix: Mix {
            pipeline_runs: 2,
            task_runs: 3,
            custom_runs: 1,
            workflows: 0,
        },
        life: Duration::from_millis(20),
        told: 1..=300,
    };
    let playing = Player::new(&world.sim, plan).start();
    for round in 0..12 {
        within(playing.until(|p| p.finished >= round * 15)).await;
        match round % 6 {
            0 => world.sink.away(true),
            1 => world.sink.away(false),
            2 => world.sim.faults().drop_watches(),
            3 => {
                world.kill().await;
                world.start().await;
            }
            4 => world.sim.compact(),
            _ => {
                world.sim.faults().down();
                tokio::time::sleep(Duration::from_millis(20)).await;
                world.sim.faults().up();
            }
        }
    }
    world.sink.away(false);
    let account = within(playing.over()).await;
    assert_eq!((account.created, account.lost), (200, 0));
    let finished = playing.finished();
    assert!(finished.len() >= 200);
    world
        .cluster(|sim| {
            ["taskruns", "pipelineruns", "customruns"]
                .iter()
                .all(|plural| sim.count("tekton.dev", plural) == 0)
        })
        .await;
    for run in &finished {
        let copy = world.copy(&run.uid);
        assert_eq!(copy["metadata"]["uid"], json!(run.uid));
        let condition = &copy["status"]["conditions"][0];
        assert!(
            condition["status"] == "True" || condition["status"] == "False",
            "{condition}"
        );
    }
    assert_eq!(world.sink.records().len(), finished.len());
}
