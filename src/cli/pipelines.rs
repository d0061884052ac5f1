//! `hindsight pipelines`: pipelines of Kubeflow as manifests, out of one store and into another.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use indicatif::ProgressBar;

use super::{
    failure::{Failure, of_store},
    flags_of, output, serve,
};
use crate::app;
use hindsight_kfp::{
    Database, crds,
    kubernetes::KubernetesStore,
    store::PipelineStore,
    transfer::{self, Count, Described, Event, Rest, Source, Stored},
};
use hindsight_runtime::{
    clock::{Clock as _, SystemClock},
    error::report,
};
use hindsight_storage::{Maintenance, resolve::open};

const ABOUT: &str = "Move pipelines of Kubeflow between stores, as manifests

A store is the database of --db, the objects of a cluster (--kubeconfig), or, to export from, any server of Kubeflow \
pipelines (--from). docs/pipelines.md has an example of a migration.";

const EXAMPLES: &str = "Examples:
  hindsight pipelines export --from http://ml-pipeline.kubeflow:8888 --to-namespace kubeflow --output pipelines
  kubectl apply --server-side -f pipelines
  hindsight pipelines export --kubeconfig ~/.kube/config --namespace kubeflow --output pipelines
  hindsight pipelines import pipelines --db sqlite:hindsight.db
  hindsight pipelines crds | kubectl apply -f -";

/// Write the pipelines of a store as manifests, one file for each pipeline
///
/// Versions follow their pipeline, oldest first, with all that the store keeps of them; annotations hold the id and
/// the time that a thing has there. A name that no object can have becomes one like it, and stays the display name.
/// Files of an export before are written again, others in the directory stay.
///
/// Exit codes: 0 all is written, 1 something is not, and told, 2 wrong usage, 5 the store is not reachable.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Export {
    #[command(flatten)]
    from: From,

    /// Read the pipelines of this namespace; may be repeated. By default those of no namespace, of a cluster all
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Vec<String>,

    /// Namespace of the objects in the manifests; by default that of each pipeline, or none
    #[arg(long, value_name = "NAMESPACE")]
    to_namespace: Option<String>,

    /// Directory for the manifests; made if it is not there
    #[arg(short, long, value_name = "DIRECTORY", default_value = "pipelines")]
    output: PathBuf,
}

/// Where pipelines are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Source")]
struct From {
    /// A server of pipelines to read over REST, `http://HOST:PORT` or `https://HOST:PORT/PATH`
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    from: Option<String>,

    /// File with the bearer token for that server
    #[arg(long, value_name = "FILE", requires = "from")]
    from_token_file: Option<PathBuf>,

    /// CA certificates (PEM) to trust for that server, instead of those of the system
    #[arg(long, value_name = "FILE", requires = "from")]
    from_ca: Option<PathBuf>,

    /// Kubeconfig of a cluster, whose objects are read instead of the database
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Create in a store what manifests describe
///
/// What is there already is compared and left alone, so a second import changes nothing; a version of the same name
/// with another content is told. The original ids of manifests are kept, and into a database their times too.
///
/// Exit codes: 0 all is there, 1 something is not, and told, 2 wrong usage or no manifests, 5 the store is not
/// reachable.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Import {
    /// Files of manifests, or directories with files that end in .yaml, .yml or .json
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Kubeconfig of a cluster, whose objects are created instead of rows of the database
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    kubeconfig: Option<PathBuf>,

    /// Namespace of all pipelines, whatever manifests say. By default none in a database, and in a cluster that of
    /// each manifest
    #[arg(long, value_name = "NAMESPACE", help_heading = "Target")]
    namespace: Option<String>,

    /// Keep the namespaces of manifests in a database, for servers with pipelines_multi_user
    #[arg(long, help_heading = "Target", conflicts_with_all = ["namespace", "kubeconfig"])]
    keep_namespaces: bool,
}

