//! Objects in a directory or a bucket, which a collector of logs or Tekton Results wrote: those below the folder of
//! a run, or one for a run.

mod decode;
mod parts;
mod unzstd;

use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture};
use hindsight_logs::{Template, Variable};
use hindsight_runtime::error::report;
use hindsight_storage as storage;
use hindsight_storage::{
    LogSource,
    objects::{ForeignBytes, ForeignObject, ForeignObjects},
};

pub use self::decode::ObjectFormat;
use self::{decode::Decoder, parts::sources};
use super::{AskedLog, HomeError, LogHome, Spool};

/// Most objects of one run.
const MOST: usize = 2000;

/// Logs in objects.
#[derive(Debug)]
pub struct ObjectLogs {
    name: String,
    objects: ForeignObjects,
    paths: Vec<Template>,
    format: ObjectFormat,
}

fn away(error: &storage::Error) -> HomeError {
    // The URL is in the name; what the client says has no credentials.
    let source = std::error::Error::source(error);
    HomeError::Away(source.map_or_else(|| error.to_string(), report))
}

impl ObjectLogs {
    /// Logs at `paths`, the first at which there is something.
    #[must_use]
    pub fn new(objects: ForeignObjects, paths: Vec<Template>, format: ObjectFormat) -> Self {
        Self {
            name: format!("the object store at {}", objects.url()),
            objects,
            paths,
            format,
        }
    }

    async fn read_run(&self, run: &AskedLog, to: &mut Spool) -> Result<(), HomeError> {
        for template in &self.paths {
            let Some(path) = run.fill(template, safe) else {
                continue;
            };
            let found = match path.ends_with('/') {
                true => self.read_folder(&path, to).await?,
                false => self.read_one(&path, to).await?,
            };
            if found {
                break;
            }
        }
        Ok(())
    }

    /// Reads the only object of a run.
    async fn read_one(&self, path: &str, to: &mut Spool) -> Result<bool, HomeError> {
        let read = self.objects.read(path).await;
        let Some((object, bytes)) = read.map_err(|error| away(&error))? else {
            return Ok(false);
        };
        self.copy(&object, bytes, LogSource::default(), to).await?;
        Ok(true)
    }

    /// Reads the objects below the folder of a run, those of each container one after the other.
    async fn read_folder(&self, folder: &str, to: &mut Spool) -> Result<bool, HomeError> {
        let found = self.objects.list(folder, MOST + 1).await;
        let mut found = found.map_err(|error| away(&error))?;
        let has_more = found.len() > MOST;
        found.truncate(MOST);
        let last = found.iter().map(|object| object.modified).max();
        let sources = sources(folder, found);
        let is_there = !sources.is_empty();
        for (source, objects) in sources {
            for object in objects {
                if to.is_full() {
                    return Ok(true);
                }
                let read = self.objects.read(&object.path).await;
                let Some((_, bytes)) = read.map_err(|error| away(&error))? else {
                    // It was removed since it was listed.
                    continue;
                };
                self.copy(&object, bytes, source.clone(), to).await?;
            }
        }
        if has_more && let Some(last) = last {
            let why =
                format!("more than {MOST} objects belong to this log; the others are not read");
            to.stop(last.as_microsecond(), &why)?;
        }
        Ok(is_there)
    }

    /// Gives the lines of an object.
    async fn copy(
        &self,
        object: &ForeignObject,
        mut bytes: ForeignBytes,
        source: LogSource,
        to: &mut Spool,
    ) -> Result<(), HomeError> {
        let mut decoder = Decoder::new(self.format, source, object.modified);
        while let Some(part) = bytes.next().await {
            let part: Bytes = part.map_err(|error| away(&error))?;
            decoder.take(&part, to).await?;
            if to.is_full() {
                return Ok(());
            }
        }
        decoder.finish(to).await
    }
}

/// A value that is one segment of a path, or of a parent several.
fn safe(variable: Variable, value: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    let is_segment = |text: &str| !matches!(text, "" | "." | "..") && text.chars().all(is_plain);
    let is_safe = match variable {
        Variable::Parent => value.split('/').all(is_segment),
        _ => is_segment(value),
    };
    is_safe.then(|| value.to_owned())
}

impl LogHome for ObjectLogs {
    fn name(&self) -> &str {
        &self.name
    }

    fn read<'a>(
        &'a self,
        run: &'a AskedLog,
        to: &'a mut Spool,
    ) -> BoxFuture<'a, Result<(), HomeError>> {
        Box::pin(self.read_run(run, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_more_than_a_segment_is_in_no_path() {
        for good in ["build-1", "a.b", "..a", "~x"] {
            assert_eq!(safe(Variable::Name, good).unwrap(), good);
        }
        for bad in [
            "..",
            ".",
            "",
            "../../etc/passwd",
            "a/b",
            "a\\b",
            "a\0",
            "é",
            "a b",
            "%2e%2e",
        ] {
            assert_eq!(safe(Variable::Name, bad), None, "{bad}");
        }
        assert!(safe(Variable::Parent, "cluster/east/namespace/ci").is_some());
        assert_eq!(safe(Variable::Parent, "ci/../other"), None);
    }
}
