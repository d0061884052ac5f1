-- The sum of migrations/postgres, for reading; a test proves it. Never applied to a database of use.

CREATE TABLE hindsight_schema (
    version BIGINT PRIMARY KEY,
    title   TEXT NOT NULL,
    sha256  BYTEA NOT NULL
);

CREATE TABLE secrets (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);

CREATE TABLE results (
    row_id              BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent              TEXT COLLATE "C" NOT NULL,
    id                  TEXT COLLATE "C" NOT NULL,
    uid                 TEXT COLLATE "C" NOT NULL,
    etag                TEXT COLLATE "C" NOT NULL,
    create_us           BIGINT NOT NULL,
    update_us           BIGINT NOT NULL,
    annotations         JSONB NOT NULL,
    summary_record      TEXT COLLATE "C",
    summary_type        TEXT COLLATE "C",
    summary_start_us    BIGINT,
    summary_end_us      BIGINT,
    summary_status      BIGINT,
    summary_annotations JSONB
);

CREATE UNIQUE INDEX results_by_name ON results (id, parent);
CREATE INDEX results_by_create ON results (create_us, row_id);
CREATE INDEX results_by_parent_create ON results (parent, create_us, row_id);
CREATE INDEX results_by_update ON results (update_us, row_id);
CREATE INDEX results_by_parent_update ON results (parent, update_us, row_id);
CREATE INDEX results_by_start ON results (summary_start_us, row_id);
CREATE INDEX results_by_parent_start ON results (parent, summary_start_us, row_id);
CREATE INDEX results_by_end ON results (summary_end_us, row_id);
CREATE INDEX results_by_parent_end ON results (parent, summary_end_us, row_id);

CREATE TABLE records (
    row_id                  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY WITH (fillfactor = 100),
    result_row              BIGINT NOT NULL REFERENCES results (row_id) ON DELETE CASCADE,
    parent                  TEXT COLLATE "C" NOT NULL,
    result_id               TEXT COLLATE "C" NOT NULL,
    id                      TEXT COLLATE "C" NOT NULL,
    uid                     TEXT COLLATE "C" NOT NULL,
    etag                    TEXT COLLATE "C" NOT NULL,
    create_us               BIGINT NOT NULL,
    update_us               BIGINT NOT NULL,
    data_type               TEXT COLLATE "C",
    body_size               BIGINT,
    body_sha256             BYTEA,
    object_kind             TEXT COLLATE "C",
    object_name             TEXT COLLATE "C",
    object_namespace        TEXT COLLATE "C",
    object_uid              TEXT COLLATE "C",
    object_pipeline_ref     TEXT COLLATE "C",
    object_task_ref         TEXT COLLATE "C",
    object_reason           TEXT COLLATE "C",
    object_condition_status TEXT COLLATE "C",
    object_phase            TEXT COLLATE "C",
    object_creation_us      BIGINT,
    object_start_us         BIGINT,
    object_completion_us    BIGINT,
    labels                  JSONB,
    run_outcome             BIGINT,
    run_began_us            BIGINT,
    run_ended_us            BIGINT,
    run_duration_us         BIGINT,
    run_pipeline            TEXT COLLATE "C"
);

CREATE UNIQUE INDEX records_by_name ON records (id, result_row);
CREATE INDEX records_by_result ON records (result_row, create_us, row_id);
CREATE INDEX records_by_create ON records (create_us, row_id) WITH (fillfactor = 100);
CREATE INDEX records_by_parent_create ON records (parent, create_us, row_id);
CREATE INDEX records_by_update ON records (update_us, row_id);
CREATE INDEX records_by_parent_update ON records (parent, update_us, row_id);
CREATE INDEX records_by_type ON records (left(data_type, 128), create_us, row_id);
CREATE INDEX records_by_object_uid ON records USING hash (object_uid);
CREATE INDEX records_by_object_name ON records (left(object_name, 128));
CREATE INDEX records_by_creation ON records (object_creation_us, row_id)
    INCLUDE (run_pipeline, run_outcome, run_duration_us, run_began_us);

CREATE TABLE pieces (
    row_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent TEXT COLLATE "C" NOT NULL,
    sha256 BYTEA NOT NULL,
    size   BIGINT NOT NULL,
    owned  BIGINT NOT NULL DEFAULT 0,
    bytes  BYTEA NOT NULL
);

CREATE UNIQUE INDEX pieces_by_content ON pieces (parent, sha256);
CREATE INDEX pieces_unowned ON pieces (row_id) WHERE owned = 0;

ALTER TABLE pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE piece_keys (
    key   BYTEA PRIMARY KEY,
    piece BIGINT NOT NULL REFERENCES pieces (row_id) ON DELETE CASCADE
);

CREATE INDEX piece_keys_by_piece ON piece_keys (piece);

CREATE TABLE bodies (
    record_row BIGINT PRIMARY KEY WITH (fillfactor = 100)
               REFERENCES records (row_id) ON DELETE CASCADE,
    codec      BIGINT NOT NULL,
    bytes      BYTEA NOT NULL,
    piece      BIGINT REFERENCES pieces (row_id) ON DELETE RESTRICT
);

