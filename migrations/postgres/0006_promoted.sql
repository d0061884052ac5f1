-- Parts of payloads that operators have indexed; see docs/adr/0021.

-- Every row up to done_row was looked at; ready, once that is until_row, the last that was there
-- before the field.
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

-- Fields that were removed and of which something is left.
CREATE TABLE promoted_gone (
    field BIGINT PRIMARY KEY
);

-- It goes up with every change of the table above.
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

-- Rows of which the values above may lack some.
CREATE TABLE promoted_unknown (
    field      BIGINT NOT NULL,
    record_row BIGINT NOT NULL REFERENCES records (row_id) ON DELETE CASCADE,
    PRIMARY KEY (field, record_row)
);

CREATE INDEX promoted_unknown_by_record ON promoted_unknown (record_row);

-- A program that writes the values changes this with every write, and leaves it empty where it
-- finds that it does not know the present generation.
ALTER TABLE records ADD COLUMN promoted_turn SMALLINT;

CREATE FUNCTION records_unpromoted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO promoted_unknown (field, record_row)
        SELECT row_id, NEW.row_id FROM promoted ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER records_unpromoted AFTER INSERT ON records
FOR EACH ROW WHEN (NEW.promoted_turn IS NULL)
EXECUTE FUNCTION records_unpromoted();

CREATE TRIGGER records_repromoted AFTER UPDATE OF body_sha256 ON records
FOR EACH ROW WHEN (NEW.promoted_turn IS NULL
    OR NEW.promoted_turn IS NOT DISTINCT FROM OLD.promoted_turn)
EXECUTE FUNCTION records_unpromoted();

-- They are enabled for as long as something is promoted.
ALTER TABLE records DISABLE TRIGGER records_unpromoted;
ALTER TABLE records DISABLE TRIGGER records_repromoted;
