//! What only the watcher knows outlives it.

use std::{path::Path, sync::Arc, time::Duration};

use hindsight_watcher::{
    app::{App, Error},
    config::{Config, SpoolConfig},
};

use crate::support::{World, eventually, is_done, quick, task_run, within};

fn spooling(dir: &Path, limit: u64) -> Config {
    Config {
        spool: Some(SpoolConfig {
            dir: dir.to_owned(),
            limit,
        }),
        ..quick()
    }
}

/// The runs in the spool.
pub(crate) fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(dir).unwrap();
    files
        .map(|file| file.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".json") && !name.starts_with('.')
        })
        .collect()
}

/// How many runs are in the spool; one has two files while the newer takes the place of the older.
pub(crate) fn runs(dir: &Path) -> usize {
    let uid = |path: &std::path::PathBuf| {
        let run: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).unwrap();
        Some(crate::support::uid(&run))
    };
    let uids: std::collections::HashSet<_> = files(dir).iter().filter_map(uid).collect();
    uids.len()
}

async fn spooled(dir: &Path, count: usize) {
    eventually(|| files(dir).len() == count).await;
}

#[tokio::test]
async fn runs_that_finish_and_vanish_while_server_and_watcher_are_away_are_stored() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(spooling(dir.path(), 1 << 20)).await;
    world.sink.away(true);
    // Some vanish while the watcher looks, some when it is dead, some stay.
    let mut uids = world.finish_all("build", 30);
    for n in 0..10 {
        world.delete(&format!("build-{n}"));
    }
    uids.push(world.create(task_run("unfinished")));
    world.until(|p| p.in_cluster == 31).await;
    world.delete("unfinished");
    spooled(dir.path(), 31).await;
    world.kill().await;
    for n in 10..20 {
        world.delete(&format!("build-{n}"));
    }
    world.sim.compact();
    world.start().await;
    world.until(|p| p.is_listed && p.in_cluster == 31).await;
    world.kill().await;
    world.sink.away(false);
    world.start().await;
    world.until(|p| p.in_cluster == 10 && p.stored >= 30).await;
    let copies: Vec<_> = uids.iter().map(|uid| world.copy(uid)).collect();
    assert_eq!(copies.iter().filter(|copy| is_done(copy)).count(), 30);
    let closed = world.sink.result(&format!("ci/results/{}", uids[30]));
    assert!(
        closed
            .unwrap()
            .annotations
            .contains_key("hindsight.dev/closed")
    );
    assert_eq!((world.progress().lost, world.sink.records().len()), (0, 31));
    spooled(dir.path(), 0).await;
}

#[tokio::test]
async fn a_state_whose_call_hangs_is_kept_once_another_call_finds_the_server_away() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(spooling(dir.path(), 1 << 20)).await;
    let (called, is_called) = tokio::sync::oneshot::channel();
    world.sink.when_stored(move || called.send(()).unwrap());
    world.sink.take(Duration::from_hours(1));
    world.finished("hangs");
    within(is_called).await.unwrap();
    world.sink.take(Duration::ZERO);
    world.sink.away(true);
    world.finished("fails");
    spooled(dir.path(), 2).await;
}

#[tokio::test]
async fn without_room_in_memory_the_disk_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = spooling(dir.path(), 1 << 20);
    config.tuning.hold_bytes = 0;
    let world = World::new(config).await;
    world.sink.away(true);
    let uids: Vec<String> = (0..20)
        .map(|n| {
            let uid = world.finished(&format!("build-{n}"));
            world.delete(&format!("build-{n}"));
            uid
        })
        .collect();
    spooled(dir.path(), 20).await;
    world.sink.away(false);
    world.until(|p| p.in_cluster == 0 && p.stored == 20).await;
    assert!(world.all_done(&uids));
    assert_eq!(world.progress().lost, 0);
    spooled(dir.path(), 0).await;
}

#[tokio::test]
async fn a_full_spool_leaves_the_rest_to_memory() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(spooling(dir.path(), 1500)).await;
    world.sink.away(true);
    for n in 0..10 {
        world.finished(&format!("build-{n}"));
        world.delete(&format!("build-{n}"));
    }
    world.until(|p| p.in_cluster == 10).await;
    world
        .cluster(|sim| sim.count("tekton.dev", "taskruns") == 0)
        .await;
    within(world.sink.until(|sink| sink.calls() > 10)).await;
    assert!(files(dir.path()).len() < 10);
    world.sink.away(false);
    world.until(|p| p.in_cluster == 0 && p.stored == 10).await;
    assert_eq!(world.progress().lost, 0);
    spooled(dir.path(), 0).await;
}

#[tokio::test]
async fn while_the_server_is_there_nothing_is_spooled() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(spooling(dir.path(), 1 << 20)).await;
    world.finish_all("build", 10);
    world.until(|p| p.stored == 10).await;
    assert!(files(dir.path()).is_empty());
}

