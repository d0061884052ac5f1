//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, Subcommand};
use hindsight_config::ByteSize;
use hindsight_sql::args::size;
use url::Url;

const EXAMPLES: &str = "\
Examples:
  hindsight-sql-cluster scheduler
  hindsight-sql-cluster executor --archive-url s3://history/archive
  hindsight-sql-cluster executor --archive-url s3://history/archive --listen 127.0.0.1:8085
  export HINDSIGHT_SQL_SCHEDULER=http://127.0.0.1:8083 HINDSIGHT_ARCHIVE_URL=s3://history/archive
  hindsight-sql-cluster query --threads 4 -c \"SELECT outcome, count(*) FROM runs GROUP BY outcome\"

On several machines each process has a certificate of one CA: see docs/sql.md.";

/// SQL over runs, records, results and logs, executed by several machines.
///
/// A scheduler divides statements among executors, which read files of the archive. `query` is `hindsight-sql`: it asks
/// the server for the rows of the database and for the files that the caller may read, and gives the scheduler a plan
/// of them.
#[derive(Debug, Parser)]
#[command(name = "hindsight-sql-cluster", version, after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Divide statements among executors
    Scheduler(Scheduler),
    /// Execute parts of statements
    Executor(Executor),
    /// Run a statement, a shell or an Arrow Flight SQL server; what `hindsight-sql` does, on a cluster
    Query(Box<Query>),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Scheduler {
    /// Listen on this address for executors and statements
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8083")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) tls: Tls,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Executor {
    /// The scheduler
    #[arg(
        long,
        value_name = "URL",
        env = "HINDSIGHT_SQL_SCHEDULER",
        default_value = "http://127.0.0.1:8083"
    )]
    pub(crate) scheduler: Url,

    /// URL of the archive, the same as of statements; no other file is read
    #[arg(long, value_name = "URL", env = "HINDSIGHT_ARCHIVE_URL")]
    pub(crate) archive_url: String,

    /// Listen on this address for other executors and for `query`, which reads answers
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8084")]
    pub(crate) listen: SocketAddr,

    /// The host by which they reach it; by default that of the address
    #[arg(long, value_name = "HOST")]
    pub(crate) advertise: Option<String>,

    /// Memory of all parts of statements at once
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(crate) memory: ByteSize,

    /// Directory for rows between stages and for what does not fit into memory; by default one below that of temporary
    /// files
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) work_dir: Option<PathBuf>,

    /// Parts of statements that are executed at once; by default one for each processor
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,

    #[command(flatten)]
    pub(crate) tls: Tls,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Query {
    /// The scheduler; without one, statements are executed here
    #[arg(long, value_name = "URL", env = "HINDSIGHT_SQL_SCHEDULER")]
    pub(crate) scheduler: Option<Url>,

    #[command(flatten)]
    pub(crate) tls: Tls,

    #[command(flatten)]
    pub(crate) query: hindsight_sql::args::Args,
}

/// By what processes of a cluster know each other.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Tls {
    /// Certificates (PEM) of the CA that signed those of all processes of the cluster
    #[arg(long, value_name = "FILE", requires_all = ["cluster_cert", "cluster_key"])]
    pub(crate) cluster_ca: Option<PathBuf>,

    /// Certificate (PEM) of this process, for the DNS name `hindsight-sql-cluster`
    #[arg(long, value_name = "FILE", requires_all = ["cluster_ca", "cluster_key"])]
    pub(crate) cluster_cert: Option<PathBuf>,

    /// Private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", requires_all = ["cluster_ca", "cluster_cert"])]
    pub(crate) cluster_key: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_certificate_needs_its_key_and_the_ca() {
        let args = ["x", "scheduler", "--cluster-cert", "a.pem"];
        let error = Args::try_parse_from(args).unwrap_err().to_string();
        assert!(
            error.contains("--cluster-ca <FILE>") && error.contains("--cluster-key <FILE>"),
            "{error}"
        );
    }

    #[test]
    fn the_program_takes_what_its_pods_are_told() {
        for (pod, text) in [
            (
                "scheduler",
                include_str!("../../../deploy/sql/scheduler.yaml"),
            ),
            (
                "executor",
                include_str!("../../../deploy/sql/executor.yaml"),
            ),
            ("server", include_str!("../../../deploy/sql/server.yaml")),
        ] {
            let (_, args) = text.split_once("\n        args:\n").unwrap();
            let args = args
                .lines()
                .map_while(|line| line.strip_prefix("        - "));
            let mut args: Vec<&str> = ["hindsight-sql-cluster"].into_iter().chain(args).collect();
            if text.contains("HINDSIGHT_ARCHIVE_URL") {
                args.extend(["--archive-url", "s3://history/archive"]);
            }
            let parsed = Args::try_parse_from(args);
            assert!(parsed.is_ok(), "{pod}: {}", parsed.unwrap_err());
        }
    }
}