/// The command and what it consists of.
pub(super) fn command() -> Command {
    let of_db = |command| flags_of(command, &["db", "objects_url", "archive_url"]);
    let crds = Command::new("crds")
        .about("Print the CustomResourceDefinitions of pipelines and versions, as YAML");
    Command::new("pipelines")
        .about("Move pipelines of Kubeflow between stores, as manifests")
        .long_about(ABOUT)
        .after_long_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(of_db(Export::augment_args(Command::new("export"))))
        .subcommand(of_db(Import::augment_args(Command::new("import"))))
        .subcommand(crds)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let usage = |error: clap::Error| Failure::usage(error.to_string());
    match matches.subcommand() {
        Some(("export", sub)) => {
            let export = Export::from_arg_matches(sub).map_err(usage)?;
            super::runtime()?.block_on(Box::pin(export.run(sub)))
        }
        Some(("import", sub)) => {
            let import = Import::from_arg_matches(sub).map_err(usage)?;
            super::runtime()?.block_on(Box::pin(import.run(sub)))
        }
        Some(("crds", _)) => {
            let texts = crds::definitions().map(|definition| output::yaml(&definition));
            let texts: Vec<_> = texts.into_iter().collect::<Result<_, _>>()?;
            output::say(texts.join("---\n").trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(Failure::usage("want `export`, `import` or `crds`")),
    }
}

/// A store, and what is closed once it is done with.
struct Opened {
    store: Arc<dyn PipelineStore>,
    maintenance: Option<Arc<dyn Maintenance>>,
}

impl Opened {
    async fn database(matches: &ArgMatches) -> Result<Self, Failure> {
        let config = serve::load(matches)?;
        let options = app::command_options(&config).map_err(|error| of_store(&error))?;
        let opened = open(&config.db.expose(), &options).await;
        let opened = opened.map_err(|error| of_store(&error))?;
        Ok(Self {
            store: Arc::new(Database::new(opened.pipelines)),
            maintenance: Some(opened.maintenance),
        })
    }

    /// The objects of a cluster; those for which no namespace is said are in `namespace`, or in that of the kubeconfig.
    async fn cluster(kubeconfig: &Path, namespace: Option<&str>) -> Result<Self, Failure> {
        hindsight_cluster::choose_cryptography();
        let client = hindsight_cluster::connect(Some(kubeconfig.to_owned())).await;
        let client = client.map_err(|error| Failure::usage(report(&error)))?;
        let namespace = namespace
            .unwrap_or_else(|| client.default_namespace())
            .to_owned();
        Ok(Self {
            store: Arc::new(KubernetesStore::of_cluster(client, &namespace)),
            maintenance: None,
        })
    }

    async fn close(self) {
        if let Some(maintenance) = self.maintenance {
            maintenance.close().await;
        }
    }
}

impl Export {
    async fn run(&self, matches: &ArgMatches) -> Result<ExitCode, Failure> {
        let from = &self.from;
        if let Some(url) = &from.from {
            let read = |path: &PathBuf| {
                std::fs::read(path)
                    .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
            };
            let token = from.from_token_file.as_ref().map(read).transpose()?;
            let token = token.map(|token| String::from_utf8_lossy(&token).trim().to_owned());
            let ca = from.from_ca.as_ref().map(read).transpose()?;
            let rest = Rest::new(url, token.as_deref(), ca.as_deref());
            let rest = rest.map_err(|error| Failure::usage(report(&error)))?;
            return self.write(&rest).await;
        }
        let opened = match &from.kubeconfig {
            Some(kubeconfig) => Opened::cluster(kubeconfig, None).await?,
            None => Opened::database(matches).await?,
        };
        let done = self.write(&Stored(Arc::clone(&opened.store))).await;
        opened.close().await;
        done
    }

    async fn write(&self, source: &dyn Source) -> Result<ExitCode, Failure> {
        let folder = &self.output;
        let refused = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
        std::fs::create_dir_all(folder).map_err(|error| Failure::other(refused(folder, &error)))?;
        let namespaces = match self.namespace.is_empty() {
            true => vec![String::new()],
            false => self.namespace.clone(),
        };
        let write = |file: &str, text: &str| {
            let path = folder.join(file);
            std::fs::write(&path, text).map_err(|error| refused(&path, &error))
        };
        let bar = ProgressBar::new_spinner().with_message("pipelines written");
        let tell = |event: Event<'_>| follow(&bar, &event);
        let target = self.to_namespace.as_deref();
        let count = transfer::export(source, &namespaces, target, write, tell).await;
        bar.finish_and_clear();
        conclude(&count.map_err(Failure::unreachable)?, "written")
    }
}

impl Import {
    async fn run(&self, matches: &ArgMatches) -> Result<ExitCode, Failure> {
        let texts = texts(&self.files)?;
        let described = transfer::read(&texts, SystemClock.now()).map_err(Failure::usage)?;
        if described.is_empty() {
            return Err(Failure::usage("there are no manifests in these files"));
        }
        let opened = match &self.kubeconfig {
            Some(kubeconfig) => Opened::cluster(kubeconfig, self.namespace.as_deref()).await?,
            None => Opened::database(matches).await?,
        };
        let described = described
            .into_iter()
            .map(|described| self.placed(described, &*opened.store));
        let bar = ProgressBar::new_spinner().with_message("pipelines and versions");
        let tell = |event: Event<'_>| follow(&bar, &event);
        let count = transfer::import(&*opened.store, described.collect(), tell).await;
        bar.finish_and_clear();
        opened.close().await;
        conclude(&count, "created")
    }

    /// What a manifest describes, in the namespace where it belongs.
    fn placed(&self, mut described: Described, store: &dyn PipelineStore) -> Described {
        let is_kept = self.keep_namespaces || self.kubeconfig.is_some();
        let own = Some(described.namespace.as_str()).filter(|own| is_kept && !own.is_empty());
        let namespace = self.namespace.as_deref().or(own);
        let namespace = namespace
            .unwrap_or_else(|| store.default_namespace())
            .to_owned();
        if let Some(pipeline) = &mut described.pipeline {
            pipeline.namespace.clone_from(&namespace);
        }
        described.namespace = namespace;
        described
    }
}

/// The texts of files, and of the manifests in directories in the order of their names.
fn texts(files: &[PathBuf]) -> Result<Vec<(String, String)>, Failure> {
    let refused = |path: &Path, error: &std::io::Error| {
        Failure::usage(format!("{}: {error}", path.display()))
    };
    let mut paths = Vec::new();
    for file in files {
        if !file.is_dir() {
            paths.push(file.clone());
            continue;
        }
        let entries = std::fs::read_dir(file).map_err(|error| refused(file, &error))?;
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| refused(file, &error))?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if matches!(extension, Some("yaml" | "yml" | "json")) {
                found.push(path);
            }
        }
        found.sort();
        paths.extend(found);
    }
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).map_err(|error| refused(&path, &error))?;
        Ok((path.display().to_string(), text))
    };
    paths.into_iter().map(read).collect()
}

fn follow(bar: &ProgressBar, event: &Event<'_>) {
    match event {
        Event::Done => bar.inc(1),
        Event::Failed(why) => bar.suspend(|| output::note(&output::plain(why, false))),
    }
}

fn conclude(count: &Count, verb: &str) -> Result<ExitCode, Failure> {
    let Count {
        pipelines,
        versions,
        unchanged,
        failures,
    } = count;
    let mut text = format!("{pipelines} pipelines with {versions} versions {verb}");
    if *unchanged > 0 {
        text = format!("{text}, {unchanged} were there already");
    }
    if !failures.is_empty() {
        text = format!("{text}, {} could not be", failures.len());
    }
    output::say(&text)?;
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}
