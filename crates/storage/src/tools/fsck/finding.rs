//! What can be wrong, and what to do about it.

use serde::{Serialize, Serializer};

use crate::sql::row::SqlRow;

/// A class of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The engine cannot read its own pages, or an index disagrees with its table.
    TableDamaged,
    /// A table has other rows than its count says.
    CountDiffers,
    /// A row holds what no version of this program writes.
    RowDamaged,
    /// A record of no result.
    RecordOrphan,
    /// A record in another result than its own columns say.
    RecordMisplaced,
    /// A record whose payload has no row.
    BodyMissing,
    /// A payload of a record that has none.
    BodyUnexpected,
    /// A payload of no record.
    BodyOrphan,
    /// A payload that is not, to the byte, what was stored.
    BodyDamaged,
    /// A payload that refers to a dictionary which is not there.
    DictionaryMissing,
    /// A payload that refers to a dictionary which is damaged.
    DictionaryUnreadable,
    /// A dictionary that is not, to the byte, what was stored.
    DictionaryDamaged,
    /// A key of a dictionary that is not there.
    KeyOrphan,
    /// A column that does not hold what the payload gives.
    ColumnDiffers,
    /// A value that an index of an indexed path lacks.
    IndexLacks,
    /// A value that an index of an indexed path has, and the payload does not give.
    IndexExceeds,
    /// A label of a record that the index of labels lacks, or one that it has besides.
    LabelDiffers,
    /// A name of a record that the index of parts of names lacks.
    NameDiffers,
    /// A payload or part of a log whose object is gone, or another one.
    ObjectLost,
    /// A payload or part of a log whose object the database takes for one that nobody needs.
    ObjectUnheld,
    /// An object that the database takes for one that is needed, and nobody refers to.
    ObjectIdle,
    /// An object that the database knows nothing of.
    ObjectOrphan,
    /// A log that has other lines than it counts.
    LogDamaged,
    /// A row that a copy holds otherwise than its source.
    CopyDiffers,
}

const RESTORE: &str =
    "restore a backup; until then, read this record and others like it from there";
const AGAIN: &str =
    "store the object again (`hindsight import`), restore a backup, or delete the record";

impl Kind {
    /// Its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TableDamaged => "table-damaged",
            Self::CountDiffers => "count-differs",
            Self::RowDamaged => "row-damaged",
            Self::RecordOrphan => "record-orphan",
            Self::RecordMisplaced => "record-misplaced",
            Self::BodyMissing => "body-missing",
            Self::BodyUnexpected => "body-unexpected",
            Self::BodyOrphan => "body-orphan",
            Self::BodyDamaged => "body-damaged",
            Self::DictionaryMissing => "dictionary-missing",
            Self::DictionaryUnreadable => "dictionary-unreadable",
            Self::DictionaryDamaged => "dictionary-damaged",
            Self::KeyOrphan => "key-orphan",
            Self::ColumnDiffers => "column-differs",
            Self::IndexLacks => "index-lacks",
            Self::IndexExceeds => "index-exceeds",
            Self::LabelDiffers => "label-differs",
            Self::NameDiffers => "name-differs",
            Self::ObjectLost => "object-lost",
            Self::ObjectUnheld => "object-unheld",
            Self::ObjectIdle => "object-idle",
            Self::ObjectOrphan => "object-orphan",
            Self::LogDamaged => "log-damaged",
            Self::CopyDiffers => "copy-differs",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::TableDamaged => {
                "copy what can be read with `hindsight copy`, or restore a backup; look at the disk"
            }
            Self::CountDiffers => "rebuild the indexes of the table (`REINDEX`) and look again",
            Self::RowDamaged | Self::RecordMisplaced => {
                "another program wrote into the table; restore a backup, or correct the row"
            }
            Self::RecordOrphan => {
                "make the result and give it the row again, or delete the row from `records`"
            }
            Self::BodyMissing | Self::BodyDamaged => AGAIN,
            Self::BodyUnexpected | Self::BodyOrphan => "delete the row from `bodies`",
            Self::DictionaryMissing | Self::DictionaryUnreadable => AGAIN,
            Self::DictionaryDamaged => RESTORE,
            Self::LogDamaged => "restore a backup, or delete the log",
            Self::KeyOrphan => "delete the row from `dictionary_keys`",
            Self::IndexLacks => {
                "remove the index and add it again (`hindsight index`); until then filters on the \
                 field miss the record"
            }
            Self::IndexExceeds => {
                "remove the index and add it again (`hindsight index`); until then filters on the \
                 absence of the field miss the record"
            }
            Self::LabelDiffers => {
                "copy the database with `hindsight copy`, which indexes labels anew; until then \
                 filters and selectors by the label miss the record"
            }
            Self::NameDiffers => {
                "copy the database with `hindsight copy`, which indexes names anew; until then \
                 filters by a part of the name miss the record"
            }
            Self::ObjectLost => {
                "put the object back from a version or backup of the object store; or store the \
                 payload again (`hindsight import`), or delete the record or log"
            }
            Self::ObjectUnheld => {
                "stop the servers, or set objects_keep to `forever`, before the object is removed; \
                 then put `holder` and `log_line` of its row in `objects` right, or restore a backup"
            }
            Self::ObjectIdle => {
                "set `holder` and `log_line` of its row in `objects` to NULL; then it is removed in time"
            }
            Self::ObjectOrphan => {
                "`hindsight fsck --remove-orphans` removes it; it was written after the backup from \
                 which this database was restored"
            }
            Self::CopyDiffers => {
                "copy again; another program wrote into the target during the copy"
            }
            Self::ColumnDiffers => {
                "copy the database with `hindsight copy`, which fills the columns anew; until then \
                 filters answer by the column"
            }
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The class of damage, which decides the remedy.
    pub kind: Kind,
    /// What is damaged: the full name of a result or record, else a table, a dictionary or a row.
    pub of: String,
    /// What is wrong with it.
    pub what: String,
    /// What an operator should do, the same for all of a class.
    pub remedy: &'static str,
}

impl Finding {
    pub(crate) fn new(kind: Kind, of: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            kind,
            of: of.into(),
            what: what.into(),
            remedy: kind.remedy(),
        }
    }
}

/// The name of the result or record in a row, as far as it can be read: parent, id of the result
/// and, of a record, its own id stand in the columns `at`.
pub(crate) fn name(row: &impl SqlRow, at: &[usize]) -> String {
    let part = |at: usize| match row.text(at) {
        Ok(Some(text)) => text,
        _ => "?".to_owned(),
    };
    let between = ["", "/results/", "/records/"];
    at.iter()
        .zip(between)
        .map(|(at, between)| format!("{between}{}", part(*at)))
        .collect()
}
