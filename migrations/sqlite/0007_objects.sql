-- Bodies that lie in an object store; see docs/adr/0023.

-- Every object that was begun and is not known to be gone. One is held by the body that refers to
-- it, from the commit of that body on; before and after it is loose, and goes in the end.
CREATE TABLE objects (
    object     BLOB PRIMARY KEY,
    size       INTEGER NOT NULL,
    record_row INTEGER,
    loose_us   INTEGER,
    doomed_us  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX objects_loose ON objects (loose_us) WHERE record_row IS NULL;

CREATE TRIGGER bodies_hold AFTER INSERT ON bodies WHEN NEW.codec >= 16 BEGIN
    UPDATE objects SET record_row = NEW.record_row, loose_us = NULL
        WHERE object = substr(NEW.bytes, 1, 16) AND record_row IS NULL AND doomed_us IS NULL;
    SELECT RAISE(ABORT, 'the object of a body is gone') WHERE changes() = 0;
END;

CREATE TRIGGER bodies_hold_other AFTER UPDATE OF codec, bytes ON bodies WHEN NEW.codec >= 16
    AND (OLD.codec < 16 OR substr(NEW.bytes, 1, 16) <> substr(OLD.bytes, 1, 16)) BEGIN
    UPDATE objects SET record_row = NEW.record_row, loose_us = NULL
        WHERE object = substr(NEW.bytes, 1, 16) AND record_row IS NULL AND doomed_us IS NULL;
    SELECT RAISE(ABORT, 'the object of a body is gone') WHERE changes() = 0;
END;

CREATE TRIGGER bodies_let_go_other AFTER UPDATE OF codec, bytes ON bodies WHEN OLD.codec >= 16
    AND (NEW.codec < 16 OR substr(NEW.bytes, 1, 16) <> substr(OLD.bytes, 1, 16)) BEGIN
    UPDATE objects SET record_row = NULL WHERE object = substr(OLD.bytes, 1, 16);
END;

CREATE TRIGGER bodies_let_go AFTER DELETE ON bodies WHEN OLD.codec >= 16 BEGIN
    UPDATE objects SET record_row = NULL WHERE object = substr(OLD.bytes, 1, 16);
END;
