//! Keys whose values are one of a few words.

use hindsight_config::{choice, one_of};

use super::database::DbUrl;

choice! {
    /// How callers are told apart.
    pub enum Auth: "METHOD", "method of authentication" {
        /// They are not: every caller may do everything.
        Off = "off",
        /// By the tokens and the RBAC of a Kubernetes cluster.
        Kubernetes = "kubernetes",
        /// By the tokens of an issuer (OpenID Connect).
        Oidc = "oidc",
        /// By the digests of tokens in a file.
        Tokens = "tokens",
    }
}

choice! {
    /// Whether there are pages for browsers.
    pub enum Ui: "SWITCH", "switch of the web UI" {
        /// Pages below `/ui`.
        On = "on",
        /// No page is served.
        Off = "off",
    }
}

choice! {
    /// Where pipelines of Kubeflow are kept.
    pub enum PipelinesStore: "STORE", "store of pipelines" {
        /// In the database of results and records.
        Database = "database",
        /// As objects of the Kubernetes API, and nowhere else.
        Kubernetes = "kubernetes",
    }
}

choice! {
    /// What is done about PipelineVersion objects whose names do not fit together.
    pub enum VersionNameCheck: "CHECK", "check of names" {
        /// They are refused.
        Enforce = "enforce",
        /// They are accepted with a warning.
        Warn = "warn",
    }
}

choice! {
    /// A version of TLS that is safe.
    pub enum TlsVersion: "VERSION", "version of TLS" {
        /// TLS 1.2, of 2008, for clients without 1.3.
        V1_2 = "1.2",
        /// TLS 1.3, of 2018, which has only safe cipher suites.
        V1_3 = "1.3",
    }
}

choice! {
    /// What the bytes of objects with logs are.
    pub enum ObjectFormat: "FORMAT", "format of objects" {
        /// The text of the log.
        Text = "text",
        /// An object of JSON for each line, as Vector and Fluent Bit write it.
        Json = "json",
    }
}

choice! {
    /// A language of filters.
    pub enum FilterLanguage: "LANGUAGE", "language of filters" {
        /// The Common Expression Language.
        Cel = "cel",
        /// Kubernetes label selectors, such as `app=shop,tier!=test`.
        Labels = "labels",
        /// Kubernetes field selectors, such as `metadata.name=nightly`.
        Fields = "fields",
    }
}

choice! {
    /// What a write waits for before it is answered, by the name that the database has for it.
    pub enum Synchronous: "LEVEL", "level of durability" {
        /// Until it is on disk, so that it survives the loss of power.
        Durable = "durable",
        /// SQLite: as `Durable`, and the directory is synced too.
        Extra = "extra",
        /// SQLite: until the system has it. It survives a crash of the server, and not of the machine.
        Normal = "normal",
        /// SQLite: likewise, and a crash of the machine may damage the file. PostgreSQL: for nothing;
        /// a crash of the database forgets the last half second.
        Off = "off",
        /// PostgreSQL: until it is on the disks of the database and of its synchronous standbys.
        On = "on",
        /// PostgreSQL: as `On`, and until standbys show it.
        RemoteApply = "remote_apply",
        /// PostgreSQL: until it is on the disk of the database and in the memory of standbys.
        RemoteWrite = "remote_write",
        /// PostgreSQL: until it is on the disk of the database, whatever its standbys have.
        Local = "local",
    }
}

impl Synchronous {
    /// Whether a database of this kind has this level.
    pub(super) fn fits(self, db: &DbUrl) -> bool {
        match self {
            Self::Durable | Self::Off => true,
            Self::Extra | Self::Normal => matches!(db, DbUrl::Sqlite { .. }),
            Self::On | Self::RemoteApply | Self::RemoteWrite | Self::Local => {
                matches!(db, DbUrl::Postgres { .. })
            }
        }
    }

    /// The levels of a database of this kind, as a list.
    pub(super) fn of(db: &DbUrl) -> String {
        let known = Self::ALL.iter().filter(|value| value.fits(db));
        let known: Vec<_> = known.map(|value| value.name()).collect();
        one_of(&known)
    }
}