ALTER TABLE bodies ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE INDEX bodies_by_piece ON bodies (piece);

CREATE FUNCTION records_disown() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pieces SET owned = 0
        WHERE parent = OLD.parent AND sha256 = OLD.body_sha256 AND owned = 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER records_disowned AFTER DELETE ON records
FOR EACH ROW WHEN (OLD.body_sha256 IS NOT NULL) EXECUTE FUNCTION records_disown();

CREATE TRIGGER records_disowned_other AFTER UPDATE OF body_sha256 ON records
FOR EACH ROW WHEN (OLD.body_sha256 IS DISTINCT FROM NEW.body_sha256)
EXECUTE FUNCTION records_disown();

CREATE INDEX records_by_labels ON records
    USING gin (labels jsonb_path_ops, (ARRAY[parent]),
               (ARRAY[create_us / 604800000000, create_us / 86400000000]))
    WITH (gin_pending_list_limit = 256);
CREATE INDEX records_by_pipeline ON records (left(object_pipeline_ref, 128), create_us, row_id)
    WHERE left(object_pipeline_ref, 128) IS NOT NULL;
CREATE INDEX records_by_reason ON records (left(object_reason, 128), create_us, row_id)
    WHERE left(object_reason, 128) <> 'Succeeded' AND left(object_reason, 128) <> 'Completed';
CREATE INDEX records_by_status ON records (left(object_condition_status, 128), create_us, row_id)
    WHERE left(object_condition_status, 128) <> 'True';
CREATE INDEX records_by_took ON records ((object_completion_us - object_start_us));
CREATE INDEX records_by_labels_unwell ON records
    USING gin (labels jsonb_path_ops, (ARRAY[parent]),
               (ARRAY[create_us / 604800000000, create_us / 86400000000]))
    WITH (gin_pending_list_limit = 256)
    WHERE left(object_condition_status, 128) <> 'True'
        OR (left(object_reason, 128) <> 'Succeeded' AND left(object_reason, 128) <> 'Completed');
CREATE INDEX records_by_pipeline_unwell
    ON records (left(object_pipeline_ref, 128), create_us, row_id)
    WHERE left(object_condition_status, 128) <> 'True'
        OR (left(object_reason, 128) <> 'Succeeded' AND left(object_reason, 128) <> 'Completed');
CREATE INDEX records_by_took_unwell ON records ((object_completion_us - object_start_us))
    WHERE left(object_condition_status, 128) <> 'True'
        OR (left(object_reason, 128) <> 'Succeeded' AND left(object_reason, 128) <> 'Completed');

CREATE INDEX records_by_start_lag ON records (((create_us - object_start_us) / 1000000));
CREATE INDEX records_by_completion_lag
    ON records (((create_us - object_completion_us) / 1000000));

CREATE INDEX results_by_status ON results (summary_status, create_us, row_id);

CREATE STATISTICS records_pipelines ON (left(object_pipeline_ref, 128)) FROM records;
CREATE STATISTICS records_reasons ON (left(object_reason, 128)) FROM records;
CREATE STATISTICS records_statuses ON (left(object_condition_status, 128)) FROM records;

CREATE TABLE promoted (
    row_id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path      TEXT COLLATE "C" NOT NULL,
    kind      TEXT COLLATE "C" NOT NULL,
    added_us  BIGINT NOT NULL,
    ready     BIGINT NOT NULL,
    done_row  BIGINT NOT NULL,
    until_row BIGINT NOT NULL
);

CREATE UNIQUE INDEX promoted_by_path ON promoted (path);

CREATE TABLE promoted_gone (
    field BIGINT PRIMARY KEY
);

CREATE TABLE promoted_state (
    generation BIGINT NOT NULL
);

INSERT INTO promoted_state (generation) VALUES (0);

CREATE TABLE promoted_values (
    field      BIGINT NOT NULL,
    value      TEXT COLLATE "C" NOT NULL,
    at_us      BIGINT NOT NULL,
    record_row BIGINT NOT NULL REFERENCES records (row_id) ON DELETE CASCADE,
    PRIMARY KEY (field, value, at_us, record_row)
);

CREATE INDEX promoted_values_by_record ON promoted_values (record_row, field, value);

CREATE TABLE objects (
    object     BYTEA PRIMARY KEY,
    size       BIGINT NOT NULL,
    record_row BIGINT,
    loose_us   BIGINT,
    doomed_us  BIGINT
);

CREATE INDEX objects_loose ON objects (loose_us) WHERE record_row IS NULL;

CREATE FUNCTION bodies_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE objects SET record_row = NEW.record_row, loose_us = NULL
        WHERE object = substr(NEW.bytes, 1, 16) AND record_row IS NULL AND doomed_us IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the object of a body is gone' USING ERRCODE = 'HS001';
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION bodies_let_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE objects SET record_row = NULL WHERE object = substr(OLD.bytes, 1, 16);
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
