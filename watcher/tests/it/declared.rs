//! Kinds that a file of configuration declares.

use hindsight_run::Outcome;
use hindsight_watcher::config::Config;
use kubesim::Crd;
use serde_json::json;

use crate::support::{NAMESPACE, World, from_file, quick};

fn declared(group: &str, kind: &str, plural: &str) -> Config {
    let text = format!(
        "[[kind]]\ngroup = '{group}'\nversion = 'v1'\nkind = '{kind}'\nplural = '{plural}'\n\
         done = 'has(object.data)'\n"
    );
    Config {
        tuning: quick().tuning,
        ..from_file(&text)
    }
}

#[tokio::test]
async fn a_declared_kind_may_be_of_the_core_group() {
    let mut world = World::without_watcher(declared("", "ConfigMap", "configmaps"));
    let uid = world.create(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": NAMESPACE}, "data": {"a": "b"}}));
    world.start().await;
    world.until(|p| p.stored == 1).await;
    assert_eq!(world.copy(&uid)["data"]["a"], "b");
    let result = world.result(&uid);
    assert_eq!(result.data_type, "v1.ConfigMap");
}

#[tokio::test]
async fn a_declared_kind_that_is_cluster_scoped_is_left_alone() {
    let crd = Crd::namespaced("backup.example", "v1", "Vault", "vaults").cluster_scoped();
    let mut world = World::without_watcher(declared("backup.example", "Vault", "vaults"));
    world.sim.install(crd);
    world.create(json!({"apiVersion": "backup.example/v1", "kind": "Vault",
        "metadata": {"name": "v"}, "data": {}}));
    world.start().await;
    world.until(|p| p.is_listed).await;
    world.finished("build");
    world.annotated("build").await;
    assert_eq!(world.sink.records().len(), 1);
    assert_eq!(world.sim.calls().resource("vaults").count(), 0);
}

#[tokio::test]
async fn a_declared_kind_is_stored_judged_and_collected_by_its_expressions() {
    let text = "collect = true\ngrace = '-1s'\nnamespace_overrides = false\n[[kind]]\n\
        group = 'backup.example'\nversion = 'v1'\nkind = 'Snapshot'\nplural = 'snapshots'\n\
        done = \"object.status.state in ['Done', 'Broken']\"\n\
        outcome = \"object.status.state == 'Done' ? 'success' : 'failure'\"\n\
        started = 'object.status.begin'\nended = 'object.status.end'\n\
        group_by = 'object.spec.series'\n";
    let mut config = from_file(text);
    config.tuning = quick().tuning;
    let crd = Crd::namespaced("backup.example", "v1", "Snapshot", "snapshots").without_status();
    let mut world = World::without_watcher(config);
    world.sim.install(crd);
    let snapshot = json!({"apiVersion": "backup.example/v1", "kind": "Snapshot",
        "metadata": {"name": "a", "namespace": NAMESPACE}, "spec": {"series": "nightly-db"},
        "status": {"state": "Busy", "begin": "2026-03-01T10:00:00Z"}});
    let uid = world.create(snapshot);
    world.start().await;
    world.until(|p| p.in_cluster == 1 && p.is_listed).await;
    let patch = json!({"status": {"state": "Broken", "end": "2026-03-01T10:07:00Z"}});
    let change = |patch| {
        let of = ("backup.example", "snapshots");
        world.merge(of.0, of.1, "a", patch);
    };
    change(patch);
    world.until(|p| p.collected == 1).await;
    let record = format!("{NAMESPACE}/results/nightly-db/records/{uid}");
    assert_eq!(world.sink.records(), [record]);
    let result = world
        .sink
        .result(&format!("{NAMESPACE}/results/nightly-db"));
    let summary = result.unwrap().summary.unwrap();
    assert_eq!(summary.status, Outcome::Failure as i32);
    let lasted = summary.end_time.unwrap().seconds - summary.start_time.unwrap().seconds;
    assert_eq!(lasted, 7 * 60);
}