#[tokio::test]
async fn what_was_stored_in_a_newer_state_is_not_overwritten_by_the_spool() {
    let dir = tempfile::tempdir().unwrap();
    let aside = tempfile::tempdir().unwrap();
    let mut world = World::new(spooling(dir.path(), 1 << 20)).await;
    world.sink.away(true);
    let uid = world.finished("build");
    spooled(dir.path(), 1).await;
    let file = files(dir.path()).remove(0);
    let old = aside.path().join(file.file_name().unwrap());
    std::fs::copy(&file, &old).unwrap();
    world.sink.away(false);
    world.annotated("build").await;
    world.annotate("build", "signed", "yes");
    within(world.sink.until(|sink| sink.writes() == 2)).await;
    world.until(|p| p.waiting == 0).await;
    spooled(dir.path(), 0).await;
    world.kill().await;
    // As if there had been no time to remove it.
    std::fs::copy(&old, &file).unwrap();
    world.delete("build");
    world.start().await;
    world.until(|p| p.is_listed && p.in_cluster == 0).await;
    assert_eq!(world.copy(&uid)["metadata"]["annotations"]["signed"], "yes");
    spooled(dir.path(), 0).await;
}

#[tokio::test]
async fn a_damaged_file_is_moved_aside_and_the_others_are_stored() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(spooling(dir.path(), 1 << 20)).await;
    world.sink.away(true);
    world.finished("a");
    world.finished("b");
    spooled(dir.path(), 2).await;
    world.kill().await;
    world.delete("a");
    world.delete("b");
    std::fs::write(&files(dir.path())[0], "{").unwrap();
    world.sink.away(false);
    world.start().await;
    world.until(|p| p.is_listed && p.in_cluster == 0).await;
    assert_eq!(world.sink.records().len(), 1);
    assert_eq!(files(&dir.path().join("corrupt")).len(), 1);
}

#[tokio::test]
async fn a_spool_in_use_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(spooling(dir.path(), 1 << 20)).await;
    let sink = Arc::clone(&world.sink);
    let second = App::bind(world.config.clone(), world.sim.client(), sink).await;
    assert!(matches!(second, Err(Error::Spool { .. })));
}

#[tokio::test]
async fn a_run_that_is_refused_and_gone_outlives_the_watcher_until_it_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(spooling(dir.path(), 1 << 20)).await;
    world.sink.refuse("bad");
    let uid = world.finished("bad");
    let said = |w: &hindsight_watcher::progress::Handle| {
        w.unstored(1)
            .iter()
            .any(|run| run.reason.contains("not like that"))
    };
    within(world.handle().until(said)).await;
    assert!(files(dir.path()).is_empty());
    world.delete("bad");
    spooled(dir.path(), 1).await;
    world.kill().await;
    world.start().await;
    within(world.handle().until(said)).await;
    world.sink.refuse("");
    spooled(dir.path(), 0).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.progress().lost, 0);
}

/// A run that nobody told to have left may have left all the same.
#[tokio::test]
async fn a_run_that_cannot_be_read_again_stays_on_disk_until_it_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = spooling(dir.path(), 1 << 20);
    config.tuning.hold_bytes = 0;
    config.threadiness = std::num::NonZeroUsize::MIN;
    let mut world = World::new(config).await;
    world.sink.away(true);
    let uids = [world.finished("a"), world.finished("b")];
    spooled(dir.path(), 2).await;
    world.sim.faults().freeze_watches();
    world.delete("a");
    let reads = |name: &str| world.sim.calls().verb("get").name(name);
    eventually(|| reads("a").status(404).count() > 0).await;
    // The one worker is done with it when it has read the other one twice.
    let before = reads("b").count();
    eventually(|| reads("b").count() > before + 1).await;
    assert_eq!(files(dir.path()).len(), 2);
    world.kill().await;
    world.sim.faults().thaw_watches();
    world.sink.away(false);
    world.start().await;
    world.until(|p| p.is_listed && p.in_cluster == 1).await;
    world.annotated("b").await;
    assert!(world.all_done(&uids));
    assert_eq!(world.progress().lost, 0);
    spooled(dir.path(), 0).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_read_for_a_moment_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let aside = tempfile::tempdir().unwrap();
    let mut config = spooling(dir.path(), 1 << 20);
    config.tuning.hold_bytes = 0;
    let world = World::new(config).await;
    world.sink.away(true);
    let uid = world.finished("build");
    world.delete("build");
    let last = world.sim.version().to_string();
    let version = |file: &std::path::PathBuf| {
        let run: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        run["metadata"]["resourceVersion"]
            .as_str()
            .map(str::to_owned)
    };
    let versions = || files(dir.path()).iter().map(version).collect::<Vec<_>>();
    eventually(|| versions() == [Some(last.clone())]).await;
    // A link to a directory takes its place, so that there is always something of its name.
    let file = files(dir.path()).remove(0);
    let (copy, link) = (aside.path().join("copy"), aside.path().join("link"));
    std::fs::copy(&file, &copy).unwrap();
    std::os::unix::fs::symlink(aside.path(), &link).unwrap();
    std::fs::rename(&link, &file).unwrap();
    let looks = || world.sim.calls().verb("get").name("build").count();
    let before = looks();
    eventually(|| looks() > before + 3 || world.progress().lost > 0).await;
    assert_eq!(world.progress().lost, 0, "{:?}", world.handle().lost(1));
    std::fs::rename(&copy, &file).unwrap();
    world.sink.away(false);
    world.until(|p| p.in_cluster == 0).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.progress().lost, 0);
    spooled(dir.path(), 0).await;
}
