//! What a write waits for before it is answered.

use std::fmt;

use super::{database::DbUrl, problem::BadValue, value::Value};

/// What a write waits for before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// Until it is on disk, so that it survives the loss of power.
    Durable,
    /// SQLite: as `Durable`, and the directory is synced too.
    Extra,
    /// SQLite: until the system has it. It survives a crash of the server, and not of the machine.
    Normal,
    /// SQLite: likewise, and a crash of the machine may damage the file. PostgreSQL: for nothing; a
    /// crash of the database forgets the last half second.
    Off,
    /// PostgreSQL: until it is on the disks of the database and of its synchronous standbys.
    On,
    /// PostgreSQL: as `On`, and until standbys show it.
    RemoteApply,
    /// PostgreSQL: until it is on the disk of the database and in the memory of standbys.
    RemoteWrite,
    /// PostgreSQL: until it is on the disk of the database, whatever its standbys have.
    Local,
}

impl Synchronous {
    const ALL: [Self; 8] = [
        Self::Durable,
        Self::Extra,
        Self::Normal,
        Self::Off,
        Self::On,
        Self::RemoteApply,
        Self::RemoteWrite,
        Self::Local,
    ];

    /// Whether a database of this kind knows it.
    pub(super) fn fits(self, db: &DbUrl) -> bool {
        match self {
            Self::Durable | Self::Off => true,
            Self::Extra | Self::Normal => matches!(db, DbUrl::Sqlite { .. }),
            Self::On | Self::RemoteApply | Self::RemoteWrite | Self::Local => {
                matches!(db, DbUrl::Postgres { .. })
            }
        }
    }

    /// Those that a database of this kind knows, as a list.
    pub(super) fn of(db: &DbUrl) -> String {
        let known = Self::ALL.iter().filter(|value| value.fits(db));
        let known: Vec<_> = known.map(|value| format!("`{value}`")).collect();
        known.join(", ")
    }
}

impl Synchronous {
    /// As the database calls it, and as it is written in configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Extra => "extra",
            Self::Normal => "normal",
            Self::Off => "off",
            Self::On => "on",
            Self::RemoteApply => "remote_apply",
            Self::RemoteWrite => "remote_write",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for Synchronous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Value for Synchronous {
    fn read(text: &str) -> Result<Self, BadValue> {
        let mut all = Self::ALL.into_iter();
        all.find(|value| value.to_string() == text).ok_or_else(|| {
            BadValue::new(format!(
                "`{text}` is not what a write can wait for; want `durable`, on SQLite also \
                 `extra`, `normal` or `off`, on PostgreSQL also `on`, `remote_apply`, \
                 `remote_write`, `local` or `off`"
            ))
        })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}
