//! Pipelines and their versions: their statements and rows.

mod list;

pub(crate) use self::list::{
    Parts, Place, count, counted_page, has_trigrams, ids_in, is_by_names, near, page, row_ids,
};

use std::collections::BTreeMap;

use super::{
    read::{corrupt, text},
    row::SqlRow,
    statement::{Bind, Statement},
};
use crate::seam::{Error, PipelineChange, PipelineKey, PipelineRow, VersionRow};

const PIPELINE: &str = "SELECT id, namespace, name, display_name, description, tags, create_s, original_id FROM pipelines";

const VERSION: &str = "SELECT v.id, p.id, v.name, v.display_name, v.description, v.tags, v.create_s, v.original_id, \
     v.package_url, v.code_source_url, v.spec FROM pipeline_versions AS v JOIN pipelines AS p ON p.row_id = v.pipeline_row";

/// Tags as a column has them.
fn tags_json(tags: &BTreeMap<String, String>) -> Bind {
    let json = serde_json::to_string(tags).expect("texts are JSON");
    Bind::Text(Some(json))
}

fn tags_bytes(tags: &BTreeMap<String, String>) -> usize {
    tags.iter()
        .map(|(key, value)| key.len() + value.len())
        .sum()
}

fn bytes(texts: &[&str], tags: &BTreeMap<String, String>) -> i64 {
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    i64::try_from(texts + tags_bytes(tags)).unwrap_or(i64::MAX)
}

/// The statements that write a pipeline, unless one of the name is there: then they change nothing.
pub(crate) fn insert_pipeline(row: &PipelineRow) -> Vec<Statement> {
    let mut out = Statement::new(
        "INSERT INTO pipelines (id, namespace, name, display_name, description, tags, create_s, bytes, original_id) \
         VALUES (",
    );
    out.bind(row.id.as_str()).push(", ");
    out.bind(row.namespace.as_str()).push(", ");
    out.bind(row.name.as_str()).push(", ");
    out.bind(row.display_name.as_str()).push(", ");
    out.bind(row.description.as_str()).push(", ");
    out.bind(tags_json(&row.tags)).push(", ");
    out.bind(row.created_at).push(", ");
    let texts = [&*row.name, &row.display_name, &row.description];
    out.bind(bytes(&texts, &row.tags)).push(", ");
    out.bind(row.original_id.as_deref())
        .push(") ON CONFLICT DO NOTHING");
    let mut statements = vec![out];
    statements.extend(insert_tags(&row.id, &row.tags));
    statements
}

fn insert_tags(id: &str, tags: &BTreeMap<String, String>) -> impl Iterator<Item = Statement> {
    tags.iter().map(move |(key, value)| {
        let mut out =
            Statement::new("INSERT INTO pipeline_tags (key, value, pipeline_row) SELECT ");
        out.bind(key.as_str()).push(", ").bind(value.as_str());
        out.push(", row_id FROM pipelines WHERE id = ").bind(id);
        out
    })
}

/// The statement that writes a version, unless its pipeline is missing or has one of the name.
pub(crate) fn insert_version(row: &VersionRow) -> Statement {
    let mut out = Statement::new(
        "INSERT INTO pipeline_versions (pipeline_row, id, name, display_name, description, tags, create_s, bytes, \
         package_url, code_source_url, original_id, spec) SELECT row_id, ",
    );
    out.bind(row.id.as_str()).push(", ");
    out.bind(row.name.as_str()).push(", ");
    out.bind(row.display_name.as_str()).push(", ");
    out.bind(row.description.as_str()).push(", ");
    out.bind(tags_json(&row.tags)).push(", ");
    out.bind(row.created_at).push(", ");
    let texts = [
        &*row.name,
        &row.display_name,
        &row.description,
        &row.package_url,
        &row.code_source_url,
        &row.spec,
    ];
    out.bind(bytes(&texts, &row.tags)).push(", ");
    out.bind(row.package_url.as_str()).push(", ");
    out.bind(row.code_source_url.as_str()).push(", ");
    out.bind(row.original_id.as_deref()).push(", ");
    out.bind(row.spec.as_str());
    out.push(" FROM pipelines WHERE id = ")
        .bind(row.pipeline_id.as_str());
    out.push(" ON CONFLICT DO NOTHING");
    out
}

