//! Writers and a sweeper that keeps nothing: the sweeper takes what a writer is about to refer to
//! as often as it can, and no row refers to what was taken.

use std::sync::atomic::{AtomicBool, AtomicI64};

use super::*;

const WRITERS: u64 = 6;
const ROUNDS: u64 = 20;

super::on_both! {
    races as sweeping_beside_writers_takes_nothing_that_is_referred_to_on_sqlite
        and sweeping_beside_writers_takes_nothing_that_is_referred_to_on_postgres,
}

async fn races(url: &str) {
    let store = Arc::new(Faulty::default());
    let depot = ObjectBackend::over(Arc::<Faulty>::clone(&store), ABOVE, Some(Duration::ZERO));
    give(url, &depot);
    let world = World::open(url).await;
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let stop = Arc::new(AtomicBool::new(false));
    let hour = Arc::new(AtomicI64::new(0));
    let sweeping = {
        let (world, stop, hour) = (world.clone(), Arc::clone(&stop), Arc::clone(&hour));
        tokio::spawn(async move {
            let mut removed = 0;
            while !stop.load(SeqCst) {
                removed += swept(&world, hour.fetch_add(1, SeqCst)).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            removed
        })
    };
    let writers: Vec<_> = (0..WRITERS)
        .map(|at| tokio::spawn(write(world.clone(), at)))
        .collect();
    let (mut done, mut left) = (0, 0);
    for writer in writers {
        let (did, is_there) = writer.await.unwrap();
        done += did;
        left += usize::from(is_there);
    }
    stop.store(true, SeqCst);
    let removed = sweeping.await.unwrap();
    assert!(
        removed > WRITERS,
        "{removed} objects were removed meanwhile"
    );
    assert!(done > WRITERS * ROUNDS / 2, "{done} writes were done");
    for _ in 0..3 {
        swept(&world, hour.fetch_add(1, SeqCst)).await;
    }
    assert_eq!(store.names().await.len(), left);
    assert_eq!(finds(url, Depth::Full).await, []);
    world.maintenance.close().await;
}

/// Writes one record again and again; says how often that was done, and whether it is there.
async fn write(world: World, writer: u64) -> (u64, bool) {
    let mut dice = Dice::new(writer);
    let name = format!("x{writer}");
    let mut done = 0;
    let mut is: Option<Record> = None;
    for round in 0..ROUNDS {
        let us = i64::try_from(round).unwrap() + 2;
        let value = later_record(&big(&name, 1, writer * 1000 + round), us);
        let (change, after) = match &is {
            None => (Change::InsertRecord(value.clone()), Some(value)),
            Some(was) if dice.once_in(5) => {
                let (name, expect) = (was.name.clone(), Some(was.etag.clone()));
                (Change::DeleteRecord { name, expect }, None)
            }
            Some(was) => {
                let (expect, after) = (was.etag.clone(), Some(value.clone()));
                (Change::ReplaceRecord { expect, value }, after)
            }
        };
        let outcome = match dice.once_in(2) {
            true => world.try_to(change).await,
            false => world.store.commit_each(&[change]).await.remove(0),
        };
        match outcome {
            Ok(()) => {
                is = after;
                done += 1;
            }
            // It was too late again and again.
            Err(Error::Unavailable { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
        let record = big(&name, 1, 0).name;
        assert_eq!(world.record(&record).await, is, "round {round}");
    }
    (done, is.is_some())
}
