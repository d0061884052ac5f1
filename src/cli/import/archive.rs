//! `hindsight import kubearchive` and `hindsight import argo-archive`.

mod cursor;

use std::{path::PathBuf, process::ExitCode, time::Instant};

use clap::{ArgMatches, Args, FromArgMatches as _};
use hindsight_client::Batched;
use hindsight_proto::names::Parent;
use hindsight_run::{Kind, SummaryPolicy, View, upload};
use hindsight_runtime::error::report;
use hindsight_storage::archive::{Archive, Page, Reader, Row, place};

use self::cursor::Cursor;
use super::{Count, Parents, chains, parent};
use crate::{
    cli::{
        connect::Connect,
        failure::{Failure, of_store},
        output, progress, runtime,
    },
    import::Object,
};

/// Store the runs that the database of KubeArchive holds, which is only read
///
/// The database is PostgreSQL, MySQL or MariaDB. Objects of other kinds, such as pods, are left out, and so are
/// logs. Payloads are the text of the stored JSON, as the database writes it.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Runs get the names that the watcher would give them, so that importing again, or watching the cluster
afterwards, doubles nothing. Runs that cannot be stored are listed with the reason.

Exit codes: 0 all is there, 1 runs were refused and listed, or it could not be imported, 5 database or server
not reachable, 6 --verify found a difference.

Examples:
  hindsight import kubearchive postgres://kubearchive:secret@127.0.0.1/kubearchive --dry-run
  hindsight import kubearchive postgres://kubearchive:secret@127.0.0.1/kubearchive --cursor import.cursor
  hindsight import kubearchive postgres://kubearchive:secret@db.example/kubearchive --cluster-id east --verify"
)]
pub(in crate::cli) struct KubeArchive {
    #[command(flatten)]
    of: Archived,
}

/// Store the workflows of Argo's workflow archive, which is only read
///
/// The database is PostgreSQL, MySQL or MariaDB. Payloads are the text of the stored JSON, as the database writes
/// it, with the NUL characters that Argo replaced. Workflows whose nodes are offloaded to another table keep that reference.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Workflows get the names that the watcher would give them, so that importing again, or watching the
cluster afterwards, doubles nothing. Workflows that cannot be stored are listed with the reason.

Exit codes: 0 all is there, 1 runs were refused and listed, or it could not be imported, 5 database or server
not reachable, 6 --verify found a difference.

Examples:
  hindsight import argo-archive postgres://argo:secret@127.0.0.1/argo --dry-run
  hindsight import argo-archive postgres://argo:secret@127.0.0.1/argo --cursor import.cursor
  hindsight import argo-archive mysql://argo:secret@db.example/argo --from-cluster default --cluster-id east"
)]
pub(in crate::cli) struct ArgoArchive {
    /// The cluster name in the archive whose workflows are read, if it has several
    #[arg(long, value_name = "NAME", help_heading = "Source")]
    from_cluster: Option<String>,

    #[command(flatten)]
    of: Archived,
}

/// What both imports are asked.
#[derive(Debug, Args)]
struct Archived {
    /// The database to read, `postgres://USER:PASSWORD@HOST:PORT/DATABASE` or `mysql://…`
    #[arg(value_name = "URL")]
    from: String,

    /// Read everything and say what cannot be stored, but store nothing
    #[arg(long, conflicts_with_all = ["cursor", "verify"])]
    dry_run: bool,

    /// File that says how far the import is; the same command goes on there
    #[arg(long, value_name = "FILE")]
    cursor: Option<PathBuf>,

    /// In the end, compare every run with what the server has
    #[arg(long)]
    verify: bool,

    /// Store runs as a watcher with this `cluster_id` does
    #[arg(long, value_name = "ID", conflicts_with = "parent")]
    cluster_id: Option<String>,

    /// Store everything under this parent instead of the namespace of each run
    #[arg(long, value_name = "PARENT")]
    parent: Option<String>,

    /// How many runs to send at once
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,

    #[command(flatten)]
    connect: Connect,
}

pub(in crate::cli) fn kubearchive(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = KubeArchive::from_arg_matches(matches);
    let KubeArchive { of } = given.map_err(|error| Failure::usage(error.to_string()))?;
    let kinds = Kind::all();
    let kinds = kinds.iter().map(|kind| kind.kind.to_owned());
    let archive = Archive::KubeArchive {
        kinds: kinds.collect(),
    };
    runtime()?.block_on(of.import(archive, "KubeArchive"))
}

pub(in crate::cli) fn argo(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = ArgoArchive::from_arg_matches(matches);
    let given = given.map_err(|error| Failure::usage(error.to_string()))?;
    let archive = Archive::Argo {
        cluster: given.from_cluster,
    };
    runtime()?.block_on(given.of.import(archive, "Argo's workflow archive"))
}

/// What became of the rows.
#[derive(Debug, Default)]
struct Told {
    count: Count,
    /// Objects of other kinds.
    skipped: u64,
    /// Runs that a dry run would store.
    fit: u64,
}

