-- Times are microseconds since 1970 in UTC. Text is ordered by its bytes. In text that clients
-- send, U+0000 is kept as U+0001 U+0001, and U+0001 as U+0001 U+0002, because PostgreSQL has
-- no U+0000. Indexed text that clients send is cut to 128 characters in the index, because an
-- index entry has at most some 2,700 bytes.

-- One row for each migration that was applied. The table's name says whose database this is.
CREATE TABLE hindsight_schema (
    version BIGINT PRIMARY KEY,
    title   TEXT NOT NULL,
    sha256  BYTEA NOT NULL
);

-- Keys that all replicas share, such as that of page tokens.
CREATE TABLE secrets (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);

-- Identifiers are bytes: 16 of a UUID in its canonical form, and otherwise the text, with a byte of
-- zero before it where it has 16 bytes itself. This is the text of one.
CREATE FUNCTION id_text(id BYTEA) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN length(id) = 16 THEN CAST(encode(id, 'hex') AS uuid)::text
        WHEN length(id) = 17 AND get_byte(id, 0) = 0 THEN convert_from(substr(id, 2), 'UTF8')
        ELSE convert_from(id, 'UTF8')
    END
$$;

-- A uid, of which one byte, 1, stands for what follows from id and time; see crates/storage/src/codec/uid.rs.
CREATE FUNCTION following_uid(uid BYTEA, id BYTEA, create_us BIGINT, mark BIGINT) RETURNS BYTEA
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE uid
        WHEN '\x01' THEN
            int8send(create_us / 1000 * 65536 + mark + create_us % 1000) || substr(id, 9)
        ELSE uid
    END
$$;

-- Parquet files that have the records of results which refer to them; see docs/adr/0062. All of their
-- records were stored first from min_create_us to max_create_us. A file that has no results any more is condemned, and
-- removed a while later.
CREATE TABLE archive_files (
    row_id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path          TEXT COLLATE "C" NOT NULL UNIQUE,
    parent        TEXT COLLATE "C" NOT NULL,
    min_create_us BIGINT NOT NULL,
    max_create_us BIGINT NOT NULL,
    results       BIGINT NOT NULL,
    records       BIGINT NOT NULL,
    bytes         BIGINT NOT NULL,
    sha256        BYTEA NOT NULL,
    create_us     BIGINT NOT NULL,
    condemned_us  BIGINT
);

-- How often files came or went, and how often records left a file; one row.
CREATE TABLE archive_state (
    files BIGINT NOT NULL,
    left_files BIGINT NOT NULL
);

INSERT INTO archive_state (files, left_files) VALUES (0, 0);

-- Without a summary all its columns are null; with one, summary_record is not. The records of a result that
-- has an archive_file are in that, and not in this database.
CREATE TABLE results (
    row_id              BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY WITH (fillfactor = 100),
    create_us           BIGINT NOT NULL,
    update_us           BIGINT NOT NULL,
    summary_start_us    BIGINT,
    summary_end_us      BIGINT,
    archive_file        BIGINT REFERENCES archive_files (row_id),
    summary_status      INTEGER,
    parent              TEXT COLLATE "C" NOT NULL,
    id                  BYTEA NOT NULL,
    uid                 BYTEA NOT NULL,
    etag                TEXT COLLATE "C" NOT NULL,
    annotations         JSONB NOT NULL,
    summary_record      TEXT COLLATE "C",
    summary_type        TEXT COLLATE "C",
    summary_annotations JSONB
);

CREATE UNIQUE INDEX results_by_name ON results (id, parent);
CREATE INDEX results_by_archive_file ON results (archive_file) WHERE archive_file IS NOT NULL;
CREATE INDEX results_by_create ON results (create_us) WITH (fillfactor = 100);
CREATE INDEX results_by_parent_create ON results (parent, create_us);
CREATE INDEX results_by_update ON results (update_us) WITH (fillfactor = 100);
CREATE INDEX results_by_start ON results (summary_start_us);
CREATE INDEX results_by_end ON results (summary_end_us);

