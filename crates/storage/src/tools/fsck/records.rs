//! Looking at records: what they refer to, their payloads, and the columns that payloads give.

use std::collections::{BTreeSet, HashMap};

use super::{
    Check, Depth, Event,
    finding::{self, Finding, Kind},
    indexed::Held,
};
use crate::{
    codec::{
        dictionary::Loaded,
        objects::fetch_external,
        parallel::par_map_blocking,
        record::StoredRecord,
        row::{RecordRow, row},
    },
    seam::Error,
    sql::{
        read,
        row::{Row, SqlRow as _},
        statement::Bind,
        walk::{self, CODEC, COLUMNS, DICTIONARY, OWNER, REFERRED, SIZE, Table},
        write::{self, Filled},
    },
};
use hindsight_filter::columns::{RULES, VagueFailure};
use hindsight_filter::model::Record;

/// A record with what its row says of its payload.
struct Walked {
    name: String,
    raw: StoredRecord,
    size: usize,
    dictionary: Option<i64>,
    held: Vec<Bind>,
    indexed: Option<Held>,
}

impl Check<'_> {
    pub(super) async fn records(&mut self) -> Result<(), Error> {
        let counted = self.begin("records", Table::Records).await?;
        let columns = match self.depth {
            Depth::Quick => Vec::new(),
            Depth::Full => columns(),
        };
        let names: Vec<_> = columns
            .iter()
            .map(|(name, json, _)| (*name, *json))
            .collect();
        let mut after = i64::MIN;
        while let Some(last) = self.page(Table::Records, after).await? {
            let full = self.depth == Depth::Full;
            let dialect = self.snapshot.dialect;
            let statement = walk::records(dialect, after, last, full, &names);
            let rows = self.rows(Table::Records, &statement).await?;
            if full {
                self.hold(after, last).await?;
            }
            self.labels(after, last).await?;
            self.names(after, last).await?;
            let count = rows.len() as u64;
            let mut walked = Vec::new();
            for row in rows {
                match self.row(&row, &columns) {
                    Ok(Some(record)) if full => walked.push(record),
                    Ok(_) => {}
                    Err(Error::Corrupt(why)) => {
                        let name = finding::name(&row, &[1, 2, 3]);
                        self.found(Finding::new(Kind::RowDamaged, name, why));
                    }
                    Err(error) => return Err(error),
                }
            }
            self.payloads(walked, &columns).await?;
            self.seen.records += count;
            (self.tell)(Event::Seen(count));
            after = last;
        }
        self.count(Table::Records, counted, self.seen.records);
        Ok(())
    }

    /// Looks at a row; gives the record if its payload can be opened.
    fn row(&mut self, row: &Row, columns: &[Filled]) -> Result<Option<Walked>, Error> {
        let name = finding::name(row, &[1, 2, 3]);
        let own = (row.text(1)?, row.text(2)?);
        let owner = (row.text(OWNER)?, row.text(OWNER + 1)?);
        if owner == (None, None) {
            let what = "its result is not there";
            self.found(Finding::new(Kind::RecordOrphan, &name, what));
            return Ok(None);
        }
        if owner != own {
            let is = finding::name(row, &[OWNER, OWNER + 1]);
            let what = format!("it belongs to the result `{is}`");
            self.found(Finding::new(Kind::RecordMisplaced, &name, what));
        }
        let size = row.int(SIZE)?.unwrap_or(0);
        let has_body = row.int(CODEC)?.is_some();
        if has_body != (size != 0) {
            let (kind, what) = match has_body {
                true => (
                    Kind::BodyUnexpected,
                    "it has a body and no size of one".to_owned(),
                ),
                false => (
                    Kind::BodyMissing,
                    format!("its body of {size} bytes is not there"),
                ),
            };
            self.found(Finding::new(kind, &name, what));
            return Ok(None);
        }
        let dictionary = row.int(DICTIONARY)?;
        if let Some(dictionary) = dictionary
            && row.int(REFERRED)?.is_none()
        {
            let what = format!("its body refers to dictionary {dictionary}, which is not there");
            self.found(Finding::new(Kind::DictionaryMissing, &name, what));
            return Ok(None);
        }
        let full = self.depth == Depth::Full;
        let indexed = self.held(row.int(0)?.unwrap_or(0));
        let held = columns.iter().enumerate();
        let held = held.map(|(at, column)| held_by(row, COLUMNS + at, column));
        Ok(Some(Walked {
            raw: read::raw_record(row, (full && has_body).then_some(CODEC))?,
            size: usize::try_from(size).unwrap_or(0),
            dictionary,
            held: held.collect::<Result<_, _>>()?,
            indexed,
            name,
        }))
    }

    /// Fetches payloads that lie outside; gives the records whose payloads are at hand.
    async fn fetched(&mut self, mut walked: Vec<Walked>) -> Result<Vec<Walked>, Error> {
        let raws = walked.iter_mut().map(|record| &mut record.raw);
        let brought = fetch_external(self.snapshot.objects(), raws).await;
        let mut fetched = Vec::with_capacity(walked.len());
        for (record, brought) in walked.into_iter().zip(brought) {
            let (kind, why) = match brought {
                Ok(()) => {
                    fetched.push(record);
                    continue;
                }
                Err(Error::MissingObject(why)) => (Kind::ObjectLost, why),
                Err(Error::Corrupt(why)) => (Kind::BodyDamaged, why),
                Err(error) => return Err(error),
            };
            self.found(Finding::new(kind, record.name, why));
        }
        Ok(fetched)
    }

    /// Opens payloads and extracts from them again what their rows hold.
    async fn payloads(&mut self, walked: Vec<Walked>, columns: &[Filled]) -> Result<(), Error> {
        let walked = self.fetched(walked).await?;
        let ids: BTreeSet<i64> = walked
            .iter()
            .filter_map(|record| record.dictionary)
            .collect();
        let dictionaries = self.dictionaries.load(self.snapshot, &ids).await?;
        let mut whole = Vec::with_capacity(walked.len());
        for record in walked {
            match record
                .dictionary
                .filter(|dictionary| !dictionaries.contains_key(dictionary))
            {
                None => whole.push(record),
                Some(dictionary) => {
                    let what =
                        format!("its body refers to dictionary {dictionary}, which is damaged");
                    self.found(Finding::new(Kind::DictionaryUnreadable, record.name, what));
                }
            }
        }
        let columns: Vec<_> = columns
            .iter()
            .map(|(name, json, _)| (*name, *json))
            .collect();
        let look = move |record| look(record, &columns, &dictionaries);
        let looked = par_map_blocking(whole, |record| record.size, look).await?;
        for (size, findings) in looked {
            if let Some(size) = size.filter(|size| *size > 0) {
                self.seen.verified_payloads += 1;
                self.seen.verified_bytes += size as u64;
            }
            findings.into_iter().for_each(|finding| self.found(finding));
        }
        Ok(())
    }
}

