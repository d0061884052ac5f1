-- Bodies that lie in an object store; see docs/adr/0023.

-- Every object that was begun and is not known to be gone. One is held by the body that refers to
-- it, from the commit of that body on; before and after it is loose, and goes in the end.
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