-- What lists and filters need of a record. `parent` repeats that of the result for the sake of
-- indexes; results are never renamed. object_* and labels come from the JSON of
-- the payload, run_* too, if its type is that of a run. Without a payload data_type is null. An
-- object_uid of one byte, 1, is the record's id, a uid of one byte, 1, follows from id and create_us, and an object_namespace of U+0001 is the parent.
-- A run began or ended when its object did, where its own column is null; it did neither at the
-- least number there is but one. Of data_type, object_kind, object_reason, object_phase,
-- object_condition_status, summary_type and the keys of labels, U+0001 and another character are
-- the number of a word, see crates/storage/src/codec/text/words.rs. body_sha256 is the first 16
-- bytes of the SHA-256 of the payload.
CREATE TABLE records (
    row_id                  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY WITH (fillfactor = 100),
    result_row              BIGINT NOT NULL REFERENCES results (row_id) ON DELETE CASCADE,
    create_us               BIGINT NOT NULL,
    update_us               BIGINT NOT NULL,
    object_creation_us      BIGINT,
    object_start_us         BIGINT,
    object_completion_us    BIGINT,
    run_began_us            BIGINT,
    run_ended_us            BIGINT,
    body_size               INTEGER,
    run_outcome             SMALLINT,
    run_attempt             SMALLINT,
    parent                  TEXT COLLATE "C" NOT NULL,
    id                      BYTEA NOT NULL,
    uid                     BYTEA NOT NULL,
    etag                    TEXT COLLATE "C" NOT NULL,
    data_type               TEXT COLLATE "C",
    body_sha256             BYTEA,
    object_kind             TEXT COLLATE "C",
    object_name             TEXT COLLATE "C",
    object_namespace        TEXT COLLATE "C",
    object_uid              BYTEA,
    object_pipeline_ref     TEXT COLLATE "C",
    object_task_ref         TEXT COLLATE "C",
    object_reason           TEXT COLLATE "C",
    object_condition_status TEXT COLLATE "C",
    object_phase            TEXT COLLATE "C",
    run_pipeline            TEXT COLLATE "C",
    run_signature           TEXT COLLATE "C",
    run_message             TEXT COLLATE "C",
    labels                  JSONB
);

CREATE UNIQUE INDEX records_by_name ON records (id, result_row);
CREATE INDEX records_by_result ON records (result_row);
CREATE INDEX records_by_create ON records (create_us) WITH (fillfactor = 100);
CREATE INDEX records_by_parent_create ON records (parent, create_us) WITH (fillfactor = 100);
CREATE INDEX records_by_update ON records (update_us) WITH (fillfactor = 100);
CREATE INDEX records_by_type ON records (left(data_type, 128), create_us) WITH (fillfactor = 100);
-- A hash takes a third of the tree, and uids are only ever compared for equality.
CREATE INDEX records_by_object_uid ON records USING hash (object_uid) WHERE object_uid <> '\x01';
CREATE INDEX records_by_object_name ON records (left(object_name, 128));
CREATE INDEX records_by_creation ON records (object_creation_us)
    INCLUDE (object_start_us, object_completion_us, run_began_us, run_ended_us, run_pipeline,
             run_outcome);

-- Payloads that others of the same parent refer to: those are kept as zstd frames with the
-- content as their dictionary, which is the payload with marks in the place of the ids of its
-- record and result. Content never changes; bytes is one zstd frame by itself. Where
-- `owned` is 0, no record is known to have this payload (any more), and a sweep finds out: it
-- notes the record that has it, or packs again what refers to it and deletes it.
CREATE TABLE dictionaries (
    row_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent TEXT COLLATE "C" NOT NULL,
    payload_sha256 BYTEA NOT NULL,
    sha256 BYTEA NOT NULL,
    size   BIGINT NOT NULL,
    owned  BIGINT NOT NULL DEFAULT 0,
    bytes  BYTEA NOT NULL
);

