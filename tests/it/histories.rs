//! Random histories of creates, updates, deletes and upserts, judged by a map in memory: after
//! every step each answer is the one that the map gives, and in the end the rows are the map's.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
};

use futures::stream;
use hindsight_proto::{
    v1::{Effect, UpsertRequest, upsert_outcome::Outcome},
    v1alpha2 as pb,
};
use serde_json::json;
use tonic::Code;

use crate::support::{
    TestServer,
    objects::{TASK_RUN, bytes, task_run},
    server::on_each,
};

/// Steps of one history, and how many there are on each database.
const STEPS: u64 = 150;
const HISTORIES: u64 = 3;

/// A state of one run: its resourceVersion, and whether it is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    version: u64,
    done: bool,
}

impl State {
    /// The later state stays: what is finished, and of two such that with the higher version.
    fn gives_way_to(self, new: Self) -> bool {
        match (self.done, new.done) {
            (true, true) => new.version > self.version,
            (true, false) => false,
            (false, _) => new != self,
        }
    }

    fn bytes(self, name: &str) -> Vec<u8> {
        let mut run = task_run(name, "Succeeded");
        run["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if !self.done {
            run["status"]["conditions"][0]["status"] = json!("Unknown");
        }
        bytes(&run)
    }
}

#[derive(Debug, Default)]
struct Model {
    results: BTreeSet<String>,
    records: BTreeMap<String, State>,
}

impl Model {
    fn create(&mut self, name: &str, state: State) -> Code {
        if !self.results.contains(result(name)) {
            return Code::NotFound;
        }
        if self.records.contains_key(name) {
            return Code::AlreadyExists;
        }
        self.records.insert(name.to_owned(), state);
        Code::Ok
    }

    /// A plain update is what its caller says, whatever was there.
    fn update(&mut self, name: &str, state: State) -> Code {
        match self.records.get_mut(name) {
            Some(stored) => {
                *stored = state;
                Code::Ok
            }
            None => Code::NotFound,
        }
    }

    fn upsert(&mut self, name: &str, state: State) -> Effect {
        self.results.insert(result(name).to_owned());
        match self.records.get_mut(name) {
            None => {
                self.records.insert(name.to_owned(), state);
                Effect::Created
            }
            Some(stored) if stored.gives_way_to(state) => {
                *stored = state;
                Effect::Updated
            }
            Some(_) => Effect::Unchanged,
        }
    }

    fn delete(&mut self, name: &str) -> Code {
        match self.records.remove(name) {
            Some(_) => Code::Ok,
            None => Code::NotFound,
        }
    }

    fn delete_result(&mut self, name: &str) -> Code {
        self.records.retain(|record, _| result(record) != name);
        if self.results.remove(name) {
            Code::Ok
        } else {
            Code::NotFound
        }
    }
}

fn result(record: &str) -> &str {
    record.split_once("/records/").unwrap().0
}

/// Numbers that follow from the history and the step alone.
#[derive(Debug)]
struct Dice(u64, u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.1 += 1;
        BuildHasherDefault::<DefaultHasher>::default().hash_one((self.0, self.1)) % most
    }

    fn name(&mut self) -> String {
        let (result, record) = (self.below(4), self.below(5));
        format!("ci/results/r{result}/records/x{record}")
    }

    fn state(&mut self) -> State {
        State {
            version: 1 + self.below(6),
            done: self.below(2) == 0,
        }
    }
}

fn code<T>(answer: Result<T, tonic::Status>) -> Code {
    answer.map_or_else(|status| status.code(), |_| Code::Ok)
}

fn record(name: &str, state: State) -> pb::Record {
    let data = pb::Any {
        r#type: TASK_RUN.to_owned(),
        value: state.bytes(name).into(),
    };
    pb::Record {
        name: name.to_owned(),
        data: Some(data),
        ..pb::Record::default()
    }
}

/// Sends some upserts as one stream: those of one record come in order.
async fn upsert(server: &TestServer, all: &[(String, State)]) -> Vec<Effect> {
    let requests = (0_u64..).zip(all).map(|(id, (name, state))| UpsertRequest {
        id,
        record: Some(record(name, *state)),
        ..UpsertRequest::default()
    });
    let requests: Vec<_> = requests.collect();
    let mut ingest = server.client().ingest();
    let answers = ingest.upsert(stream::iter(requests)).await.unwrap();
    let mut answers = answers.into_inner();
    let mut effects = BTreeMap::new();
    while let Some(answer) = answers.message().await.unwrap() {
        for outcome in answer.outcomes {
            let Some(Outcome::Stored(stored)) = outcome.outcome else {
                panic!("{outcome:?}");
            };
            effects.insert(outcome.id, stored.record());
        }
    }
    effects.into_values().collect()
}

async fn step(server: &TestServer, model: &mut Model, dice: &mut Dice) {
    let (name, state) = (dice.name(), dice.state());
    let mut rpc = server.rpc();
    match dice.below(12) {
        0 => {
            let request = pb::DeleteResultRequest {
                name: result(&name).to_owned(),
            };
            let got = code(rpc.delete_result(request).await);
            assert_eq!(got, model.delete_result(result(&name)), "{name}");
        }
        1 | 2 => {
            let request = pb::DeleteRecordRequest { name: name.clone() };
            let got = code(rpc.delete_record(request).await);
            assert_eq!(got, model.delete(&name), "{name}");
        }
        3 | 4 => {
            let got = code(
                server
                    .create_record(&name, TASK_RUN, &state.bytes(&name))
                    .await,
            );
            assert_eq!(got, model.create(&name, state), "{name}");
        }
        5 | 6 => {
            let request = pb::UpdateRecordRequest {
                record: Some(record(&name, state)),
                ..Default::default()
            };
            let got = code(rpc.update_record(request).await);
            assert_eq!(got, model.update(&name, state), "{name}");
        }
        _ => {
            let mut all = vec![(name, state)];
            for _ in 0..dice.below(9) {
                all.push((dice.name(), dice.state()));
            }
            let got = upsert(server, &all).await;
            let effects = all.iter().map(|(name, state)| model.upsert(name, *state));
            assert_eq!(got, effects.collect::<Vec<_>>(), "{all:?}");
        }
    }
}

#[tokio::test]
async fn every_history_is_that_of_the_model() {
    on_each(|server| async move {
        for history in 0..HISTORIES {
            let (mut model, mut dice) = (Model::default(), Dice(history, 0));
            for _ in 0..STEPS {
                step(&server, &mut model, &mut dice).await;
            }
            let request = pb::ListRecordsRequest {
                parent: "-/results/-".to_owned(),
                page_size: 1000,
                ..pb::ListRecordsRequest::default()
            };
            let page = server.rpc().list_records(request).await.unwrap();
            let stored = page.into_inner().records.into_iter();
            let stored: BTreeMap<_, _> = stored
                .map(|record| (record.name, record.data.unwrap().value.to_vec()))
                .collect();
            let wanted = model.records.iter();
            let wanted = wanted.map(|(name, state)| (name.clone(), state.bytes(name)));
            assert_eq!(stored, wanted.collect(), "history {history}");
            for name in &model.results {
                let request = pb::DeleteResultRequest { name: name.clone() };
                server.rpc().delete_result(request).await.unwrap();
            }
        }
    })
    .await;
}
