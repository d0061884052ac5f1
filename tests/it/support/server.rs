//! A server in this process, on port 0.

use std::{collections::BTreeMap, sync::Arc};

use hindsight::{
    app::{App, Error},
    config::{Config, Sources},
};
use hindsight_client::{Client, Options, Rpc};
use hindsight_proto::v1alpha2 as pb;
use hindsight_runtime::clock::{Clock, SystemClock};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::{Database, each_database};

#[derive(Debug)]
pub struct TestServer {
    pub url: String,
    pub admin: String,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

pub fn config(database: &Database, more: &[(&str, &str)]) -> Config {
    let mut flags: BTreeMap<String, String> = [
        ("db", database.url().as_str()),
        ("listen", "127.0.0.1:0"),
        ("metrics_listen", "127.0.0.1:0"),
    ]
    .iter()
    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
    .collect();
    flags.extend(
        more.iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
    );
    Config::load(&Sources {
        flags,
        ..Sources::default()
    })
    .unwrap()
}

impl TestServer {
    pub async fn start(database: &Database) -> Self {
        Self::start_with(database, &[]).await
    }

    pub async fn start_with(database: &Database, more: &[(&str, &str)]) -> Self {
        Self::start_as(&config(database, more)).await
    }

    pub async fn start_as(config: &Config) -> Self {
        Self::start_at(config, Arc::new(SystemClock)).await
    }

    /// Starts it with a clock.
    pub async fn start_at(config: &Config, clock: Arc<dyn Clock>) -> Self {
        let app = App::bind(config, clock).await.unwrap();
        let shutdown = CancellationToken::new();
        Self {
            url: format!("http://{}", app.address()),
            admin: app.admin_address().unwrap().to_string(),
            task: tokio::spawn(app.run(shutdown.clone())),
            shutdown,
        }
    }

    pub fn client(&self) -> Client {
        Client::new(&Options::new(&self.url)).unwrap()
    }

    pub fn rpc(&self) -> Rpc {
        self.client().rpc()
    }

    /// Tells it to stop, and does not wait.
    pub fn tell_to_stop(&self) {
        self.shutdown.cancel();
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
    }

    pub async fn given_result(&self, name: &str) -> pb::Result {
        let result = pb::Result {
            name: name.to_owned(),
            ..pb::Result::default()
        };
        self.create_result(result).await.unwrap()
    }

    pub async fn create_result(&self, result: pb::Result) -> Result<pb::Result, Status> {
        let request = pb::CreateResultRequest {
            result: Some(result),
            ..Default::default()
        };
        Ok(self.rpc().create_result(request).await?.into_inner())
    }

    pub async fn get_result(&self, name: &str) -> Result<pb::Result, Status> {
        let request = pb::GetResultRequest {
            name: name.to_owned(),
        };
        Ok(self.rpc().get_result(request).await?.into_inner())
    }

    pub async fn delete_record(&self, name: &str) -> Result<(), Status> {
        let request = pb::DeleteRecordRequest {
            name: name.to_owned(),
        };
        self.rpc().delete_record(request).await.map(drop)
    }

    /// Stores a record, and its result if that is not there.
    pub async fn given_record(&self, name: &str, data_type: &str, value: &[u8]) -> pb::Record {
        let (result, _) = name.rsplit_once("/records/").unwrap();
        if self.get_result(result).await.is_err() {
            self.given_result(result).await;
        }
        self.create_record(name, data_type, value).await.unwrap()
    }

    pub async fn create_record(
        &self,
        name: &str,
        data_type: &str,
        value: &[u8],
    ) -> Result<pb::Record, Status> {
        let data = pb::Any {
            r#type: data_type.to_owned(),
            value: value.to_vec().into(),
        };
        let record = pb::Record {
            name: name.to_owned(),
            data: Some(data),
            ..pb::Record::default()
        };
        let request = pb::CreateRecordRequest {
            record: Some(record),
            ..Default::default()
        };
        Ok(self.rpc().create_record(request).await?.into_inner())
    }

    pub async fn get_record(&self, name: &str) -> Result<pb::Record, Status> {
        let request = pb::GetRecordRequest {
            name: name.to_owned(),
        };
        Ok(self.rpc().get_record(request).await?.into_inner())
    }

    /// The last parts of the names of the records that match, in the order they come.
    pub async fn ids(&self, parent: &str, filter: &str) -> Result<Vec<String>, Status> {
        let request = pb::ListRecordsRequest {
            parent: parent.to_owned(),
            filter: filter.to_owned(),
            page_size: 10_000,
            ..pb::ListRecordsRequest::default()
        };
        let records = self.rpc().list_records(request).await?.into_inner().records;
        Ok(records
            .iter()
            .map(|r| r.name.rsplit('/').next().unwrap().to_owned())
            .collect())
    }
}

/// Runs `test` against a server on every database.
pub async fn on_each<F, Fut>(test: F)
where
    F: Fn(Arc<TestServer>) -> Fut,
    Fut: Future<Output = ()>,
{
    for database in each_database().await {
        let server = Arc::new(TestServer::start(&database).await);
        test(Arc::clone(&server)).await;
        Arc::into_inner(server)
            .expect("the test lets go of the server")
            .stop()
            .await;
        database.remove().await;
    }
}

/// The code and text of a refusal.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, says: &str) {
    let status = answer.expect_err("the call is refused");
    assert_eq!(status.code(), code, "{status:?}");
    assert!(
        status.message().contains(says),
        "`{}` does not say `{says}`",
        status.message()
    );
}