CREATE UNIQUE INDEX dictionaries_by_content ON dictionaries (parent, sha256);
CREATE INDEX dictionaries_by_payload ON dictionaries (parent, payload_sha256);
CREATE INDEX dictionaries_unowned ON dictionaries (row_id) WHERE owned = 0;

-- They are compressed already.
ALTER TABLE dictionaries ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Which dictionary new bodies refer to. A key is the digest of what they have in common.
CREATE TABLE dictionary_keys (
    key   BYTEA PRIMARY KEY,
    dictionary BIGINT NOT NULL REFERENCES dictionaries (row_id) ON DELETE CASCADE
);

CREATE INDEX dictionary_keys_by_dictionary ON dictionary_keys (dictionary);

-- The payloads, apart so that lists without them do not read past them. codec 0: as they are;
-- 1: one zstd frame; 2: one zstd frame with the content of `dictionary` as its dictionary, without
-- its magic number; 16 and more: the same in an object, of which bytes is the reference. An empty
-- payload has no row.
CREATE TABLE bodies (
    record_row BIGINT PRIMARY KEY WITH (fillfactor = 100)
               REFERENCES records (row_id) ON DELETE CASCADE,
    dictionary INTEGER REFERENCES dictionaries (row_id) ON DELETE RESTRICT,
    codec      SMALLINT NOT NULL,
    bytes      BYTEA NOT NULL
);

ALTER TABLE bodies ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE INDEX bodies_by_dictionary ON bodies (dictionary);

-- A payload that goes or changes may be the one that a dictionary was made of.
CREATE FUNCTION records_disown() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE dictionaries SET owned = 0
        WHERE parent = OLD.parent AND payload_sha256 = OLD.body_sha256 AND owned = 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER records_disowned AFTER DELETE ON records
FOR EACH ROW WHEN (OLD.body_sha256 IS NOT NULL) EXECUTE FUNCTION records_disown();

CREATE TRIGGER records_disowned_other AFTER UPDATE OF body_sha256 ON records
FOR EACH ROW WHEN (OLD.body_sha256 IS DISTINCT FROM NEW.body_sha256)
EXECUTE FUNCTION records_disown();

-- Questions that people ask of records among many, each answered by an index of its own; see
-- docs/adr/0020. The index of labels also knows whose a record is, its type, and in which
-- week and on which day it was stored; see docs/adr/0024 and 0044. Lists ask it for many weeks, one by one, and each time
-- all is read that was written last and is not merged yet, up to the limit.
CREATE INDEX records_by_labels ON records
    USING gin (labels jsonb_path_ops, (ARRAY[parent]), (ARRAY[data_type]),
               (ARRAY[create_us / 604800000000, create_us / 86400000000]))
    WITH (gin_pending_list_limit = 64);
-- Indexes of what is rare have the time of storing as a term of their own, so that a list in its order
-- goes by one of them and not by all records; see docs/adr/0057.
CREATE INDEX records_by_pipeline ON records (left(object_pipeline_ref, 128), (create_us + 0))
    WHERE left(object_pipeline_ref, 128) IS NOT NULL;
-- A phase is in the place of a reason that is not there.
-- What went well is found among the newest: Q, R and W are the words Succeeded, Completed and True.
CREATE INDEX records_by_reason
    ON records (left(coalesce(object_reason, object_phase), 128), (create_us + 0))
    WHERE left(coalesce(object_reason, object_phase), 128) <> E'\x01Q'
        AND left(coalesce(object_reason, object_phase), 128) <> E'\x01R';
CREATE INDEX records_by_status ON records (left(object_condition_status, 128), (create_us + 0))
    WHERE left(object_condition_status, 128) <> E'\x01W';
-- Runs that did not do what they should, or not yet: 1 is success.
CREATE INDEX records_by_outcome ON records (run_outcome, (create_us + 0)) WHERE run_outcome <> 1;
-- Runs that failed alike. The other has those that wait for the background pass, mostly none.
CREATE INDEX records_by_signature ON records (run_signature, (create_us + 0))
    WHERE run_signature IS NOT NULL;