/// The statement that reads a pipeline.
pub(crate) fn pipeline(key: PipelineKey<'_>) -> Statement {
    let mut out = Statement::new(PIPELINE);
    match key {
        PipelineKey::Id(id) => out.push(" WHERE id = ").bind(id),
        PipelineKey::Name { namespace, name } => {
            out.push(" WHERE namespace = ").bind(namespace);
            out.push(" AND name = ").bind(name)
        }
    };
    out
}

/// The statement that reads pipelines by their ids, in no order.
pub(crate) fn pipelines(ids: &[String]) -> Statement {
    let mut out = Statement::new(PIPELINE);
    out.push(" WHERE id");
    one_of(&mut out, ids);
    out
}

/// The statement that reads a version of a pipeline.
pub(crate) fn version(pipeline_id: &str, id: &str) -> Statement {
    let mut out = Statement::new(VERSION);
    out.push(" WHERE v.id = ").bind(id);
    out.push(" AND p.id = ").bind(pipeline_id);
    out
}

/// The statement that reads versions by their ids, in no order.
pub(crate) fn versions(ids: &[String]) -> Statement {
    let mut out = Statement::new(VERSION);
    out.push(" WHERE v.id");
    one_of(&mut out, ids);
    out
}

fn one_of(out: &mut Statement, ids: &[String]) {
    out.push(" IN (");
    for (number, id) in ids.iter().enumerate() {
        out.push(if number == 0 { "" } else { ", " })
            .bind(id.as_str());
    }
    out.push(")");
}

/// The pipeline in a row.
pub(crate) fn pipeline_in(row: &impl SqlRow) -> Result<PipelineRow, Error> {
    Ok(PipelineRow {
        id: word(row, 0)?,
        namespace: word(row, 1)?,
        name: word(row, 2)?,
        display_name: word(row, 3)?,
        description: word(row, 4)?,
        tags: tags_in(row, 5)?,
        created_at: row.int(6)?.unwrap_or_default(),
        original_id: text(row, 7)?,
    })
}

/// The version in a row.
pub(crate) fn version_in(row: &impl SqlRow) -> Result<VersionRow, Error> {
    Ok(VersionRow {
        id: word(row, 0)?,
        pipeline_id: word(row, 1)?,
        name: word(row, 2)?,
        display_name: word(row, 3)?,
        description: word(row, 4)?,
        tags: tags_in(row, 5)?,
        created_at: row.int(6)?.unwrap_or_default(),
        original_id: text(row, 7)?,
        package_url: word(row, 8)?,
        code_source_url: word(row, 9)?,
        spec: word(row, 10)?,
    })
}

fn word(row: &impl SqlRow, at: usize) -> Result<String, Error> {
    Ok(text(row, at)?.unwrap_or_default())
}

fn tags_in(row: &impl SqlRow, at: usize) -> Result<BTreeMap<String, String>, Error> {
    let json = row.text(at)?.unwrap_or_default();
    serde_json::from_str(&json).map_err(|error| corrupt(format!("tags of a pipeline: {error}")))
}

/// The statement that reads the number of a pipeline's row, how many versions it has, and the number that changes with
/// these.
pub(crate) fn state(id: &str) -> Statement {
    let mut out = Statement::new("SELECT row_id, versions, revision FROM pipelines WHERE id = ");
    out.bind(id);
    out
}

/// The statement that reads the ids of versions of the pipeline in a row.
pub(crate) fn version_ids(row: i64) -> Statement {
    let mut out = Statement::new("SELECT id FROM pipeline_versions WHERE pipeline_row = ");
    out.bind(row).push(" ORDER BY create_s, id");
    out
}