/// How many bytes the payload has, if it is whole, and what is wrong.
fn look(
    walked: Walked,
    columns: &[(&'static str, bool)],
    dictionaries: &Loaded,
) -> (Option<usize>, Vec<Finding>) {
    let Walked {
        name,
        raw,
        held,
        indexed,
        ..
    } = walked;
    let record: Record = match raw.unpack(dictionaries) {
        Ok(record) => record,
        Err(error) => {
            let why = error.to_string();
            return (None, vec![Finding::new(Kind::BodyDamaged, name, why)]);
        }
    };
    let size = record.data.as_ref().map_or(0, |data| data.value.len());
    let payload = record.data.as_ref();
    let payload = payload.map_or(&[][..], |data| &data.value);
    let indexed = indexed.map(|held| held.differs(&name, payload));
    // Its signature may be made with the end of its log.
    let is_vague = record
        .data
        .as_ref()
        .is_some_and(|data| VagueFailure::of(data).is_some());
    let given = write::filled(&row(record));
    let differs = given.into_iter().zip(columns).zip(held);
    let differs = differs.filter(|(((_, is_json, given), _), held)| !same(*is_json, given, held));
    let differs = differs.filter(|((_, (column, _)), held)| {
        let is_key = matches!(held, Bind::Text(Some(key)) if key.starts_with(RULES));
        !(is_vague && *column == "run_signature" && is_key)
    });
    let findings = differs.map(|(((column, _, given), _), held)| {
        let what = format!(
            "the column `{column}` holds {}, and the payload gives {}",
            shown(&held),
            shown(&given)
        );
        Finding::new(Kind::ColumnDiffers, &name, what)
    });
    let findings = findings.chain(indexed.into_iter().flatten()).collect();
    (Some(size), findings)
}

/// The columns of a record without a payload; only their names and kinds matter.
fn columns() -> Vec<Filled> {
    let name = "a/results/b/records/c".parse().expect("the name is legal");
    let time = jiff::Timestamp::UNIX_EPOCH;
    let record = Record {
        name,
        uid: String::new(),
        etag: hindsight_filter::model::Etag::new("", time),
        create_time: time,
        update_time: time,
        data: None,
    };
    let row: RecordRow = row(record);
    write::filled(&row)
}

/// What the column at `at` holds.
fn held_by(row: &Row, at: usize, (_, _, kind): &Filled) -> Result<Bind, Error> {
    Ok(match kind {
        Bind::Int(_) => Bind::Int(row.int(at)?),
        Bind::Id(_) => Bind::Id(row.text(at)?),
        Bind::Bytes(_) => Bind::Bytes(row.bytes(at)?.map(Into::into)),
        _ => Bind::Text(row.text(at)?),
    })
}

/// Whether two values are the same; JSON may be written in another way.
fn same(is_json: bool, a: &Bind, b: &Bind) -> bool {
    match (is_json, a, b) {
        (true, Bind::Text(Some(a)), Bind::Text(Some(b))) => {
            let map = |text: &str| serde_json::from_str::<HashMap<String, String>>(text).ok();
            a == b || map(a).is_some_and(|a| Some(a) == map(b))
        }
        _ => a == b,
    }
}

fn shown(value: &Bind) -> String {
    let cut = |text: &str| text.chars().take(80).collect::<String>();
    match value {
        Bind::Text(Some(text)) => format!("`{}`", cut(text)),
        Bind::Int(Some(number)) => number.to_string(),
        Bind::Bytes(Some(bytes)) => format!("{} bytes", bytes.len()),
        _ => "nothing".to_owned(),
    }
}