CREATE INDEX records_unsigned ON records (row_id)
    WHERE run_outcome > 1 AND run_signature IS NULL;
CREATE INDEX records_by_took ON records ((object_completion_us - object_start_us));
-- Runs that began or ended at another time than their object says, which are few but of some engines.
CREATE INDEX records_of_own_times ON records (create_us)
    WHERE run_began_us IS NOT NULL OR run_ended_us IS NOT NULL;
-- What took ten minutes and more, in the order of storing; see docs/adr/0057.
CREATE INDEX records_long ON records ((create_us + 0))
    WHERE object_completion_us - object_start_us >= 600000000
        OR run_began_us IS NOT NULL OR run_ended_us IS NOT NULL;
-- Numbers of the parts of three characters that a name has, of which some share one: that takes a quarter less than their texts.
-- A name that is longer than any of Kubernetes is not divided. No statistics are kept, so that the planner takes every part for
-- rare: to divide the name of each row takes seconds.
CREATE FUNCTION name_trigrams(name TEXT) RETURNS INTEGER[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN length(name) <= 256
        THEN ARRAY(SELECT hashtext(substr(name, i, 3)) & 4095 FROM generate_series(1, length(name) - 2) AS i)
        ELSE '{-1}' END
$$;

CREATE INDEX records_by_name_trigrams ON records USING gin (name_trigrams(object_name))
    WITH (gin_pending_list_limit = 256);
ALTER INDEX records_by_name_trigrams ALTER COLUMN 1 SET STATISTICS 0;

-- What did not go well is a small part of all, which other questions narrow down further.
CREATE INDEX records_by_labels_unwell ON records
    USING gin (labels jsonb_path_ops, (ARRAY[parent]), (ARRAY[data_type]),
               (ARRAY[create_us / 604800000000, create_us / 86400000000]))
    WITH (gin_pending_list_limit = 64)
    WHERE left(object_condition_status, 128) <> E'\x01W'
        OR (left(coalesce(object_reason, object_phase), 128) <> E'\x01Q'
            AND left(coalesce(object_reason, object_phase), 128) <> E'\x01R');
CREATE INDEX records_by_pipeline_unwell
    ON records (left(object_pipeline_ref, 128), (create_us + 0))
    WHERE left(object_condition_status, 128) <> E'\x01W'
        OR (left(coalesce(object_reason, object_phase), 128) <> E'\x01Q'
            AND left(coalesce(object_reason, object_phase), 128) <> E'\x01R');
CREATE INDEX records_by_took_unwell ON records ((object_completion_us - object_start_us))
    WHERE left(object_condition_status, 128) <> E'\x01W'
        OR (left(coalesce(object_reason, object_phase), 128) <> E'\x01Q'
            AND left(coalesce(object_reason, object_phase), 128) <> E'\x01R');

-- What was stored more than six hours before or after it began, more than six hours before it
-- completed, or more than one hour after that, as an object or a run. Everything else is found by the
-- time of storing; see docs/adr/0057.
CREATE INDEX records_late ON records (create_us)
    WHERE create_us - object_start_us NOT BETWEEN -21600000000 AND 21600000000
        OR create_us - nullif(run_began_us, -9223372036854775807)
            NOT BETWEEN -21600000000 AND 21600000000
        OR create_us - object_completion_us NOT BETWEEN -21600000000 AND 3600000000
        OR create_us - nullif(run_ended_us, -9223372036854775807)
            NOT BETWEEN -21600000000 AND 3600000000;
-- The same of one parent, whose name is written as no column is: PostgreSQL does not know how few they are.
CREATE INDEX records_late_by_parent ON records ((parent || ''), create_us)
    WHERE create_us - object_start_us NOT BETWEEN -21600000000 AND 21600000000
        OR create_us - nullif(run_began_us, -9223372036854775807)
            NOT BETWEEN -21600000000 AND 21600000000
        OR create_us - object_completion_us NOT BETWEEN -21600000000 AND 3600000000
        OR create_us - nullif(run_ended_us, -9223372036854775807)
            NOT BETWEEN -21600000000 AND 3600000000;

-- 1 is success, as of runs.
CREATE INDEX results_by_status ON results (summary_status, create_us) WHERE summary_status <> 1;

-- What the planner learns of an index that leaves rows out it does not use for the table.
CREATE STATISTICS records_pipelines ON (left(object_pipeline_ref, 128)) FROM records;
CREATE STATISTICS records_reasons
    ON (left(coalesce(object_reason, object_phase), 128)) FROM records;
CREATE STATISTICS records_statuses ON (left(object_condition_status, 128)) FROM records;

-- Parts of payloads that operators have indexed; see docs/adr/0021.

-- Every row up to done_row was looked at; ready, once that is until_row, the last that was there
-- before the field.
CREATE TABLE indexed_paths (
    row_id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path      TEXT COLLATE "C" NOT NULL,
    kind      TEXT COLLATE "C" NOT NULL,
    added_us  BIGINT NOT NULL,
    ready     BIGINT NOT NULL,
    done_row  BIGINT NOT NULL,
    until_row BIGINT NOT NULL
);

CREATE UNIQUE INDEX indexed_paths_by_path ON indexed_paths (path);

-- Fields that were removed and of which something is left.
CREATE TABLE dropped_indexes (
    field BIGINT PRIMARY KEY
);

-- It goes up with every change of the table above.
CREATE TABLE index_generation (
    generation BIGINT NOT NULL
);

INSERT INTO index_generation (generation) VALUES (0);

CREATE TABLE index_entries (
    field      BIGINT NOT NULL,
    value      TEXT COLLATE "C" NOT NULL,
    at_us      BIGINT NOT NULL,
    record_row BIGINT NOT NULL REFERENCES records (row_id) ON DELETE CASCADE,
    PRIMARY KEY (field, value, at_us, record_row)
);

CREATE INDEX index_entries_by_record ON index_entries (record_row, field, value);

-- Bodies and chunks of logs that lie in an object store; see docs/adr/0023 and 0050.

-- Every object that was begun and is not known to be gone. One is held by the body or chunk that
-- refers to it, from the commit of that row on; before and after it is loose, and goes in the end.
-- holder is the row of the record, or with log_line, its first line, the source of the chunk.
CREATE TABLE objects (
    object     BYTEA PRIMARY KEY,
    size       BIGINT NOT NULL,
    holder     BIGINT,
    log_line   BIGINT,
    unreferenced_us   BIGINT,
    condemned_us  BIGINT
);

CREATE INDEX objects_unreferenced ON objects (unreferenced_us) WHERE holder IS NULL;

CREATE FUNCTION bodies_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE objects SET holder = NEW.record_row, unreferenced_us = NULL
        WHERE object = substr(NEW.bytes, 1, 16) AND holder IS NULL AND condemned_us IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the object of a body is gone' USING ERRCODE = 'HS001';
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION bodies_let_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE objects SET holder = NULL WHERE object = substr(OLD.bytes, 1, 16);
    RETURN NULL;
END
$$;

CREATE TRIGGER bodies_hold AFTER INSERT ON bodies
FOR EACH ROW WHEN (NEW.codec >= 16) EXECUTE FUNCTION bodies_hold();

CREATE TRIGGER bodies_hold_other AFTER UPDATE OF codec, bytes ON bodies
FOR EACH ROW WHEN (NEW.codec >= 16
    AND (OLD.codec < 16 OR substr(NEW.bytes, 1, 16) <> substr(OLD.bytes, 1, 16)))
EXECUTE FUNCTION bodies_hold();

CREATE TRIGGER bodies_let_go_other AFTER UPDATE OF codec, bytes ON bodies
FOR EACH ROW WHEN (OLD.codec >= 16
    AND (NEW.codec < 16 OR substr(NEW.bytes, 1, 16) <> substr(OLD.bytes, 1, 16)))
EXECUTE FUNCTION bodies_let_go();

CREATE TRIGGER bodies_let_go AFTER DELETE ON bodies
FOR EACH ROW WHEN (OLD.codec >= 16) EXECUTE FUNCTION bodies_let_go();

-- The feed of changes: which records each transaction inserted or replaced, until a sweep removes
-- it. A follower reads what was written by transactions before the oldest that is still going on,
-- so that none is passed over, whenever it commits; see docs/adr/0040.
CREATE TABLE changes (
    xid         BIGINT NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    at          TIMESTAMPTZ NOT NULL DEFAULT now(),
    record_rows BIGINT[] NOT NULL,
    updates_us  BIGINT[] NOT NULL
);

CREATE INDEX changes_by_xid ON changes (xid);

-- The last transaction of which changes were removed.
CREATE TABLE changes_floor (
    xid BIGINT NOT NULL
);

INSERT INTO changes_floor (xid) VALUES (0);

CREATE FUNCTION records_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes (record_rows, updates_us)
        SELECT array_agg(row_id), array_agg(update_us) FROM changed HAVING count(*) > 0;
    RETURN NULL;
END
$$;

-- The background pass that writes signatures again changes no record. A join of the two would be planned
-- for one row and take the square of their number.
CREATE FUNCTION records_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes (record_rows, updates_us)
        SELECT array_agg(row_id), array_agg(update_us)
        FROM (SELECT row_id, update_us, etag FROM changed
              EXCEPT SELECT row_id, update_us, etag FROM was) AS told
        HAVING count(*) > 0;
    RETURN NULL;
END
$$;

CREATE TRIGGER records_inserted AFTER INSERT ON records REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION records_inserted();

CREATE TRIGGER records_replaced AFTER UPDATE ON records
REFERENCING OLD TABLE AS was NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION records_replaced();

-- Results that retention leaves alone, until a time if there is one; see docs/adr/0060.
CREATE TABLE holds (
    result_row BIGINT PRIMARY KEY REFERENCES results (row_id) ON DELETE CASCADE,
    reason     TEXT NOT NULL,
    caller     TEXT NOT NULL,
    create_us  BIGINT NOT NULL,
    expire_us  BIGINT
);

-- How far the events of each receiver were delivered, and which server sends them until when. See
-- docs/adr/0048.
CREATE TABLE event_cursors (
    name              TEXT PRIMARY KEY,
    after_transaction BIGINT NOT NULL,
    after_row         BIGINT NOT NULL,
    holder            TEXT NOT NULL,
    held_until_ms     BIGINT NOT NULL
);

-- Logs of runs; see docs/adr/0045. `log` is the id of the record of the run, which need not be there yet.
-- kind 0: lines of a container; 1: a text that was uploaded whole; 2: an upload that is not finished, of
-- which pod is any text. Times are those of lines. A source with a sha256 is sealed; of its lines, so many
-- from the first on lie in chunks that stay as they are. Every change gives another version. Where
-- `signed` is below `sign_asked`, a background pass looks whether the end of a sealed source tells why
-- its run failed; see docs/adr/0052.
CREATE TABLE log_sources (
    row_id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    result_row   BIGINT NOT NULL REFERENCES results (row_id) ON DELETE CASCADE,
    lines        BIGINT NOT NULL,
    bytes        BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL,
    first_us     BIGINT,
    last_us      BIGINT,
    holes        BIGINT NOT NULL,
    packed       BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    update_us    BIGINT NOT NULL,
    kind         SMALLINT NOT NULL,
    restart      INTEGER NOT NULL,
    sign_asked   INTEGER NOT NULL DEFAULT 1,
    signed       INTEGER NOT NULL DEFAULT 0,
    log          BYTEA NOT NULL,
    pod          TEXT COLLATE "C" NOT NULL,
    container    TEXT COLLATE "C" NOT NULL,
    sha256       BYTEA
);

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
    source     BIGINT NOT NULL REFERENCES log_sources (row_id) ON DELETE CASCADE,
    first_line BIGINT NOT NULL,
    lines      BIGINT NOT NULL,
    first_byte BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    min_us     BIGINT NOT NULL,
    max_us     BIGINT NOT NULL,
    codec      SMALLINT NOT NULL,
    body       BYTEA NOT NULL,
    PRIMARY KEY (source, first_line)
);