impl Archived {
    async fn import(&self, archive: Archive, name: &str) -> Result<ExitCode, Failure> {
        let parents = self.parents()?;
        let from = Cursor::open(self.cursor.as_deref(), &self.said(&archive, name)?)?;
        if from.done {
            output::note(
                "the cursor says that the import is done; delete its file to import again",
            );
            return Ok(ExitCode::SUCCESS);
        }
        let client = match self.dry_run {
            true => None,
            false => Some(self.connect.client()?.batched()),
        };
        let began = Instant::now();
        let reader = self.reader(&archive, from.after.as_deref()).await?;
        let told = self
            .read(reader, client.as_ref(), &parents, Some(from), "runs")
            .await?;
        if told.skipped > 0 {
            output::note(&format!(
                "skipped {} objects that are no runs",
                told.skipped
            ));
        }
        if self.dry_run {
            output::say(&format!(
                "{} runs of {name} would be stored, {} refused",
                told.fit, told.count.refused
            ))?;
            return Ok(told.count.code());
        }
        let code = told.count.conclude(name, began.elapsed())?;
        match client.filter(|_| self.verify) {
            Some(client) => self.verified(&archive, &client, &parents).await,
            None => Ok(code),
        }
    }

    /// Sends everything once more, which changes nothing if all of it is there.
    async fn verified(
        &self,
        archive: &Archive,
        client: &Batched,
        parents: &Parents,
    ) -> Result<ExitCode, Failure> {
        let reader = self.reader(archive, None).await?;
        let told = self
            .read(reader, Some(client), parents, None, "compared")
            .await?;
        let count = told.count;
        let differ = count.created + count.updated;
        output::say(&format!(
            "verified: {} runs are in the server with the same content, {differ} were not",
            count.unchanged
        ))?;
        Ok(match differ {
            0 => count.code(),
            _ => ExitCode::from(Failure::DAMAGED),
        })
    }

    /// What is imported from where to where: a cursor of something else has passed over other runs.
    fn said(&self, archive: &Archive, name: &str) -> Result<String, Failure> {
        let place = place(&self.from).map_err(|error| of_store(&error))?;
        let mut said = format!("{name} in {place}");
        if let Archive::Argo {
            cluster: Some(cluster),
        } = archive
        {
            said += &format!(", cluster {cluster}");
        }
        match (&self.cluster_id, &self.parent) {
            (Some(id), _) => said += &format!(", into the cluster {id}"),
            (None, Some(parent)) => said += &format!(", into the parent {parent}"),
            (None, None) => {}
        }
        Ok(said)
    }

    async fn reader(&self, archive: &Archive, after: Option<&str>) -> Result<Reader, Failure> {
        let reader = Reader::open(&self.from, archive.clone(), after).await;
        reader.map_err(|error| of_store(&error))
    }

    /// Reads to the end, and sends what is read.
    async fn read(
        &self,
        mut reader: Reader,
        client: Option<&Batched>,
        parents: &Parents,
        mut cursor: Option<Cursor>,
        what: &'static str,
    ) -> Result<Told, Failure> {
        let store = |error| of_store(&error);
        let bar = progress::bar(what, reader.left().await.map_err(store)?);
        let mut told = Told::default();
        while let Some(Page { rows, after }) = reader.next().await.map_err(store)? {
            let read = rows.len() as u64;
            let mut objects = Vec::with_capacity(rows.len());
            for row in rows {
                let of = row.of.clone();
                match object(row) {
                    Ok(Some(object)) => objects.push(object),
                    Ok(None) => told.skipped += 1,
                    Err(why) => bar.suspend(|| told.count.refuse(&of, &why)),
                }
            }
            match client {
                None => bar.suspend(|| told.try_all(&objects, parents)),
                Some(client) => {
                    let chains = chains(objects, parents);
                    let sent = told.count.send(client, chains, self.concurrency, || {});
                    sent.await.map_err(|status| self.connect.failure(&status))?;
                }
            }
            bar.inc(read);
            if let Some(cursor) = &mut cursor {
                cursor.reach(after)?;
            }
        }
        bar.finish_and_clear();
        if let Some(mut cursor) = cursor {
            cursor.end()?;
        }
        Ok(told)
    }

    /// The parents under which runs are stored.
    fn parents(&self) -> Result<Parents, Failure> {
        let Some(id) = &self.cluster_id else {
            return Ok(Parents::of(parent(self.parent.as_deref())?));
        };
        let any = format!("cluster/{id}/namespace/any").parse::<Parent>();
        match any {
            Ok(_) if !id.contains('/') => Ok(Parents::Cluster(id.clone())),
            _ => Err(Failure::usage(format!(
                "--cluster-id: `{id}` cannot name a cluster"
            ))),
        }
    }
}

impl Told {
    /// Counts what could be stored.
    fn try_all(&mut self, objects: &[Object], parents: &Parents) {
        for object in objects {
            let view = View::new(&object.value);
            let policy = SummaryPolicy::default();
            let made = parents
                .of_object(&view)
                .map_err(Into::into)
                .and_then(|parent| upload(&view, parent, &policy));
            match made {
                Ok(_) => self.fit += 1,
                Err(error) => {
                    let name = view.name().unwrap_or("?");
                    self.count.refuse(name, &report(&error));
                }
            }
        }
    }
}

/// The run in a row; none if it is something else.
fn object(row: Row) -> Result<Option<Object>, String> {
    let bytes = row.object.map_err(|size| match size {
        0 => "it has no object".to_owned(),
        size => format!("its object has {size} bytes, more than any message may have"),
    })?;
    let object =
        Object::exact(bytes).map_err(|error| format!("its object is not JSON: {error}"))?;
    if !object.value.is_object() {
        return Err("its object is not one of Kubernetes".to_owned());
    }
    if Kind::of(&object.value).is_none() {
        return Ok(None);
    }
    match View::new(&object.value).uid() {
        Some(uid) if uid == row.uid => Ok(Some(object)),
        Some(uid) => Err(format!("its object has another UID, `{uid}`")),
        None => Err("its object has no `metadata.uid`".to_owned()),
    }
}
