//! Lists of logs: each comes once, and none of another parent.

use std::{collections::BTreeSet, num::NonZeroU32};

use super::{
    World,
    fixtures::{record_name, result, result_name},
    logs::{append, key, lines, now, store},
};
use crate::seam::{Change, LogKey, LogKind, LogSource, LogStore, StoredLog};
use hindsight_filter::order::Position;

const UUID: &str = "0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11";
/// A text of as many bytes as a UUID has.
const SIXTEEN: &str = "record-of-run-16";

async fn given(world: &World, name: &str, us: i64) {
    world.given([Change::InsertResult(result(name, us))]).await;
}

async fn page(
    logs: &dyn LogStore,
    scope: &str,
    after: Option<&Position>,
    most: u32,
) -> (Vec<StoredLog>, Option<Position>) {
    let most = NonZeroU32::new(most).expect("it is not 0");
    let scope = scope.parse().expect("it is a pattern");
    let listed = logs.list_logs(&scope, after, most).await.unwrap();
    let is_last = listed.len() < most.get() as usize;
    let last = listed.last().filter(|_| !is_last);
    let next = last.map(|last| last.position.clone());
    (listed.into_iter().filter_map(|it| it.log).collect(), next)
}

/// All pages of a list.
async fn walk(logs: &dyn LogStore, scope: &str, most: u32) -> Vec<StoredLog> {
    let (mut all, mut next) = page(logs, scope, None, most).await;
    while let Some(after) = next {
        let more;
        (more, next) = page(logs, scope, Some(&after), most).await;
        all.extend(more);
    }
    all
}

fn keys(logs: &[StoredLog]) -> Vec<LogKey> {
    logs.iter().map(|log| log.key.clone()).collect()
}

/// Logs of five results, two of which came at one time, and which have 0 to 9 sources; in the order of results, the
/// newest first, but for those two.
async fn given_many(world: &World, logs: &dyn LogStore) -> Vec<(&'static str, Vec<LogKey>)> {
    let mut all = Vec::new();
    for (name, us, runs) in [
        ("p/results/a", 10, vec![UUID, SIXTEEN, "run"]),
        ("cluster/east/namespace/p/results/a", 20, vec!["run"]),
        ("p/results/none", 30, vec![]),
        ("p/results/b", 30, vec!["run", "other"]),
        ("q/results/a", 40, vec![UUID]),
    ] {
        given(world, name, us).await;
        let mut sources = Vec::new();
        for run in runs {
            let run = format!("{name}/records/{run}");
            for (container, restart) in [("step", 0), ("step", 1), ("sidecar", 0)] {
                let mut key = key(&run, container);
                key.source.restart = restart;
                append(logs, &key, vec![lines(0, "a\nb\n")]).await.unwrap();
                sources.push(key);
            }
        }
        all.push((name, sources));
    }
    all.reverse();
    all
}

pub(super) async fn pages_of_logs_have_each_once_and_the_newest_results_first(world: World) {
    let logs = store(&world);
    let mut all = given_many(&world, &*logs).await;
    let upload = LogKey {
        run: record_name("p/results/a/records/upload"),
        kind: LogKind::Uploading,
        source: LogSource::default(),
    };
    append(&*logs, &upload, vec![lines(0, "text")])
        .await
        .unwrap();
    let uploaded = logs.replace_upload(&upload, now()).await.unwrap();
    append(&*logs, &upload, vec![lines(0, "text")])
        .await
        .unwrap();
    let sealed = all[0].1[0].clone();
    logs.seal_log(&sealed, now()).await.unwrap();
    all.last_mut().unwrap().1.push(uploaded.key);
    let replicas = world.replicas().await;
    for scope in [
        "-/results/-",
        "p/results/-",
        "-/results/a",
        "p/results/a",
        "p/results/none",
        "x/results/-",
    ] {
        let (parent, id) = scope.split_once("/results/").unwrap();
        let is_in = |name: &str| {
            let (of, result) = name.split_once("/results/").unwrap();
            (parent == "-" || parent == of) && (id == "-" || id == result)
        };
        let wanted: Vec<_> = all.iter().filter(|(name, _)| is_in(name)).collect();
        let whole = walk(&*logs, scope, 1_000).await;
        for log in &whole {
            assert_eq!(logs.log(&log.key).await.unwrap().as_ref(), Some(log));
        }
        let found = keys(&whole);
        let mut rest = found.as_slice();
        for (name, sources) in wanted {
            let (of_result, others) = rest.split_at(sources.len());
            let sorted: BTreeSet<_> = of_result.iter().collect();
            assert_eq!(sorted, sources.iter().collect(), "{name} in {scope}");
            rest = others;
        }
        assert_eq!(rest, [], "{scope}");
        for most in 1..12 {
            for replica in &replicas.0 {
                let logs = store(replica);
                assert_eq!(
                    keys(&walk(&*logs, scope, most).await),
                    found,
                    "{most} of {scope}"
                );
            }
        }
    }
    replicas.close().await;
}

