//! Where rows are: a server, files of its archive, or files alone.

use std::{path::Path as FilePath, sync::Arc};

use datafusion::{
    datasource::object_store::ObjectStoreUrl,
    error::{DataFusionError, Result},
    execution::runtime_env::RuntimeEnv,
};
use futures::TryStreamExt as _;
use hindsight_connect::Connect;
use object_store::{
    ObjectMeta, ObjectStore, aws::AmazonS3Builder, azure::MicrosoftAzureBuilder,
    gcp::GoogleCloudStorageBuilder, local::LocalFileSystem, path::Path,
};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::Error;

/// What Hive calls the directory of rows that have no value.
const NONE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Where rows are.
#[derive(Debug)]
pub enum Source {
    /// A server alone, which reads its archive itself.
    Server(Connect),
    /// A server that says which files of its archive have which records, and the files.
    ServerAndFiles(Connect, Files),
    /// All rows of files, whether or not a server still has them.
    Files(Files),
}

impl Source {
    /// The server, if there is one.
    pub fn connect(&self) -> Option<&Connect> {
        match self {
            Self::Server(connect) | Self::ServerAndFiles(connect, _) => Some(connect),
            Self::Files(_) => None,
        }
    }

    /// Files that are read here.
    pub(crate) fn files(&self) -> Option<&Files> {
        match self {
            Self::Server(_) => None,
            Self::ServerAndFiles(_, files) | Self::Files(files) => Some(files),
        }
    }
}

/// A directory or a bucket of Parquet files.
#[derive(Debug, Clone)]
pub struct Files {
    pub(crate) url: ObjectStoreUrl,
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: Path,
}

/// A file that may have rows.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) meta: ObjectMeta,
    pub(crate) namespace: String,
    pub(crate) cluster: Option<String>,
    /// The day on which results of its rows were stored first, in microseconds since 1970.
    pub(crate) begin: Option<i64>,
}

impl Files {
    /// Those at `place`: a directory, or the URL of a directory or bucket (`file`, `s3`, `gs`, `az`). Credentials of
    /// buckets come from the variables that their providers' tools read. It fails if nothing can be there.
    pub fn at(place: &str) -> std::result::Result<Self, Error> {
        let wrong = |why: String| {
            Error::Statement(format!(
                "`{place}` is not a place of Parquet files: {why}; want a directory, or a URL such as \
                 file:///var/lib/hindsight/archive or s3://bucket/folder"
            ))
        };
        let url = match Url::parse(place) {
            Ok(url) if place.contains("://") => url,
            _ => {
                let path = FilePath::new(place).canonicalize();
                let path = path.map_err(|error| wrong(error.to_string()))?;
                Url::from_directory_path(path)
                    .map_err(|()| wrong("it is not a directory".to_owned()))?
            }
        };
        let built = |built: object_store::Result<Arc<dyn ObjectStore>>| {
            built.map_err(|error| wrong(error.to_string()))
        };
        let store: Arc<dyn ObjectStore> = match url.scheme() {
            "file" => {
                let path = url.to_file_path();
                let path = path.map_err(|()| wrong("it names another machine".to_owned()))?;
                if !path.is_dir() {
                    return Err(wrong("there is no such directory".to_owned()));
                }
                Arc::new(LocalFileSystem::new())
            }
            "s3" | "s3a" => {
                let builder = AmazonS3Builder::from_env().with_url(url.as_str());
                built(builder.build().map(|store| Arc::new(store) as _))?
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str());
                built(builder.build().map(|store| Arc::new(store) as _))?
            }
            "az" | "azure" | "abfs" | "abfss" => {
                let builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str());
                built(builder.build().map(|store| Arc::new(store) as _))?
            }
            other => return Err(wrong(format!("`{other}` is not a kind of store"))),
        };
        let prefix = Path::from_url_path(url.path()).map_err(|error| wrong(error.to_string()))?;
        let root = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
        let url = ObjectStoreUrl::parse(root).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { url, store, prefix })
    }

    /// Lets plans of `runtime` read them.
    pub fn register(&self, runtime: &RuntimeEnv) {
        runtime.register_object_store(self.url.as_ref(), Arc::clone(&self.store));
    }

    /// The path of the file that the server calls so.
    pub(crate) fn path(&self, below: &str) -> Result<Path> {
        let below = Path::parse(below)
            .map_err(|error| DataFusionError::ObjectStore(Box::new(error.into())))?;
        Ok(self.prefix.parts().chain(below.parts()).collect())
    }

    /// All files, by their paths.
    pub(crate) async fn list(&self) -> Result<Vec<Found>> {
        let all: Vec<ObjectMeta> = self.store.list(Some(&self.prefix)).try_collect().await?;
        let mut found: Vec<Found> = all.into_iter().filter_map(found).collect();
        found.sort_by(|a, b| a.meta.location.cmp(&b.meta.location));
        Ok(found)
    }
}

/// What the path of a file says; none if it is no file of rows.
fn found(meta: ObjectMeta) -> Option<Found> {
    if meta.location.extension() != Some("parquet") {
        return None;
    }
    let value = |key: &str| {
        let mut parts = meta.location.parts();
        let value = parts.find_map(|part| {
            let (name, value) = part.as_ref().split_once('=')?;
            (name == key).then(|| value.to_owned())
        })?;
        let value = percent_decode_str(&value).decode_utf8().ok()?.into_owned();
        (value != NONE).then_some(value)
    };
    let date = value("date").and_then(|date| date.parse::<jiff::civil::Date>().ok());
    let begin = date.and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC).ok());
    Some(Found {
        namespace: value("namespace").unwrap_or_default(),
        cluster: value("cluster"),
        begin: begin.map(|begin| begin.timestamp().as_microsecond()),
        meta,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn paths_tell_cluster_namespace_and_day() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "cluster=east/namespace=a%2Fb/date=2026-01-02/x.parquet",
            "cluster=__HIVE_DEFAULT_PARTITION__/namespace=ci/date=2026-01-03/y.parquet",
            "cluster=east/namespace=ci/date=2026-01-03/z.parquet.part",
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let files = Files::at(folder.path().to_str().unwrap()).unwrap();
        let said: Vec<_> = files.list().await.unwrap().into_iter().collect();
        let said: Vec<_> = said
            .iter()
            .map(|file| (file.namespace.as_str(), file.cluster.as_deref(), file.begin))
            .collect();
        let day = 86_400_000_000;
        let first = 20_455 * day;
        let wanted = [
            ("ci", None, Some(first + day)),
            ("a/b", Some("east"), Some(first)),
        ];
        assert_eq!(said, wanted);
    }

    #[test]
    fn what_is_no_place_is_refused_with_a_remedy() {
        for (place, why) in [
            ("/no/such/folder", "No such file"),
            ("file:///no/such/folder", "there is no such directory"),
            ("ftp://host/folder", "`ftp` is not a kind of store"),
        ] {
            let error = Files::at(place).unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("want a directory"),
                "{error}"
            );
        }
    }
}