/// The statement that gives names of pipelines that do not have as many versions as they say, what each says, and how
/// many it has.
pub(crate) fn miscounted(most: i64) -> Statement {
    let mut out = Statement::new(
        "SELECT name, versions, has FROM (SELECT name, versions, (SELECT count(*) FROM pipeline_versions \
         WHERE pipeline_row = pipelines.row_id) AS has FROM pipelines) AS counted WHERE versions <> has LIMIT ",
    );
    out.bind(most);
    out
}

/// The statement that gives names of pipelines that PostgreSQL's short rows do not have as they are.
pub(crate) fn misnamed(most: i64) -> Statement {
    let mut out = Statement::new(
        "SELECT p.name FROM pipelines AS p LEFT JOIN pipeline_names AS n ON n.row_id = p.row_id WHERE \
         (n.create_s, n.namespace, n.name, n.display_name, n.id) IS DISTINCT FROM \
         (p.create_s, p.namespace, lower(p.name), lower(p.display_name), p.id) LIMIT ",
    );
    out.bind(most);
    out
}

/// The statement that counts pipelines and versions together.
pub(crate) fn count_all() -> Statement {
    Statement::new(
        "SELECT (SELECT count(*) FROM pipelines) + (SELECT count(*) FROM pipeline_versions)",
    )
}

/// The statement that reads the next pipelines after one, in the order of their ids.
pub(crate) fn after(id: &str, most: i64) -> Statement {
    let mut out = Statement::new(PIPELINE);
    out.push(" WHERE id > ").bind(id);
    out.push(" ORDER BY id LIMIT ").bind(most);
    out
}

/// The statements that change a pipeline; the first changes one row if it is there.
pub(crate) fn update_pipeline(id: &str, change: &PipelineChange) -> Vec<Statement> {
    let mut out = Statement::new("UPDATE pipelines SET ");
    set(&mut out, change);
    out.push(" WHERE id = ").bind(id);
    let mut statements = vec![out];
    if let Some(tags) = &change.tags {
        let mut gone = Statement::new("DELETE FROM pipeline_tags WHERE pipeline_row = ");
        gone.push("(SELECT row_id FROM pipelines WHERE id = ")
            .bind(id)
            .push(")");
        statements.push(gone);
        statements.extend(insert_tags(id, tags));
    }
    statements
}

/// The statement that changes a version of a pipeline.
pub(crate) fn update_version(pipeline_id: &str, id: &str, change: &PipelineChange) -> Statement {
    let mut out = Statement::new("UPDATE pipeline_versions SET ");
    set(&mut out, change);
    of_version(&mut out, pipeline_id, id);
    out
}

/// Appends what becomes of the columns. Bytes are added to, so that they are never too few.
fn set(out: &mut Statement, change: &PipelineChange) {
    let texts: Vec<&str> = change.display_name.as_deref().into_iter().collect();
    let tags = change.tags.clone().unwrap_or_default();
    out.push("bytes = bytes + ").bind(bytes(&texts, &tags));
    if let Some(display_name) = &change.display_name {
        out.push(", display_name = ").bind(display_name.as_str());
    }
    if let Some(tags) = &change.tags {
        out.push(", tags = ").bind(tags_json(tags));
    }
}

fn of_version(out: &mut Statement, pipeline_id: &str, id: &str) {
    out.push(" WHERE id = ").bind(id);
    out.push(" AND pipeline_row = (SELECT row_id FROM pipelines WHERE id = ");
    out.bind(pipeline_id).push(")");
}

/// The statement that deletes the pipeline in a row with its versions, if these are those of the revision.
pub(crate) fn delete_pipeline(row: i64, revision: i64) -> Statement {
    let mut out = Statement::new("DELETE FROM pipelines WHERE row_id = ");
    out.bind(row).push(" AND revision = ").bind(revision);
    out
}

/// The statement that deletes a version of a pipeline.
pub(crate) fn delete_version(pipeline_id: &str, id: &str) -> Statement {
    let mut out = Statement::new("DELETE FROM pipeline_versions");
    of_version(&mut out, pipeline_id, id);
    out
}
