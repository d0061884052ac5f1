//! Pipelines of packages that are downloaded, from a server that seems to have a public address.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use hindsight_kfp::{
    AskedPipeline, AskedVersion, Pipelines,
    download::{Downloader, Network, Policy},
    query::{ListAsk, Query, Scope},
    store::PipelineStore,
};
use rustls::{ClientConfig, RootCertStore};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{at, on_databases, spec, tags};

#[derive(Debug)]
struct Net(SocketAddr);

#[async_trait]
impl Network for Net {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![IpAddr::from([93, 184, 216, 34])])
    }

    async fn connect(&self, _address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(self.0).await
    }
}

/// Pipelines of a store, and of packages on a server: a good one, and one that is none.
async fn pipelines(store: Arc<dyn PipelineStore>) -> Pipelines {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let good = spec("hello").pipeline.to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let body = match request.split(' ').nth(1) {
                Some("/hello.json") => Some(good.as_str()),
                Some("/none.json") => Some("{}"),
                _ => None,
            };
            let answer = match body {
                Some(body) => format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}"),
                None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            };
            drop(stream.write_all(answer.as_bytes()).await);
        }
    });
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let policy = Policy {
        allow_http: true,
        ..Policy::default()
    };
    let downloader = Downloader::trusting(policy, Arc::new(Net(server)), tls);
    Pipelines::new(store, downloader, false)
}

async fn count(store: &dyn PipelineStore) -> u64 {
    let scope = Scope::Pipelines {
        namespace: String::new(),
    };
    let query = Query::new(scope, &ListAsk::default(), usize::MAX).unwrap();
    store.pipelines(&query).await.unwrap().total
}

#[tokio::test]
async fn kfp_43_a_package_becomes_a_pipeline_and_a_version_or_neither() {
    on_databases(async |store: Arc<dyn PipelineStore>| {
        let pipelines = pipelines(Arc::clone(&store)).await;
        let now = at(1_700_000_000);
        let beside = || AskedVersion {
            name: "ignored".to_owned(),
            tags: tags(&[("a", "b")]),
            code_source_url: "https://example.com".to_owned(),
            ..AskedVersion::default()
        };
        let url = "http://a.example/hello.json";
        let asked = AskedPipeline {
            display_name: "Hello".to_owned(),
            description: "d".to_owned(),
            ..AskedPipeline::default()
        };
        let made = pipelines.create_both(asked, beside(), url, now).await;
        let (pipeline, version) = made.unwrap();
        assert_eq!(
            (
                &*pipeline.name,
                &*version.name,
                &*version.display_name,
                &*version.description
            ),
            ("Hello", "Hello", "Hello", "d")
        );
        assert_eq!(
            (&*version.package_url, &version.tags),
            (url, &tags(&[("a", "b")]))
        );
        assert_eq!(version.spec, Ok(spec("hello")));
        let unnamed = AskedPipeline::default();
        let made = pipelines.create_both(unnamed, beside(), url, now).await;
        assert_eq!(made.unwrap().0.name, "hello.json");
        for (url, why) in [
            ("http://a.example/none.json", "unknown template format"),
            ("http://a.example/missing.json", "Request returned 404"),
            (
                "http://127.0.0.1/hello.json",
                "Pipeline URL validation failed",
            ),
        ] {
            let asked = AskedPipeline {
                name: "other".to_owned(),
                ..AskedPipeline::default()
            };
            let refused = pipelines.create_both(asked, beside(), url, now).await;
            let said = refused.unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
        assert_eq!(count(&*store).await, 2);
    })
    .await;
}

#[tokio::test]
async fn kfp_44_a_package_becomes_a_version_of_a_pipeline() {
    on_databases(async |store: Arc<dyn PipelineStore>| {
        let pipelines = pipelines(Arc::clone(&store)).await;
        let now = at(1_700_000_000);
        let pipeline = store.create_pipeline(crate::pipeline("p")).await.unwrap();
        let url = "http://a.example/hello.json";
        let create = |asked| pipelines.create_version(&pipeline, asked, url, now);
        let version = create(AskedVersion::default()).await.unwrap();
        assert_eq!((&*version.name, &*version.package_url), ("hello.json", url));
        let twice = create(AskedVersion::default()).await.unwrap_err();
        assert!(
            twice
                .to_string()
                .contains("already exist. Specify a new name"),
            "{twice}"
        );
        let refused = AskedVersion {
            tags: tags(&[("a.b", "")]),
            ..AskedVersion::default()
        };
        assert!(
            create(refused)
                .await
                .unwrap_err()
                .to_string()
                .contains("must not contain '.'")
        );
    })
    .await;
}