-- They are compressed already.
ALTER TABLE log_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE FUNCTION log_chunks_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE objects SET holder = NEW.source, log_line = NEW.first_line, unreferenced_us = NULL
        WHERE object = substr(NEW.body, 1, 16) AND holder IS NULL AND condemned_us IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the object of a log is gone' USING ERRCODE = 'HS001';
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION log_chunks_let_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE objects SET holder = NULL, log_line = NULL WHERE object = substr(OLD.body, 1, 16);
    RETURN NULL;
END
$$;

CREATE TRIGGER log_chunks_hold AFTER INSERT ON log_chunks
FOR EACH ROW WHEN (NEW.codec >= 16) EXECUTE FUNCTION log_chunks_hold();

CREATE TRIGGER log_chunks_let_go AFTER DELETE ON log_chunks
FOR EACH ROW WHEN (OLD.codec >= 16) EXECUTE FUNCTION log_chunks_let_go();

CREATE FUNCTION results_leave_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE archive_state SET left_files = left_files + 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER results_leave_file AFTER UPDATE OF archive_file ON results
FOR EACH ROW WHEN (OLD.archive_file IS NOT NULL AND NEW.archive_file IS DISTINCT FROM OLD.archive_file)
EXECUTE FUNCTION results_leave_file();

