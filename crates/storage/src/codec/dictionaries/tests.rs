//! Which bodies become dictionaries, and what is asked of the database.

use async_trait::async_trait;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::{
    codec::{
        body::{Codec, Packed},
        dictionary::NewDictionary,
        prepare::ready,
        row::PreparedChange,
    },
    seam::{Batch, Change},
};
use hindsight_filter::model::{Etag, Payload, Record};

/// Dictionaries in memory, and how often somebody asked.
#[derive(Debug, Default)]
struct Table {
    dictionaries: Mutex<Vec<StoredDictionary>>,
    keys: Mutex<HashMap<Key, i64>>,
    questions: Mutex<Vec<&'static str>>,
}

impl Table {
    fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.questions.lock().unwrap())
    }

    fn count(&self) -> usize {
        self.dictionaries.lock().unwrap().len()
    }
}

#[async_trait]
impl DictionaryStore for Table {
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredDictionary)>, Error> {
        self.questions.lock().unwrap().push("current");
        let dictionaries = self.dictionaries.lock().unwrap();
        let current = self.keys.lock().unwrap();
        let found = keys.iter().filter_map(|key| {
            let id = current.get(key)?;
            let dictionary = dictionaries
                .iter()
                .find(|dictionary| dictionary.id == *id)?;
            Some((*key, dictionary.clone()))
        });
        Ok(found.collect())
    }

    async fn dictionaries(&self, ids: &[i64]) -> Result<Vec<StoredDictionary>, Error> {
        self.questions.lock().unwrap().push("dictionaries");
        let dictionaries = self.dictionaries.lock().unwrap();
        Ok(dictionaries
            .iter()
            .filter(|dictionary| ids.contains(&dictionary.id))
            .cloned()
            .collect())
    }

    async fn put(&self, new: Vec<NewDictionary>) -> Result<(), Error> {
        self.questions.lock().unwrap().push("put");
        tokio::task::yield_now().await;
        let mut dictionaries = self.dictionaries.lock().unwrap();
        for new in new {
            let known = dictionaries
                .iter()
                .find(|dictionary| dictionary.sha256 == new.sha256);
            let id = match known {
                Some(dictionary) => dictionary.id,
                None => {
                    let id = i64::try_from(dictionaries.len()).unwrap() + 1;
                    dictionaries.push(StoredDictionary {
                        id,
                        sha256: new.sha256.to_vec(),
                        size: new.size,
                        bytes: new.bytes.to_vec(),
                    });
                    id
                }
            };
            let mut keys = self.keys.lock().unwrap();
            for key in new.keys {
                if new.replaces {
                    keys.insert(key, id);
                } else {
                    keys.entry(key).or_insert(id);
                }
            }
        }
        Ok(())
    }
}

/// Text that does not compress, the same for the same seed.
fn text(seed: u64) -> String {
    (0..64_u64)
        .map(|at| {
            let digest = Sha256::digest((seed * 1000 + at).to_le_bytes());
            u64::from_le_bytes(digest[..8].try_into().unwrap())
        })
        .map(|number| format!("{number:016x}"))
        .collect()
}

/// A task run, finished unless told otherwise.
fn run(at: u64, pipeline: &str, task: &str, script: u64) -> Value {
    json!({"kind": "TaskRun",
        "metadata": {"name": format!("{pipeline}-{at}-{task}"),
            "labels": {"tekton.dev/pipeline": pipeline, "tekton.dev/pipelineTask": task}},
        "spec": {"script": text(script)},
        "status": {"conditions": [{"type": "Succeeded", "status": "True"}],
            "completionTime": "2026-01-01T00:00:00Z"}})
}

fn change(object: &Value) -> Change {
    let time = jiff::Timestamp::UNIX_EPOCH;
    Change::InsertRecord(Record {
        name: "a/results/r/records/x".parse().unwrap(),
        uid: "u".to_owned(),
        etag: Etag::new("u", time),
        create_time: time,
        update_time: time,
        data: Some(Payload::new(
            "tekton.dev/v1.TaskRun".to_owned(),
            object.to_string().into(),
        )),
    })
}

async fn pack(dictionaries: &DictionaryCache, table: &Table, objects: &[Value]) -> Vec<Packed> {
    let changes = objects.iter().map(change).collect();
    let ready = ready(
        &Batch { changes },
        Some(dictionaries),
        table,
        &std::sync::Arc::default(),
        None,
    )
    .await
    .unwrap();
    let body = |ready: &PreparedChange| ready.record_row().unwrap().body.clone().unwrap();
    ready.iter().map(body).collect()
}

#[tokio::test]
async fn the_second_body_of_a_task_becomes_its_dictionary_and_later_ones_ask_nothing() {
    let (dictionaries, table) = (DictionaryCache::default(), Table::default());
    let first = pack(&dictionaries, &table, &[run(1, "build", "compile", 1)]).await;
    assert_eq!(first[0].codec, Codec::Referring);
    assert_eq!((table.count(), table.asked().len()), (1, 3), "of its type");

    let other = pack(&dictionaries, &table, &[run(1, "build", "test", 2)]).await;
    assert_eq!(table.count(), 1, "a task seen once has no dictionary");
    assert!(other[0].bytes.len() > 500);
    let other = pack(&dictionaries, &table, &[run(2, "build", "test", 2)]).await;
    assert_eq!(table.count(), 2);
    assert!(other[0].bytes.len() < 40, "{}", other[0].bytes.len());

    table.asked();
    let later = pack(&dictionaries, &table, &[run(3, "build", "test", 2)]).await;
    assert!(later[0].bytes.len() < 60, "{}", later[0].bytes.len());
    assert_eq!(table.asked(), [""; 0]);
}

