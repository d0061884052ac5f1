-- Names of the tables and columns are those of PostgreSQL; see that file for what they mean.
-- Every index ends in the row id without saying so.

CREATE TABLE hindsight_schema (
    version INTEGER PRIMARY KEY,
    title   TEXT NOT NULL,
    sha256  BLOB NOT NULL
) STRICT;

-- Keys that all replicas share, such as that of page tokens.
CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

-- Identifiers are blobs of the 16 bytes of a UUID in its canonical form, and otherwise text.

-- Parquet files that have the records of results which refer to them; see docs/adr/0062. All of their
-- records were stored first from min_create_us to max_create_us. A file that has no results any more is condemned, and
-- removed a while later.
CREATE TABLE archive_files (
    row_id        INTEGER PRIMARY KEY AUTOINCREMENT,
    path          TEXT NOT NULL UNIQUE,
    parent        TEXT NOT NULL,
    min_create_us INTEGER NOT NULL,
    max_create_us INTEGER NOT NULL,
    results       INTEGER NOT NULL,
    records       INTEGER NOT NULL,
    bytes         INTEGER NOT NULL,
    sha256        BLOB NOT NULL,
    create_us     INTEGER NOT NULL,
    condemned_us  INTEGER
) STRICT;

-- How often files came or went, and how often records left a file; one row.
CREATE TABLE archive_state (
    files INTEGER NOT NULL,
    left_files INTEGER NOT NULL
) STRICT;

INSERT INTO archive_state (files, left_files) VALUES (0, 0);

-- Without a summary all its columns are null; with one, summary_record is not. The records of a result that
-- has an archive_file are in that, and not in this database.
CREATE TABLE results (
    row_id              INTEGER PRIMARY KEY,
    parent              TEXT NOT NULL,
    id                  ANY NOT NULL,
    uid                 ANY NOT NULL,
    etag                TEXT NOT NULL,
    create_us           INTEGER NOT NULL,
    update_us           INTEGER NOT NULL,
    annotations         TEXT NOT NULL,
    summary_record      TEXT,
    summary_type        TEXT,
    summary_start_us    INTEGER,
    summary_end_us      INTEGER,
    summary_status      INTEGER,
    summary_annotations TEXT,
    archive_file        INTEGER REFERENCES archive_files (row_id)
) STRICT;

CREATE UNIQUE INDEX results_by_name ON results (id, parent);
CREATE INDEX results_by_archive_file ON results (archive_file) WHERE archive_file IS NOT NULL;
CREATE INDEX results_by_create ON results (create_us);
CREATE INDEX results_by_parent_create ON results (parent, create_us);
CREATE INDEX results_by_update ON results (update_us);
CREATE INDEX results_by_start ON results (summary_start_us);
CREATE INDEX results_by_end ON results (summary_end_us);
CREATE INDEX results_by_parent_start ON results (parent, summary_start_us);
CREATE INDEX results_by_parent_end ON results (parent, summary_end_us);

-- What lists and filters need of a record. `parent` repeats that of the result for the sake of
-- indexes; results are never renamed. object_* and labels come from the JSON of the payload, run_*
-- too, if its type is that of a run. Without a payload data_type is null. Of the one character
-- U+0001, an object_uid is the record's id, a uid follows from id and create_us (crates/storage/src/codec/uid.rs), and
-- an object_namespace is the parent. A run began or
-- ended when its object did, where its own column is null; it did neither at the least number there
-- is but one. Of data_type, object_kind, object_reason, object_phase, object_condition_status,
-- summary_type and the keys of labels, U+0001 and another character are the number of a word, see
-- crates/storage/src/codec/text/words.rs. body_sha256 is the first 16 bytes of the SHA-256 of the
-- payload.
CREATE TABLE records (
    row_id                  INTEGER PRIMARY KEY,
    result_row              INTEGER NOT NULL REFERENCES results (row_id) ON DELETE CASCADE,
    parent                  TEXT NOT NULL,
    id                      ANY NOT NULL,
    uid                     ANY NOT NULL,
    etag                    TEXT NOT NULL,
    create_us               INTEGER NOT NULL,
    update_us               INTEGER NOT NULL,
    data_type               TEXT,
    body_size               INTEGER,
    body_sha256             BLOB,
    object_kind             TEXT,
    object_name             TEXT,
    object_namespace        TEXT,
    object_uid              ANY,
    object_pipeline_ref     TEXT,
    object_task_ref         TEXT,
    object_reason           TEXT,
    object_condition_status TEXT,
    object_phase            TEXT,
    object_creation_us      INTEGER,
    object_start_us         INTEGER,
    object_completion_us    INTEGER,
    labels                  TEXT,
    run_outcome             INTEGER,
    run_began_us            INTEGER,
    run_ended_us            INTEGER,
    run_pipeline            TEXT,
    run_signature           TEXT,
    run_message             TEXT,
    run_attempt             INTEGER
) STRICT;