-- The logs of a run stay where they are when its record moves to a file.
CREATE FUNCTION records_unlog() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM log_sources WHERE result_row = OLD.result_row AND log = OLD.id
        AND NOT EXISTS (SELECT 1 FROM results
            WHERE row_id = OLD.result_row AND archive_file IS NOT NULL);
    RETURN NULL;
END
$$;

CREATE TRIGGER records_unlogged AFTER DELETE ON records
FOR EACH ROW EXECUTE FUNCTION records_unlog();

-- A failure that is stored after its logs were sealed has a signature without them.
CREATE FUNCTION records_sign_logs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE log_sources SET sign_asked = sign_asked + 1
        WHERE result_row = NEW.result_row AND log = NEW.id AND sha256 IS NOT NULL;
    RETURN NULL;
END
$$;

CREATE TRIGGER records_failed AFTER INSERT ON records
FOR EACH ROW WHEN (NEW.run_outcome > 1) EXECUTE FUNCTION records_sign_logs();

CREATE TRIGGER records_failed_other AFTER UPDATE OF body_sha256 ON records
FOR EACH ROW WHEN (NEW.run_outcome > 1) EXECUTE FUNCTION records_sign_logs();

-- Pipelines of Kubeflow and their versions; see docs/pipelines.md. Ids are UUIDs, times are in whole seconds, tags are
-- JSON objects of texts. `bytes` is what the texts of a row take. `versions` is how many versions a pipeline has, and
-- `revision` changes with each version that comes or goes.
CREATE TABLE pipelines (
    row_id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    create_s     BIGINT NOT NULL,
    bytes        BIGINT NOT NULL,
    versions     BIGINT NOT NULL DEFAULT 0,
    revision     BIGINT NOT NULL DEFAULT 0,
    namespace    TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL UNIQUE,
    name         TEXT COLLATE "C" NOT NULL,
    display_name TEXT COLLATE "C" NOT NULL,
    description  TEXT COLLATE "C" NOT NULL,
    tags         TEXT COLLATE "C" NOT NULL,
    original_id  TEXT COLLATE "C"
);