#[tokio::test]
async fn batches_that_meet_a_task_at_once_make_one_dictionary_of_it() {
    let (dictionaries, table) = (DictionaryCache::default(), Table::default());
    let twice = |script| [1, 2].map(|at| run(at, "build", "test", script));
    let (one, other) = (twice(1), twice(2));
    tokio::join!(
        pack(&dictionaries, &table, &one),
        pack(&dictionaries, &table, &other)
    );
    let current: BTreeSet<i64> = table.keys.lock().unwrap().values().copied().collect();
    assert_eq!(table.count(), current.len(), "none that no key has");
}

#[tokio::test]
async fn another_replica_uses_the_dictionaries_that_are_there() {
    let table = Table::default();
    let runs: Vec<Value> = (0..5).map(|at| run(at, "build", "test", 2)).collect();
    pack(&DictionaryCache::default(), &table, &runs).await;
    let count = table.count();
    let again = pack(&DictionaryCache::default(), &table, &runs).await;
    assert_eq!(table.count(), count);
    assert!(again.iter().all(|body| body.bytes.len() < 60));
}

#[tokio::test]
async fn a_dictionary_that_is_gone_is_forgotten_and_others_are_not() {
    let (dictionaries, table) = (DictionaryCache::default(), Table::default());
    for pipeline in ["build", "deploy"] {
        let twice = [1, 2].map(|at| run(at, pipeline, "test", 2));
        pack(&dictionaries, &table, &twice).await;
    }
    let gone = table.dictionaries.lock().unwrap().pop().unwrap().id;
    table.keys.lock().unwrap().retain(|_, id| *id != gone);
    dictionaries.forget_rows(&BTreeSet::from([gone]));

    table.asked();
    pack(&dictionaries, &table, &[run(3, "build", "test", 2)]).await;
    assert_eq!(table.asked(), [""; 0]);
    let asked = dictionaries.load(&table, BTreeSet::from([gone])).await;
    assert!(asked.unwrap().is_empty());
    assert_eq!(table.asked(), ["dictionaries"]);
    let packed = pack(&dictionaries, &table, &[run(3, "deploy", "test", 2)]).await;
    assert_eq!(packed[0].dictionary, Some(1), "that of its type");
}

#[tokio::test]
async fn a_run_that_goes_on_becomes_no_dictionary() {
    let (dictionaries, table) = (DictionaryCache::default(), Table::default());
    let mut going = run(1, "build", "compile", 1);
    going["status"] = json!({});
    pack(&dictionaries, &table, &[going.clone(), going]).await;
    assert_eq!(table.count(), 0);
}

#[tokio::test]
async fn a_dictionary_that_helps_little_is_replaced_after_some_patience() {
    let (dictionaries, table) = (DictionaryCache::default(), Table::default());
    let old = run(1, "build", "compile", 1);
    pack(&dictionaries, &table, &[old.clone(), old]).await;
    let before = table.count();
    let new: Vec<Value> = (0..40).map(|at| run(at, "build", "compile", 9)).collect();
    for run in &new {
        pack(&dictionaries, &table, std::slice::from_ref(run)).await;
    }
    assert_eq!(table.count(), before + 1);
    let last = pack(&dictionaries, &table, &new[39..]).await;
    assert!(last[0].bytes.len() < 60, "{}", last[0].bytes.len());
}

#[tokio::test]
async fn what_is_no_object_refers_to_nothing() {
    let (dictionaries, table) = (DictionaryCache::default(), Table::default());
    // The first bytes of a dictionary in a form of zstd's own.
    let mut bytes = vec![0x37, 0xa4, 0x30, 0xec];
    bytes.extend(text(1).into_bytes());
    let mut change = change(&Value::Null);
    if let Change::InsertRecord(record) = &mut change {
        record.data.as_mut().unwrap().value = bytes.into();
    }
    let changes = vec![change.clone(), change];
    ready(
        &Batch { changes },
        Some(&dictionaries),
        &table,
        &std::sync::Arc::default(),
        None,
    )
    .await
    .unwrap();
    assert_eq!((table.count(), table.asked().len()), (0, 0));
}

#[tokio::test]
async fn memory_is_bounded_and_what_was_forgotten_is_read_again() {
    let (dictionaries, table) = (DictionaryCache::default(), Table::default());
    for at in 0..300_u64 {
        let run = run(at, &format!("pipeline{at}"), "test", at);
        pack(&dictionaries, &table, &[run.clone(), run]).await;
    }
    assert!(table.count() >= 300);
    assert!(dictionaries.cache().weight() <= 32 << 20);
    table.asked();
    let first = run(0, "pipeline0", "test", 0);
    let body = pack(&dictionaries, &table, &[first]).await;
    assert_eq!(table.asked(), ["dictionaries"]);
    assert!(body[0].bytes.len() < 60);
}

#[tokio::test]
async fn a_damaged_dictionary_is_an_error() {
    let table = Table::default();
    let run = run(1, "build", "test", 2);
    let body = pack(&DictionaryCache::default(), &table, &[run]).await;
    table.dictionaries.lock().unwrap()[0].sha256[0] ^= 1;
    let ids = BTreeSet::from([body[0].dictionary.unwrap()]);
    let error = DictionaryCache::default()
        .load(&table, ids)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "stored data is damaged: dictionary 1: its SHA-256 differs"
    );
}