CREATE UNIQUE INDEX records_by_name ON records (id, result_row);
CREATE INDEX records_by_result ON records (result_row, create_us);
CREATE INDEX records_by_create ON records (create_us);
CREATE INDEX records_by_parent_create ON records (parent, create_us);
CREATE INDEX records_by_update ON records (update_us);
CREATE INDEX records_by_type ON records (data_type, create_us);
CREATE INDEX records_by_parent_type ON records (parent, data_type, create_us);
CREATE INDEX records_by_object_uid ON records (object_uid) WHERE object_uid <> char(1);
CREATE INDEX records_by_object_name ON records (object_name, create_us);
CREATE INDEX records_by_creation ON records
    (object_creation_us, run_pipeline, run_outcome, object_start_us, object_completion_us,
     run_began_us, run_ended_us, data_type, parent);

-- Payloads that others of the same parent refer to: those are kept as zstd frames with the
-- content as their dictionary, which is the payload with marks in the place of the ids of its
-- record and result. Content never changes; bytes is one zstd frame by itself. Where
-- `owned` is 0, no record is known to have this payload (any more), and a sweep finds out: it
-- notes the record that has it, or packs again what refers to it and deletes it.
-- AUTOINCREMENT, because another process may remember the row of a dictionary that is gone.
CREATE TABLE dictionaries (
    row_id INTEGER PRIMARY KEY AUTOINCREMENT,
    parent TEXT NOT NULL,
    payload_sha256 BLOB NOT NULL,
    sha256 BLOB NOT NULL,
    size   INTEGER NOT NULL,
    owned  INTEGER NOT NULL DEFAULT 0,
    bytes  BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX dictionaries_by_content ON dictionaries (parent, sha256);
CREATE INDEX dictionaries_by_payload ON dictionaries (parent, payload_sha256);
CREATE INDEX dictionaries_unowned ON dictionaries (row_id) WHERE owned = 0;

-- Which dictionary new bodies refer to. A key is the digest of what they have in common.
CREATE TABLE dictionary_keys (
    key   BLOB PRIMARY KEY,
    dictionary INTEGER NOT NULL REFERENCES dictionaries (row_id) ON DELETE CASCADE
) STRICT;

CREATE INDEX dictionary_keys_by_dictionary ON dictionary_keys (dictionary);

-- The payloads, apart so that lists without them do not read past them. codec 0: as they are;
-- 1: one zstd frame; 2: one zstd frame with the content of `dictionary` as its dictionary, without
-- its magic number; 16 and more: the same in an object, of which bytes is the reference. An empty
-- payload has no row.
CREATE TABLE bodies (
    record_row INTEGER PRIMARY KEY REFERENCES records (row_id) ON DELETE CASCADE,
    codec      INTEGER NOT NULL,
    bytes      BLOB NOT NULL,
    dictionary      INTEGER REFERENCES dictionaries (row_id) ON DELETE RESTRICT
) STRICT;

CREATE INDEX bodies_by_dictionary ON bodies (dictionary);

-- A payload that goes or changes may be the one that a dictionary was made of.
CREATE TRIGGER records_disowned AFTER DELETE ON records WHEN OLD.body_sha256 IS NOT NULL BEGIN
    UPDATE dictionaries SET owned = 0
        WHERE parent = OLD.parent AND payload_sha256 = OLD.body_sha256 AND owned = 1;
END;

CREATE TRIGGER records_disowned_other AFTER UPDATE OF body_sha256 ON records
WHEN OLD.body_sha256 IS NOT NEW.body_sha256 BEGIN
    UPDATE dictionaries SET owned = 0
        WHERE parent = OLD.parent AND payload_sha256 = OLD.body_sha256 AND owned = 1;
END;

-- Questions that people ask of records among many, each answered by an index of its own; see
-- docs/adr/0020.
CREATE INDEX records_by_pipeline ON records (object_pipeline_ref, create_us, parent)
    WHERE object_pipeline_ref IS NOT NULL;
-- A phase is in the place of a reason that is not there.
-- What went well is found among the newest: Q, R and W are the words Succeeded, Completed and True.
CREATE INDEX records_by_reason ON records
    (coalesce(object_reason, object_phase), create_us, parent)
    WHERE coalesce(object_reason, object_phase) <> (char(1) || 'Q')
        AND coalesce(object_reason, object_phase) <> (char(1) || 'R');
CREATE INDEX records_by_status ON records (object_condition_status, create_us, parent)
    WHERE object_condition_status <> (char(1) || 'W');
-- Runs that did not do what they should, or not yet: 1 is success.
CREATE INDEX records_by_outcome ON records (run_outcome, create_us, parent)
    WHERE run_outcome <> 1;
-- Runs that failed alike. The other has those that wait for the background pass, mostly none.
CREATE INDEX records_by_signature ON records (run_signature, create_us, parent)
    WHERE run_signature IS NOT NULL;
CREATE INDEX records_unsigned ON records (row_id)
    WHERE run_outcome > 1 AND run_signature IS NULL;
CREATE INDEX records_by_took ON records
    ((object_completion_us - object_start_us), create_us, parent);
-- Runs that began or ended at another time than their object says, which are few but of some engines.
CREATE INDEX records_of_own_times ON records (create_us)
    WHERE run_began_us IS NOT NULL OR run_ended_us IS NOT NULL;
-- What took ten minutes and more, in the order of storing; see docs/adr/0057.
CREATE INDEX records_long ON records (create_us)
    WHERE object_completion_us - object_start_us >= 600000000
        OR run_began_us IS NOT NULL OR run_ended_us IS NOT NULL;

-- What was stored more than six hours before or after it began, more than six hours before it
-- completed, or more than one hour after that, as an object or a run. Everything else is found by the
-- time of storing; see docs/adr/0057.
CREATE INDEX records_late ON records 
    (create_us, object_start_us, object_completion_us, run_began_us, run_ended_us)
    WHERE create_us - object_start_us NOT BETWEEN -21600000000 AND 21600000000
        OR create_us - nullif(run_began_us, -9223372036854775807)
            NOT BETWEEN -21600000000 AND 21600000000
        OR create_us - object_completion_us NOT BETWEEN -21600000000 AND 3600000000
        OR create_us - nullif(run_ended_us, -9223372036854775807)
            NOT BETWEEN -21600000000 AND 3600000000;

-- 1 is success, as of runs.
CREATE INDEX results_by_status ON results (summary_status, create_us) WHERE summary_status <> 1;

-- Every label once, and the records that have it, in the order in which lists come, with the type of
-- the record where that is a word: its number.
CREATE TABLE labels (
    row_id INTEGER PRIMARY KEY,
    value  TEXT NOT NULL,
    key    TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX labels_by_key ON labels (key, value);

CREATE TABLE record_labels (
    label      INTEGER NOT NULL,
    at_us      INTEGER NOT NULL,
    record_row INTEGER NOT NULL,
    type       INTEGER,
    PRIMARY KEY (label, at_us, record_row)
) STRICT, WITHOUT ROWID;

-- Takes the labels of a record as a JSON object before the record, which has a JSON array of their
-- numbers. No row counts as changed.
CREATE VIEW given_labels AS SELECT NULL AS labels WHERE FALSE;

CREATE TRIGGER labels_given INSTEAD OF INSERT ON given_labels BEGIN
    INSERT OR IGNORE INTO labels (value, key) SELECT value, key FROM json_each(NEW.labels);
END;

CREATE TRIGGER records_labelled AFTER INSERT ON records WHEN NEW.labels IS NOT NULL BEGIN
    INSERT OR IGNORE INTO record_labels SELECT value, NEW.create_us, NEW.row_id,
        CASE unicode(NEW.data_type) WHEN 1 THEN unicode(substr(NEW.data_type, 2)) END
        FROM json_each(NEW.labels);
END;

CREATE TRIGGER records_relabelled AFTER UPDATE OF labels, data_type ON records
WHEN NEW.labels IS NOT OLD.labels OR NEW.data_type IS NOT OLD.data_type BEGIN
    DELETE FROM record_labels WHERE at_us = OLD.create_us AND record_row = OLD.row_id
        AND label IN (SELECT value FROM json_each(OLD.labels));
    INSERT OR IGNORE INTO record_labels SELECT value, NEW.create_us, NEW.row_id,
        CASE unicode(NEW.data_type) WHEN 1 THEN unicode(substr(NEW.data_type, 2)) END
        FROM json_each(NEW.labels);
    DELETE FROM labels WHERE row_id IN (SELECT value FROM json_each(OLD.labels))
        AND NOT EXISTS (SELECT 1 FROM record_labels AS r WHERE r.label = labels.row_id);
END;

CREATE TRIGGER records_unlabelled AFTER DELETE ON records WHEN OLD.labels IS NOT NULL BEGIN
    DELETE FROM record_labels WHERE at_us = OLD.create_us AND record_row = OLD.row_id
        AND label IN (SELECT value FROM json_each(OLD.labels));
    DELETE FROM labels WHERE row_id IN (SELECT value FROM json_each(OLD.labels))
        AND NOT EXISTS (SELECT 1 FROM record_labels AS r WHERE r.label = labels.row_id);
END;

-- The parts of three characters that names have, and the records of each. A name that is longer than any of Kubernetes is not
-- divided: its parts would be kept in memory while all writers wait. Those have an index of their own.
CREATE VIRTUAL TABLE record_names USING fts5
    (name, content = '', columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1');

-- Parts of it are merged in transactions of writers, for which others wait: a few blocks in each, as the server says, or all
-- parts of a size when there are so many; see docs/adr/0066.
INSERT INTO record_names (record_names, rank) VALUES ('pgsz', 1000), ('automerge', 0), ('crisismerge', 32);

CREATE INDEX records_by_long_name ON records (create_us) WHERE length(object_name) > 256;

CREATE TRIGGER records_named AFTER INSERT ON records WHEN length(NEW.object_name) <= 256 BEGIN
    INSERT INTO record_names (rowid, name) VALUES (NEW.row_id, NEW.object_name);
END;

CREATE TRIGGER records_unnamed AFTER DELETE ON records WHEN length(OLD.object_name) <= 256 BEGIN
    INSERT INTO record_names (record_names, rowid, name)
        VALUES ('delete', OLD.row_id, OLD.object_name);
END;

CREATE TRIGGER records_renamed AFTER UPDATE OF object_name ON records
WHEN OLD.object_name IS NOT NEW.object_name BEGIN
    INSERT INTO record_names (record_names, rowid, name)
        SELECT 'delete', OLD.row_id, OLD.object_name WHERE length(OLD.object_name) <= 256;
    INSERT INTO record_names (rowid, name)
        SELECT NEW.row_id, NEW.object_name WHERE length(NEW.object_name) <= 256;
END;

-- Parts of payloads that operators have indexed; see docs/adr/0021.

-- Every row up to done_row was looked at; ready, once that is until_row, the last that was there
-- before the field.
CREATE TABLE indexed_paths (
    row_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    path      TEXT NOT NULL,
    kind      TEXT NOT NULL,
    added_us  INTEGER NOT NULL,
    ready     INTEGER NOT NULL,
    done_row  INTEGER NOT NULL,
    until_row INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX indexed_paths_by_path ON indexed_paths (path);

-- Fields that were removed and of which something is left.
CREATE TABLE dropped_indexes (
    field INTEGER PRIMARY KEY
) STRICT;

-- It goes up with every change of the table above.
CREATE TABLE index_generation (
    generation INTEGER NOT NULL
) STRICT;

INSERT INTO index_generation (generation) VALUES (0);

CREATE TABLE index_entries (
    field      INTEGER NOT NULL,
    value      TEXT NOT NULL,
    at_us      INTEGER NOT NULL,
    record_row INTEGER NOT NULL REFERENCES records (row_id) ON DELETE CASCADE,
    PRIMARY KEY (field, value, at_us, record_row)
) STRICT, WITHOUT ROWID;

CREATE INDEX index_entries_by_record ON index_entries (record_row, field, value);

-- Bodies and chunks of logs that lie in an object store; see docs/adr/0023 and 0050.

-- Every object that was begun and is not known to be gone. One is held by the body or chunk that
-- refers to it, from the commit of that row on; before and after it is loose, and goes in the end.
-- holder is the row of the record, or with log_line, its first line, the source of the chunk.
CREATE TABLE objects (
    object     BLOB PRIMARY KEY,
    size       INTEGER NOT NULL,
    holder     INTEGER,
    log_line   INTEGER,
    unreferenced_us   INTEGER,
    condemned_us  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX objects_unreferenced ON objects (unreferenced_us) WHERE holder IS NULL;

CREATE TRIGGER bodies_hold AFTER INSERT ON bodies WHEN NEW.codec >= 16 BEGIN
    UPDATE objects SET holder = NEW.record_row, unreferenced_us = NULL
        WHERE object = substr(NEW.bytes, 1, 16) AND holder IS NULL AND condemned_us IS NULL;
    SELECT RAISE(ABORT, 'the object of a body is gone') WHERE changes() = 0;
END;

CREATE TRIGGER bodies_hold_other AFTER UPDATE OF codec, bytes ON bodies WHEN NEW.codec >= 16
    AND (OLD.codec < 16 OR substr(NEW.bytes, 1, 16) <> substr(OLD.bytes, 1, 16)) BEGIN
    UPDATE objects SET holder = NEW.record_row, unreferenced_us = NULL
        WHERE object = substr(NEW.bytes, 1, 16) AND holder IS NULL AND condemned_us IS NULL;
    SELECT RAISE(ABORT, 'the object of a body is gone') WHERE changes() = 0;
END;

CREATE TRIGGER bodies_let_go_other AFTER UPDATE OF codec, bytes ON bodies WHEN OLD.codec >= 16
    AND (NEW.codec < 16 OR substr(NEW.bytes, 1, 16) <> substr(OLD.bytes, 1, 16)) BEGIN
    UPDATE objects SET holder = NULL WHERE object = substr(OLD.bytes, 1, 16);
END;

CREATE TRIGGER bodies_let_go AFTER DELETE ON bodies WHEN OLD.codec >= 16 BEGIN
    UPDATE objects SET holder = NULL WHERE object = substr(OLD.bytes, 1, 16);
END;

-- The feed of changes: records that were inserted or replaced, in the order of the commits, until
-- a sweep removes them; the last one stays. See docs/adr/0040.
CREATE TABLE changes (
    row_id     INTEGER PRIMARY KEY,
    record_row INTEGER NOT NULL,
    update_us  INTEGER NOT NULL,
    at_s       INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;

CREATE TRIGGER records_inserted AFTER INSERT ON records BEGIN
    INSERT INTO changes (record_row, update_us) VALUES (NEW.row_id, NEW.update_us);
END;

-- The background pass that writes signatures again changes no record.
CREATE TRIGGER records_replaced AFTER UPDATE OF update_us, etag ON records
WHEN (NEW.update_us, NEW.etag) <> (OLD.update_us, OLD.etag) BEGIN
    INSERT INTO changes (record_row, update_us) VALUES (NEW.row_id, NEW.update_us);
END;

-- Results that retention leaves alone, until a time if there is one; see docs/adr/0060.
CREATE TABLE holds (
    result_row INTEGER PRIMARY KEY REFERENCES results (row_id) ON DELETE CASCADE,
    reason     TEXT NOT NULL,
    caller     TEXT NOT NULL,
    create_us  INTEGER NOT NULL,
    expire_us  INTEGER
) STRICT;

-- How far the events of each receiver were delivered, and which server sends them until when. See
-- docs/adr/0048.
CREATE TABLE event_cursors (
    name              TEXT PRIMARY KEY,
    after_transaction INTEGER NOT NULL,
    after_row         INTEGER NOT NULL,
    holder            TEXT NOT NULL,
    held_until_ms     INTEGER NOT NULL
) STRICT;

-- Logs of runs; see docs/adr/0045. `log` is the id of the record of the run, which need not be there yet.
-- kind 0: lines of a container; 1: a text that was uploaded whole; 2: an upload that is not finished, of
-- which pod is any text. Times are those of lines. A source with a sha256 is sealed; of its lines, so many
-- from the first on lie in chunks that stay as they are. Every change gives another version. Where
-- `signed` is below `sign_asked`, a background pass looks whether the end of a sealed source tells why
-- its run failed; see docs/adr/0052.
CREATE TABLE log_sources (
    row_id       INTEGER PRIMARY KEY,
    result_row   INTEGER NOT NULL REFERENCES results (row_id) ON DELETE CASCADE,
    log          ANY NOT NULL,
    kind         INTEGER NOT NULL,
    pod          TEXT NOT NULL,
    container    TEXT NOT NULL,
    restart      INTEGER NOT NULL,
    lines        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    first_us     INTEGER,
    last_us      INTEGER,
    holes        INTEGER NOT NULL,
    sha256       BLOB,
    packed       INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    update_us    INTEGER NOT NULL,
    sign_asked   INTEGER NOT NULL DEFAULT 1,
    signed       INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX log_sources_by_name
    ON log_sources (result_row, log, kind, pod, container, restart);
CREATE INDEX log_sources_unpacked ON log_sources (row_id)
    WHERE sha256 IS NOT NULL AND packed < lines;
CREATE INDEX log_sources_unsigned ON log_sources (row_id)
    WHERE sha256 IS NOT NULL AND signed < sign_asked;

-- Consecutive lines of a source, in the form that crates/logs/src/chunk.rs gives them. first_byte is how
-- many bytes come before. codec 1: zstd; 2: the same, and the last line has no end; 16 more: the same in an
-- object, of which body is the reference.
CREATE TABLE log_chunks (
    source     INTEGER NOT NULL REFERENCES log_sources (row_id) ON DELETE CASCADE,
    first_line INTEGER NOT NULL,
    lines      INTEGER NOT NULL,
    first_byte INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    min_us     INTEGER NOT NULL,
    max_us     INTEGER NOT NULL,
    codec      INTEGER NOT NULL,
    body       BLOB NOT NULL,
    PRIMARY KEY (source, first_line)
) STRICT;

CREATE TRIGGER log_chunks_hold AFTER INSERT ON log_chunks WHEN NEW.codec >= 16 BEGIN
    UPDATE objects SET holder = NEW.source, log_line = NEW.first_line, unreferenced_us = NULL
        WHERE object = substr(NEW.body, 1, 16) AND holder IS NULL AND condemned_us IS NULL;
    SELECT RAISE(ABORT, 'the object of a log is gone') WHERE changes() = 0;
END;

CREATE TRIGGER log_chunks_let_go AFTER DELETE ON log_chunks WHEN OLD.codec >= 16 BEGIN
    UPDATE objects SET holder = NULL, log_line = NULL WHERE object = substr(OLD.body, 1, 16);
END;

CREATE TRIGGER results_leave_file AFTER UPDATE OF archive_file ON results
WHEN OLD.archive_file IS NOT NULL AND NEW.archive_file IS NOT OLD.archive_file BEGIN
    UPDATE archive_state SET left_files = left_files + 1;
END;

-- The logs of a run stay where they are when its record moves to a file.
CREATE TRIGGER records_unlogged AFTER DELETE ON records
WHEN NOT EXISTS (SELECT 1 FROM results
    WHERE row_id = OLD.result_row AND archive_file IS NOT NULL) BEGIN
    DELETE FROM log_sources WHERE result_row = OLD.result_row AND log = OLD.id;
END;

-- A failure that is stored after its logs were sealed has a signature without them.
CREATE TRIGGER records_failed AFTER INSERT ON records
WHEN NEW.run_outcome > 1 BEGIN
    UPDATE log_sources SET sign_asked = sign_asked + 1
        WHERE result_row = NEW.result_row AND log = NEW.id AND sha256 IS NOT NULL;
END;

CREATE TRIGGER records_failed_other AFTER UPDATE OF body_sha256 ON records
WHEN NEW.run_outcome > 1 BEGIN
    UPDATE log_sources SET sign_asked = sign_asked + 1
        WHERE result_row = NEW.result_row AND log = NEW.id AND sha256 IS NOT NULL;
END;

-- Pipelines of Kubeflow and their versions; see docs/pipelines.md. Ids are UUIDs, times are in whole seconds, tags are
-- JSON objects of texts. `bytes` is what the texts of a row take. `versions` is how many versions a pipeline has, and
-- `revision` changes with each version that comes or goes.
CREATE TABLE pipelines (
    row_id       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    namespace    TEXT NOT NULL,
    name         TEXT NOT NULL,
    display_name TEXT NOT NULL,
    description  TEXT NOT NULL,
    tags         TEXT NOT NULL,
    create_s     INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    original_id  TEXT,
    versions     INTEGER NOT NULL DEFAULT 0,
    revision     INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX pipelines_by_name ON pipelines (namespace, name);
-- With names, so that a part of one is looked for in an index alone.
CREATE INDEX pipelines_by_display_name ON pipelines (namespace, display_name, id, name);
CREATE INDEX pipelines_by_time ON pipelines (namespace, create_s, id, name, display_name);

-- The same tags, for filters.
CREATE TABLE pipeline_tags (
    key          TEXT NOT NULL,
    value        TEXT NOT NULL,
    pipeline_row INTEGER NOT NULL REFERENCES pipelines (row_id) ON DELETE CASCADE,
    PRIMARY KEY (key, value, pipeline_row)
) STRICT, WITHOUT ROWID;

CREATE INDEX pipeline_tags_of ON pipeline_tags (pipeline_row);

-- `spec` is JSON, as answers show it.
CREATE TABLE pipeline_versions (
    row_id          INTEGER PRIMARY KEY,
    pipeline_row    INTEGER NOT NULL REFERENCES pipelines (row_id) ON DELETE CASCADE,
    id              TEXT NOT NULL UNIQUE,
    name            TEXT NOT NULL,
    display_name    TEXT NOT NULL,
    description     TEXT NOT NULL,
    tags            TEXT NOT NULL,
    create_s        INTEGER NOT NULL,
    bytes           INTEGER NOT NULL,
    package_url     TEXT NOT NULL,
    code_source_url TEXT NOT NULL,
    original_id     TEXT,
    spec            TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX pipeline_versions_by_name ON pipeline_versions (pipeline_row, name);
CREATE INDEX pipeline_versions_by_time ON pipeline_versions (pipeline_row, create_s, id);

CREATE TRIGGER pipeline_versions_come AFTER INSERT ON pipeline_versions BEGIN
    UPDATE pipelines SET versions = versions + 1, revision = revision + 1
        WHERE row_id = NEW.pipeline_row;
END;

CREATE TRIGGER pipeline_versions_go AFTER DELETE ON pipeline_versions BEGIN
    UPDATE pipelines SET versions = versions - 1, revision = revision + 1
        WHERE row_id = OLD.pipeline_row;
END;