CREATE UNIQUE INDEX pipelines_by_name ON pipelines (namespace, name);
CREATE INDEX pipelines_by_display_name ON pipelines (namespace, display_name, id);
CREATE INDEX pipelines_by_time ON pipelines (namespace, create_s, id);

-- What lists count, and look for parts of names in, without the case of letters: a scan of short rows takes half as long as one
-- of an index.
CREATE TABLE pipeline_names (
    row_id       BIGINT PRIMARY KEY REFERENCES pipelines (row_id) ON DELETE CASCADE,
    create_s     BIGINT NOT NULL,
    namespace    TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    display_name TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL
);

CREATE INDEX pipeline_names_by_namespace ON pipeline_names (namespace);

CREATE INDEX pipeline_names_parts ON pipeline_names USING gin (name_trigrams(name)) WITH (fastupdate = off);
ALTER INDEX pipeline_names_parts ALTER COLUMN 1 SET STATISTICS 0;
CREATE INDEX pipeline_names_display_parts ON pipeline_names USING gin (name_trigrams(display_name)) WITH (fastupdate = off);
ALTER INDEX pipeline_names_display_parts ALTER COLUMN 1 SET STATISTICS 0;

CREATE FUNCTION pipelines_named() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pipeline_names (row_id, create_s, namespace, name, display_name, id)
        VALUES (NEW.row_id, NEW.create_s, NEW.namespace, lower(NEW.name), lower(NEW.display_name), NEW.id);
    RETURN NULL;
