-- Parts of payloads that operators have indexed; see docs/adr/0021.

-- Every row up to done_row was looked at; ready, once that is until_row, the last that was there
-- before the field.
CREATE TABLE promoted (
    row_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    path      TEXT NOT NULL,
    kind      TEXT NOT NULL,
    added_us  INTEGER NOT NULL,
    ready     INTEGER NOT NULL,
    done_row  INTEGER NOT NULL,
    until_row INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX promoted_by_path ON promoted (path);

-- Fields that were removed and of which something is left.
CREATE TABLE promoted_gone (
    field INTEGER PRIMARY KEY
) STRICT;

-- It goes up with every change of the table above.
CREATE TABLE promoted_state (
    generation INTEGER NOT NULL
) STRICT;

INSERT INTO promoted_state (generation) VALUES (0);

CREATE TABLE promoted_values (
    field      INTEGER NOT NULL,
    value      TEXT NOT NULL,
    at_us      INTEGER NOT NULL,
    record_row INTEGER NOT NULL REFERENCES records (row_id) ON DELETE CASCADE,
    PRIMARY KEY (field, value, at_us, record_row)
) STRICT, WITHOUT ROWID;

CREATE INDEX promoted_values_by_record ON promoted_values (record_row, field, value);

-- Rows of which the values above may lack some.
CREATE TABLE promoted_unknown (
    field      INTEGER NOT NULL,
    record_row INTEGER NOT NULL REFERENCES records (row_id) ON DELETE CASCADE,
    PRIMARY KEY (field, record_row)
) STRICT, WITHOUT ROWID;

CREATE INDEX promoted_unknown_by_record ON promoted_unknown (record_row);

-- A program that writes the values changes this with every write, and leaves it empty where it
-- finds that it does not know the present generation.
ALTER TABLE records ADD COLUMN promoted_turn INTEGER;

CREATE TRIGGER records_unpromoted AFTER INSERT ON records
WHEN NEW.promoted_turn IS NULL AND EXISTS (SELECT 1 FROM promoted) BEGIN
    INSERT OR IGNORE INTO promoted_unknown (field, record_row)
        SELECT row_id, NEW.row_id FROM promoted;
END;

CREATE TRIGGER records_repromoted AFTER UPDATE OF body_sha256 ON records
WHEN (NEW.promoted_turn IS NULL OR NEW.promoted_turn IS OLD.promoted_turn)
    AND EXISTS (SELECT 1 FROM promoted) BEGIN
    INSERT OR IGNORE INTO promoted_unknown (field, record_row)
        SELECT row_id, NEW.row_id FROM promoted;
END;
