//! Copying logs: lines are appended to those of the target, so that a copy goes on where it stopped.

use hindsight_logs::{Lines, Window, decode};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{Copy, Event, Said, Source};
use crate::seam::{Error, LogAppend, LogKey, LogKind, LogSource, StoredLog};

/// What an upload is called until it is whole.
const COPIED: &str = "copy";

/// What becomes of a log.
enum Fate {
    Copied,
    Unchanged,
    Refused(String),
}

impl Copy<'_> {
    /// Copies logs, those of results that were refused left out.
    pub(super) async fn logs(&mut self, source: &mut dyn Source) -> Result<(), Error> {
        let total = source.log_total().await?;
        self.stage("logs", total);
        while let Some(page) = source.logs().await? {
            let count = page.count;
            for (log, updated) in page.rows {
                let held = self.logs.log(&log.key).await?;
                let fate = match self.refused.contains(&log.key.run.result().to_string()) {
                    true => Fate::Refused("its result was refused".to_owned()),
                    false => match log.key.kind {
                        LogKind::Container => {
                            self.container(source, &log, held.as_ref(), updated).await?
                        }
                        _ => self.upload(source, &log, held.as_ref(), updated).await?,
                    },
                };
                let outcome = &mut self.outcome.logs;
                match (fate, held) {
                    (Fate::Copied, None) => outcome.created += 1,
                    (Fate::Copied, Some(_)) => outcome.updated += 1,
                    (Fate::Unchanged, _) => outcome.unchanged += 1,
                    (Fate::Refused(why), _) => {
                        outcome.refused += 1;
                        let of = described(&log.key);
                        (self.tell)(Event::Refused(Said { of, why }));
                    }
                }
            }
            let refused = self.say(page.notes, page.refused);
            self.outcome.logs.refused += refused;
            (self.tell)(Event::Seen(count));
        }
        Ok(())
    }

    async fn container(
        &mut self,
        source: &mut dyn Source,
        log: &StoredLog,
        held: Option<&StoredLog>,
        updated: Timestamp,
    ) -> Result<Fate, Error> {
        let other =
            || Fate::Refused("the target has another log of this name, which was kept".to_owned());
        let begun = held.map_or(0, |held| held.lines);
        match held {
            Some(held) if held.sha256.is_some() && held.sha256 == log.sha256 => {
                return Ok(Fate::Unchanged);
            }
            Some(held) if held.sha256.is_some() && log.sha256.is_some() => return Ok(other()),
            _ => {}
        }
        // Which of the two is the longer one is decided by what they have in common.
        let common = begun.min(log.lines);
        if common > 0 && !self.begins_alike(source, log, held, common).await? {
            return Ok(other());
        }
        match held {
            Some(held) if log.sha256.is_none() && held.lines >= log.lines => {
                return Ok(Fate::Unchanged);
            }
            Some(held) if held.sha256.is_some() || held.lines > log.lines => return Ok(other()),
            _ => {}
        }
        if let Some(why) = self.lines(source, log, (&log.key, begun), updated).await? {
            return Ok(Fate::Refused(why));
        }
        if log.sha256.is_some() {
            let sealed = self.logs.seal_log(&log.key, updated).await?;
            return Ok(whole(log, &sealed));
        }
        Ok(Fate::Copied)
    }

    async fn upload(
        &mut self,
        source: &mut dyn Source,
        log: &StoredLog,
        held: Option<&StoredLog>,
        updated: Timestamp,
    ) -> Result<Fate, Error> {
        match held {
            Some(held) if held.sha256 == log.sha256 => return Ok(Fate::Unchanged),
            Some(_) => {
                let why = "the target has another uploaded log of this run, which was kept";
                return Ok(Fate::Refused(why.to_owned()));
            }
            None => {}
        }
        let key = LogKey {
            run: log.key.run.clone(),
            kind: LogKind::Uploading,
            source: LogSource {
                pod: COPIED.to_owned(),
                ..LogSource::default()
            },
        };
        self.logs.delete_log(&key).await?;
        if let Some(why) = self.lines(source, log, (&key, 0), updated).await? {
            return Ok(Fate::Refused(why));
        }
        let stored = self.logs.replace_upload(&key, updated).await;
        Ok(match stored {
            Ok(stored) => whole(log, &stored),
            Err(Error::Missing(_)) => Fate::Refused("its result is not in the target".to_owned()),
            Err(error) => return Err(error),
        })
    }

    /// Appends the lines of a log from a line on; says why not all of them, if so.
    async fn lines(
        &mut self,
        source: &mut dyn Source,
        log: &StoredLog,
        (key, mut line): (&LogKey, i64),
        updated: Timestamp,
    ) -> Result<Option<String>, Error> {
        if line == 0 && log.lines == 0 {
            let append = LogAppend {
                key: key.clone(),
                parts: Vec::new(),
            };
            return self.append(append, updated).await;
        }
        while line < log.lines {
            let lines = match read(source, log, line).await? {
                Ok(lines) => lines,
                Err(why) => return Ok(Some(why)),
            };
            (line, self.outcome.log_bytes) = (
                lines.end(),
                self.outcome.log_bytes + lines.text.len() as u64,
            );
            let append = LogAppend {
                key: key.clone(),
                parts: vec![lines],
            };
            if let Some(why) = self.append(append, updated).await? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    async fn append(&self, append: LogAppend, updated: Timestamp) -> Result<Option<String>, Error> {
        let stored = self.logs.append_logs(&[append], updated).await;
        match stored.into_iter().next() {
            Some(Err(Error::Missing(_))) => Ok(Some("its result is not in the target".to_owned())),
            Some(Err(error @ (Error::OutOfSequence { .. } | Error::Sealed(_)))) => {
                Ok(Some(error.to_string()))
            }
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Ok(None),
        }
    }

    /// Whether source and target have the same text in so many first lines.
    async fn begins_alike(
        &self,
        source: &mut dyn Source,
        log: &StoredLog,
        held: Option<&StoredLog>,
        common: i64,
    ) -> Result<bool, Error> {
        let (mut ours, mut theirs) = (Sha256::new(), Sha256::new());
        let mut line = 0;
        while line < common {
            let Ok(lines) = read(source, log, line).await? else {
                return Ok(false);
            };
            line = lines.end();
            ours.update(&until(&lines, common).text);
        }
        let mut line = 0;
        while line < common {
            let row = held.map_or(0, |held| held.row);
            let chunk = self.logs.next_chunk(row, line, Window::default()).await?;
            let Some(chunk) = chunk else {
                return Ok(false);
            };
            let lines = decode(&chunk)?.from(line);
            line = lines.end();
            theirs.update(&until(&lines, common).text);
        }
        Ok(ours.finalize() == theirs.finalize())
    }
}

/// The lines of the chunk that has this line, from it on; or why there are none.
async fn read(
    source: &mut dyn Source,
    log: &StoredLog,
    line: i64,
) -> Result<Result<Lines, String>, Error> {
    let chunk = match source.log_chunk(log.row, line).await {
        Ok(chunk) => chunk.filter(|chunk| chunk.head.first_line <= line),
        Err(Error::Corrupt(why)) => return Ok(Err(why)),
        Err(error) => return Err(error),
    };
    let Some(chunk) = chunk else {
        return Ok(Err(format!("line {line} of {} is not there", log.lines)));
    };
    Ok(match decode(&chunk) {
        Ok(lines) => Ok(lines.from(line)),
        Err(damaged) => Err(damaged.to_string()),
    })
}

/// The lines before a number.
fn until(lines: &Lines, end: i64) -> Lines {
    let count = usize::try_from(end.saturating_sub(lines.first)).unwrap_or_default();
    lines.slice(0..count.min(lines.len()))
}

/// Whether what was sealed in the target has the digest of the source.
fn whole(log: &StoredLog, sealed: &StoredLog) -> Fate {
    match sealed.sha256 == log.sha256 {
        true => Fate::Copied,
        false => Fate::Refused("its SHA-256 in the source is not that of its lines".to_owned()),
    }
}

fn described(key: &LogKey) -> String {
    let log = format!("{}/logs/{}", key.run.result(), key.run.id());
    let LogSource {
        pod,
        container,
        restart,
    } = &key.source;
    match key.kind {
        LogKind::Container => format!("{log} {pod}/{container}/{restart}"),
        LogKind::Uploaded | LogKind::Uploading => log,
    }
}