END
$$;

CREATE FUNCTION pipelines_renamed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pipeline_names SET display_name = lower(NEW.display_name) WHERE row_id = NEW.row_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER pipelines_named AFTER INSERT ON pipelines
FOR EACH ROW EXECUTE FUNCTION pipelines_named();

-- No other column of theirs changes.
CREATE TRIGGER pipelines_renamed AFTER UPDATE OF display_name ON pipelines
FOR EACH ROW EXECUTE FUNCTION pipelines_renamed();

-- The same tags, for filters.
CREATE TABLE pipeline_tags (
    pipeline_row BIGINT NOT NULL REFERENCES pipelines (row_id) ON DELETE CASCADE,
    key          TEXT COLLATE "C" NOT NULL,
    value        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (key, value, pipeline_row)
);

CREATE INDEX pipeline_tags_of ON pipeline_tags (pipeline_row);

-- `spec` is JSON, as answers show it.
CREATE TABLE pipeline_versions (
    row_id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline_row    BIGINT NOT NULL REFERENCES pipelines (row_id) ON DELETE CASCADE,
    create_s        BIGINT NOT NULL,
    bytes           BIGINT NOT NULL,
    id              TEXT COLLATE "C" NOT NULL UNIQUE,
    name            TEXT COLLATE "C" NOT NULL,
    display_name    TEXT COLLATE "C" NOT NULL,
    description     TEXT COLLATE "C" NOT NULL,
    tags            TEXT COLLATE "C" NOT NULL,
    package_url     TEXT COLLATE "C" NOT NULL,
    code_source_url TEXT COLLATE "C" NOT NULL,
    original_id     TEXT COLLATE "C",
    spec            TEXT COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX pipeline_versions_by_name ON pipeline_versions (pipeline_row, name);
CREATE INDEX pipeline_versions_by_time ON pipeline_versions (pipeline_row, create_s, id);

CREATE FUNCTION pipeline_versions_come() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pipelines SET versions = versions + 1, revision = revision + 1
        WHERE row_id = NEW.pipeline_row;
    RETURN NULL;
END
$$;

CREATE FUNCTION pipeline_versions_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pipelines SET versions = versions - 1, revision = revision + 1
        WHERE row_id = OLD.pipeline_row;
    RETURN NULL;
END
$$;

CREATE TRIGGER pipeline_versions_come AFTER INSERT ON pipeline_versions
FOR EACH ROW EXECUTE FUNCTION pipeline_versions_come();

CREATE TRIGGER pipeline_versions_go AFTER DELETE ON pipeline_versions
FOR EACH ROW EXECUTE FUNCTION pipeline_versions_go();
