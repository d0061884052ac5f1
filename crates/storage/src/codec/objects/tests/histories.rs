//! Random histories of writes, failures, crashes and sweeps against a model: no row loses its
//! object, and in the end no object is left that no row refers to.

use std::collections::BTreeMap;

use super::*;

const STEPS: usize = 120;

super::on_both! {
    histories as no_history_loses_an_object_or_leaves_one_behind_on_sqlite
        and no_history_loses_an_object_or_leaves_one_behind_on_postgres,
}

/// A history under way.
struct History {
    url: String,
    world: World,
    store: Arc<Faulty>,
    dice: Dice,
    model: BTreeMap<String, Record>,
    hour: i64,
    us: i64,
}

async fn histories(url: &str) {
    let (world, store) = faulty(url).await;
    let mut history = History {
        url: url.to_owned(),
        world,
        store,
        dice: Dice::new(2026),
        model: BTreeMap::new(),
        hour: 0,
        us: 10,
    };
    for _ in 0..STEPS {
        history.step().await;
    }
    history.end().await;
}

impl History {
    /// A record with a body of any size, which is not in the store yet in this form.
    fn any(&mut self, name: &str) -> Record {
        self.us += 1;
        let seed = self.dice.below(1_000_000) as u64;
        let mut value = later_record(&big(name, 1, seed), self.us);
        if self.dice.once_in(3) {
            value.data = record(name_of(name).as_str(), 1, &json!({"small": seed})).data;
        }
        value
    }

    /// A change that the model accepts, and what it makes of the model.
    fn change(&mut self) -> (Change, Option<Record>, String) {
        let name = format!("x{}", self.dice.below(12));
        match self.model.get(&name).cloned() {
            None => {
                let value = self.any(&name);
                (Change::InsertRecord(value.clone()), Some(value), name)
            }
            Some(was) if self.dice.once_in(4) => {
                let expect = Some(was.etag);
                let record = was.name;
                (
                    Change::DeleteRecord {
                        name: record,
                        expect,
                    },
                    None,
                    name,
                )
            }
            Some(was) => {
                let value = self.any(&name);
                let expect = was.etag;
                let after = Some(value.clone());
                (Change::ReplaceRecord { expect, value }, after, name)
            }
        }
    }

    async fn step(&mut self) {
        match self.dice.below(12) {
            0..=5 => {
                let (change, after, name) = self.change();
                self.world.given([change]).await;
                self.then(name, after);
            }
            6 => {
                // Several at once, each of another record.
                let mut changes = BTreeMap::new();
                for _ in 0..4 {
                    let (change, after, name) = self.change();
                    changes.insert(name, (change, after));
                }
                let list: Vec<_> = changes.values().map(|(change, _)| change.clone()).collect();
                let done = self.world.store.commit_each(&list).await;
                assert!(done.iter().all(Result::is_ok), "{done:?}");
                for (name, (_, after)) in changes {
                    self.then(name, after);
                }
            }
            7 => {
                let (change, ..) = self.change();
                let is_big = matches!(
                    &change,
                    Change::InsertRecord(value) | Change::ReplaceRecord { value, .. }
                        if value.data.as_ref().is_some_and(|data| data.value.len() > ABOVE)
                );
                if is_big {
                    cut_off(&self.world, &self.store, change).await;
                }
            }
            8 => {
                let (change, after, name) = self.change();
                self.store.no_puts.store(true, SeqCst);
                match self.world.try_to(change).await {
                    Ok(()) => self.then(name, after),
                    Err(error) => assert!(
                        matches!(error, Error::ObjectStoreUnavailable { .. }),
                        "{error:?}"
                    ),
                }
                self.store.no_puts.store(false, SeqCst);
            }
            9 => {
                // Refused after its upload.
                let taken = self.model.values().next().cloned();
                if let Some(taken) = taken {
                    let again = self.world.try_to(Change::InsertRecord(taken)).await;
                    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
                }
            }
            10 => {
                self.hour += i64::try_from(self.dice.below(3)).unwrap();
                self.store.no_deletes.store(self.dice.once_in(3), SeqCst);
                let most = NonZeroU32::new(3).unwrap();
                let swept = self
                    .world
                    .maintenance
                    .sweep_objects(hours(self.hour), most)
                    .await;
                assert!(
                    matches!(swept, Ok(_) | Err(Error::ObjectStoreUnavailable { .. })),
                    "{swept:?}"
                );
                self.store.no_deletes.store(false, SeqCst);
            }
            _ => {
                self.world.maintenance.close().await;
                self.world = World::open(&self.url).await;
            }
        }
        self.agrees().await;
    }

    fn then(&mut self, name: String, after: Option<Record>) {
        match after {
            Some(record) => drop(self.model.insert(name, record)),
            None => drop(self.model.remove(&name)),
        }
    }

    async fn agrees(&self) {
        let listed = self.world.store.list_records(&everything()).await.unwrap();
        let listed: BTreeMap<_, _> = listed
            .into_iter()
            .map(|listed| (listed.item.name.id().to_owned(), listed.item))
            .collect();
        assert!(listed == self.model, "the records are those of the model");
    }

    /// Sweeps until nothing is left to be swept.
    async fn end(self) {
        for more in 1..4 {
            while swept(&self.world, self.hour + 2 * more).await > 0 {}
        }
        let big = |record: &&Record| {
            let data = record.data.as_ref();
            data.is_some_and(|data| data.value.len() > ABOVE)
        };
        let wanted = self.model.values().filter(big).count();
        assert_eq!(self.store.names().await.len(), wanted);
        assert!(wanted > 0, "some are there in the end");
        assert_eq!(finds(&self.url, Depth::Full).await, []);
        self.agrees().await;
        self.world.maintenance.close().await;
    }
}

fn name_of(name: &str) -> String {
    format!("a/results/r/records/{name}")
}
