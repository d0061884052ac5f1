//! From the URL of an object store, and how the environment says it is reached, to its client.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use object_store::{
    ClientConfigKey, Error as StoreError, ObjectStore, ObjectStoreScheme, RetryConfig,
    aws::AmazonS3Builder, azure::MicrosoftAzureBuilder, client::SpawnedReqwestConnector,
    gcp::GoogleCloudStorageBuilder, local::LocalFileSystem, path::Path,
};
use tokio::runtime::Handle;
use url::Url;

use super::{Error, errors::unfit};

/// What goes where, and how long it stays.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// `file:///DIRECTORY`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`.
    pub url: String,
    /// Bodies that take more than so many bytes, as they are stored, lie outside the database.
    pub above: usize,
    /// The same of chunks of sealed logs.
    pub log_above: usize,
    /// How long an object stays after the last row let go of it; for ever if none.
    pub keep: Option<Duration>,
    /// Credentials and such, by the names that [`object_store`] knows. Keys are in lower case.
    pub options: BTreeMap<String, String>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<_> = self.options.keys().collect();
        f.debug_struct("Settings")
            .field("url", &self.url)
            .field("above", &self.above)
            .field("log_above", &self.log_above)
            .field("keep", &self.keep)
            .field("options", &options)
            .finish()
    }
}

/// How long one request to a bucket may take, unless the environment says otherwise.
const REQUEST: &str = "60 seconds";

/// How often, and how long, a request is tried again.
const RETRIES: usize = 4;
const RETRYING: Duration = Duration::from_secs(30);

/// The place for people, the client, and what paths begin with.
type Opened = (String, Arc<dyn ObjectStore>, Path);

/// It fails with [`Error::Incompatible`] if the settings cannot be right.
pub(super) fn open(settings: &Settings) -> Result<Opened, Error> {
    opened(&settings.url, &settings.options, true)
}

/// The same, of what is there already and is not written to.
pub(super) fn open_to_read(url: &str, options: &BTreeMap<String, String>) -> Result<Opened, Error> {
    opened(url, options, false)
}

fn opened(text: &str, options: &BTreeMap<String, String>, makes: bool) -> Result<Opened, Error> {
    let shown = text.trim_end_matches('/');
    // The text may hold a secret, so it is repeated only once it is known to hold none.
    let (url, scheme, path) = parse(text)
        .map_err(|why| Error::Incompatible(format!("the object store cannot be used: {why}")))?;
    let (store, root) = match scheme {
        ObjectStoreScheme::Local => (directory(&url, shown, makes)?, Path::default()),
        scheme => {
            let bucket = bucket(&url, &scheme, options);
            (bucket.map_err(|e| unfit(shown, &e))?, path)
        }
    };
    Ok((shown.to_owned(), store, root))
}

/// What a URL names.
fn parse(text: &str) -> Result<(Url, ObjectStoreScheme, Path), String> {
    const WANT: &str = "want `file:///DIRECTORY`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or \
                        `az://CONTAINER/PREFIX`";
    let url: Url = text
        .parse()
        .map_err(|error| format!("it is no URL: {error}; {WANT}"))?;
    if url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(format!(
            "it holds more than a place; give credentials in the environment; {WANT}"
        ));
    }
    let (scheme, path) = ObjectStoreScheme::parse(&url).map_err(|e| format!("{e}; {WANT}"))?;
    match scheme {
        ObjectStoreScheme::Local
        | ObjectStoreScheme::AmazonS3
        | ObjectStoreScheme::GoogleCloudStorage
        | ObjectStoreScheme::MicrosoftAzure => Ok((url, scheme, path)),
        _ => Err(format!(
            "`{}:` is no object store known here; {WANT}",
            url.scheme()
        )),
    }
}