pub(super) async fn pages_of_logs_are_stable_while_logs_come_and_go(world: World) {
    let logs = store(&world);
    let all = given_many(&world, &*logs).await;
    for most in 1..6 {
        let (mut found, mut next) = page(&*logs, "p/results/-", None, most).await;
        let mut at = 0;
        while let Some(after) = next {
            at += 1;
            let newer = format!("p/results/newer-{most}-{at}");
            given(&world, &newer, 100 + at).await;
            let newer = key(&format!("{newer}/records/run"), "step");
            append(&*logs, &newer, vec![lines(0, "a\n")]).await.unwrap();
            let beside = key("p/results/a/records/run", &format!("new-{most}-{at}"));
            append(&*logs, &beside, vec![lines(0, "a\n")])
                .await
                .unwrap();
            let more;
            (more, next) = page(&*logs, "p/results/-", Some(&after), most).await;
            found.extend(more);
        }
        let found = keys(&found);
        let once: BTreeSet<_> = found.iter().collect();
        assert_eq!(once.len(), found.len(), "pages of {most}");
        let of_parent = all.iter().filter(|(name, _)| name.starts_with("p/"));
        for key in of_parent.flat_map(|(_, sources)| sources) {
            assert!(once.contains(key), "{key:?} in pages of {most}");
        }
        let made = (1..=at).map(|at| format!("p/results/newer-{most}-{at}"));
        for name in made {
            let name = result_name(&name);
            let gone = Change::DeleteResult { name, expect: None };
            world.given([gone]).await;
        }
    }
}

pub(super) async fn a_page_of_logs_after_a_deleted_result_has_none_of_another_parent(world: World) {
    let logs = store(&world);
    given(&world, "p/results/old", 0).await;
    given(&world, "p/results/new", 1).await;
    let of = |name: &str, container| key(&format!("{name}/records/run"), container);
    let keys_of_old = [of("p/results/old", "step")];
    append(&*logs, &keys_of_old[0], vec![lines(0, "a\n")])
        .await
        .unwrap();
    for container in ["a", "b"] {
        let key = of("p/results/new", container);
        append(&*logs, &key, vec![lines(0, "a\n")]).await.unwrap();
    }
    let (first, next) = page(&*logs, "p/results/-", None, 1).await;
    assert_eq!(keys(&first), [of("p/results/new", "a")]);
    let name = result_name("p/results/new");
    world
        .given([Change::DeleteResult { name, expect: None }])
        .await;
    // SQLite gives it the number of the one that was deleted.
    given(&world, "secret/results/new", 1).await;
    let secret = of("secret/results/new", "b");
    append(&*logs, &secret, vec![lines(0, "a\n")])
        .await
        .unwrap();
    let (rest, _) = page(&*logs, "p/results/-", next.as_ref(), 10).await;
    assert_eq!(keys(&rest), keys_of_old);
}
