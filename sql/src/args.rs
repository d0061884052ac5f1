//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;
use hindsight_config::{BadValue, ByteSize, Span, Value};
use hindsight_connect::{Connect, Failure};
use hindsight_filter::model::Parent;

use crate::{Error, Format, Limits, Scope, Source, source::Files};

const EXAMPLES: &str = "\
Tables:
  runs      runs without payloads: times, outcomes, labels
  records   all records, with payloads
  results   results, with summaries and annotations
  logs      what is stored of the logs of containers, without their lines
  DESCRIBE runs lists the columns; docs/sql.md and docs/archive.md say what they mean.

Functions:
  label(labels, 'team')                   the value of a label
  param(payload, 'revision')              the value of a parameter of a run, in records
  json_value(payload, '/status/podName')  a part of a payload, in records
  seconds(duration_us), duration('10m')   microseconds to seconds, text to microseconds
  quantile_disc(duration_us, 0.95)        the percentile of `hindsight stats`

Examples:
  hindsight-sql -c \"SELECT outcome, count(*) FROM runs GROUP BY outcome\"
  hindsight-sql -n shop -o csv -c \"SELECT name, seconds(duration_us) FROM runs WHERE outcome = 'FAILURE'\"
  hindsight-sql --archive-url s3://history/archive     a shell; files of the archive are read here
  hindsight-sql --files history -c \"SELECT count(*) FROM records\"
  hindsight-sql --listen 127.0.0.1:8082                Arrow Flight SQL, for ADBC, JDBC and Grafana

Exit codes: 0 done, 1 failed, 2 wrong statement or usage, 3 not found, 4 not allowed, 5 server unavailable.";

/// SQL over runs, records, results and logs of a Hindsight server and of its archive.
///
/// Without -c and --listen it reads statements from a terminal or from standard input. Statements only read. Every row
/// comes by the rights of the token on the server; with --archive-url, this program also reads the files of the archive
/// that the server names.
#[derive(Debug, Parser)]
#[command(name = "hindsight-sql", version, after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub struct Args {
    /// Run this statement and exit
    #[arg(short, long, value_name = "SQL", conflicts_with = "listen")]
    pub command: Option<String>,

    /// How rows are written
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Format,

    /// Only rows of this parent, usually a namespace; may be given several times
    #[arg(short, long = "namespace", value_name = "PARENT")]
    pub namespaces: Vec<Parent>,

    /// URL of the archive of the server, whose files are read here rather than by the server
    #[arg(
        long,
        value_name = "URL",
        env = "HINDSIGHT_ARCHIVE_URL",
        conflicts_with = "files"
    )]
    pub archive_url: Option<String>,

    /// Only files, of a directory or a URL, such as those of `hindsight export records -o parquet`; no server is asked
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["listen", "server", "context"])]
    pub files: Option<String>,

    /// Serve Arrow Flight SQL on this address
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,

    /// Certificate (PEM) of the Flight SQL server; wanted unless it listens on a loopback address
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"])]
    pub tls_cert: Option<PathBuf>,

    /// Private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Statements that the Flight SQL server runs at once; others wait
    #[arg(long, value_name = "NUMBER", default_value = "4", value_parser = clap::value_parser!(u16).range(1..))]
    pub statements: u16,

    /// Memory of all statements at once
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub memory: ByteSize,

    /// Directory for what does not fit into memory; by default that of temporary files
    #[arg(long, value_name = "DIRECTORY")]
    pub spill_dir: Option<PathBuf>,

    /// Most that is written there
    #[arg(long, value_name = "SIZE", default_value = "10GiB", value_parser = size)]
    pub spill_size: ByteSize,

    /// How long one statement may take
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = deadline)]
    pub deadline: Span<1>,

    /// Parts of a statement that are computed at once; by default one for each processor
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// Which server
    #[command(flatten)]
    pub connect: Connect,
}

/// Reads a size, such as `1GiB`. It fails if the text is none.
pub fn size(text: &str) -> Result<ByteSize, BadValue> {
    ByteSize::read(text)
}

fn deadline(text: &str) -> Result<Span<1>, BadValue> {
    Span::read(text)
}

impl Args {
    /// What statements may take.
    pub fn limits(&self) -> Limits {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Limits {
            memory: self.memory.as_usize(),
            spill: self.spill_dir.clone(),
            spill_bytes: self.spill_size.get(),
            deadline: self.deadline.get(),
            threads: self.threads.map_or_else(cores, usize::from),
        }
    }

    /// Of which parents rows are asked: those of the command line, or else that of the context. It fails if the
    /// context cannot be read or its namespace is not a name.
    pub fn scope(&self) -> Result<Scope, Failure> {
        if !self.namespaces.is_empty() {
            return Ok(Scope::Parents(self.namespaces.clone()));
        }
        if self.files.is_some() {
            return Ok(Scope::All);
        }
        match self.connect.namespace()? {
            None => Ok(Scope::All),
            Some(name) => {
                let parent = name.parse();
                let parent = parent.map_err(|error| {
                    Failure::usage(format!("the namespace of the context: {error}"))
                })?;
                Ok(Scope::Parents(vec![parent]))
            }
        }
    }

    /// Where rows are. It fails if there cannot be files.
    pub fn source(self) -> Result<Source, Error> {
        Ok(match (self.files, self.archive_url) {
            (Some(place), _) => Source::Files(Files::at(&place)?),
            (None, Some(url)) => Source::ServerAndFiles(self.connect, Files::at(&url)?),
            (None, None) => Source::Server(self.connect),
        })
    }
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
    fn files_alone_are_not_served() {
        let args = ["hindsight-sql", "--files", "x", "--listen", "127.0.0.1:1"];
        let error = Args::try_parse_from(args).unwrap_err().to_string();
        assert!(error.contains("cannot be used with"), "{error}");
    }
}