/// The directory of a `file:` URL. What a write that returned wrote is on disk.
fn directory(url: &Url, shown: &str, makes: bool) -> Result<Arc<dyn ObjectStore>, Error> {
    let refuse = |why: String| {
        Error::Incompatible(format!("the object store `{shown}` cannot be used: {why}"))
    };
    let path: PathBuf = url
        .to_file_path()
        .map_err(|()| refuse("it names no directory; want `file:///DIRECTORY`".to_owned()))?;
    // One whose parent is missing too may be a disk that is not mounted.
    let made = if makes {
        std::fs::create_dir(&path)
    } else {
        Ok(())
    };
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            let text = format!("the directory `{}` cannot be made: {error}", path.display());
            return Err(refuse(text));
        }
        _ => {}
    }
    let store = LocalFileSystem::new_with_prefix(&path).map_err(|e| unfit(shown, &e))?;
    Ok(Arc::new(store.with_fsync(true)))
}

/// The client of a bucket.
fn bucket(
    url: &Url,
    scheme: &ObjectStoreScheme,
    options: &BTreeMap<String, String>,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let retry = RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRYING,
        ..RetryConfig::default()
    };
    macro_rules! build {
        ($builder:ty, $client:path) => {{
            let builder = <$builder>::new()
                .with_url(url.as_str())
                .with_retry(retry)
                .with_config($client(ClientConfigKey::Timeout), REQUEST);
            let builder = match Handle::try_current() {
                // Not where long calls are answered, whose threads let everything else go first.
                Ok(home) => builder.with_http_connector(SpawnedReqwestConnector::new(home)),
                Err(_) => builder,
            };
            let builder = options
                .iter()
                .fold(builder, |builder, (key, value)| match key.parse() {
                    Ok(key) => builder.with_config(key, value),
                    Err(_unknown) => builder,
                });
            Ok(Arc::new(builder.build()?))
        }};
    }
    match scheme {
        ObjectStoreScheme::GoogleCloudStorage => build!(
            GoogleCloudStorageBuilder,
            object_store::gcp::GoogleConfigKey::Client
        ),
        ObjectStoreScheme::MicrosoftAzure => build!(
            MicrosoftAzureBuilder,
            object_store::azure::AzureConfigKey::Client
        ),
        _ => build!(
            AmazonS3Builder,
            object_store::aws::AmazonS3ConfigKey::Client
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::objects::ObjectBackend;

    fn opened(url: &str, options: &[(&str, &str)]) -> Result<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = Settings {
            url: url.to_owned(),
            above: 1,
            log_above: 1,
            keep: None,
            options: options.iter().map(owned).collect(),
        };
        match ObjectBackend::open(&settings) {
            Ok(depot) => Ok(depot.shown(&depot.root().clone().join("x"))),
            Err(Error::Incompatible(why)) => Err(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_kind_of_object_store_is_made_from_its_url_and_the_environment() {
        let region = [("aws_region", "eu-1"), ("google_nothing", "hidden")];
        assert_eq!(
            opened("s3://bucket/a/b", &region).unwrap(),
            "s3://bucket/a/b/x"
        );
        assert_eq!(opened("s3://bucket/", &region).unwrap(), "s3://bucket/x");
        assert_eq!(opened("gs://bucket/a", &[]).unwrap(), "gs://bucket/a/x");
        let account = [
            ("azure_storage_account_name", "account"),
            ("azure_storage_account_key", "aGlkZGVu"),
        ];
        assert_eq!(
            opened("az://container/a", &account).unwrap(),
            "az://container/a/x"
        );
        let folder = tempfile::TempDir::new().unwrap();
        let url = format!("file://{}/new", folder.path().display());
        assert_eq!(opened(&url, &[]).unwrap(), format!("{url}/x"));
        assert!(folder.path().join("new").is_dir(), "it was made");
    }

    #[test]
    fn what_names_no_object_store_is_refused_with_the_remedy() {
        for (url, says) in [
            ("here", "it is no URL"),
            ("memory:///", "no object store known here"),
            ("https://example.com/a", "no object store known here"),
            (
                "s3://user:hidden@bucket/a",
                "give credentials in the environment",
            ),
            (
                "s3://bucket/a?key=hidden",
                "give credentials in the environment",
            ),
            (
                "file:///nowhere/at/all",
                "the directory `/nowhere/at/all` cannot be made",
            ),
            ("az://container/a", "check objects_url and the credentials"),
        ] {
            let why = opened(url, &[]).unwrap_err();
            assert!(why.contains(says), "{url}: {why}");
            assert!(!why.contains("hidden"), "{why}");
        }
    }
}
