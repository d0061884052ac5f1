-- Questions that people ask of records among many, each answered by an index of its own; see
-- docs/adr/0020.

CREATE INDEX records_by_pipeline ON records (object_pipeline_ref, create_us, parent)
    WHERE object_pipeline_ref IS NOT NULL;
-- What went well is found among the newest.
CREATE INDEX records_by_reason ON records (object_reason, create_us, parent)
    WHERE object_reason <> 'Succeeded' AND object_reason <> 'Completed';
CREATE INDEX records_by_status ON records (object_condition_status, create_us, parent)
    WHERE object_condition_status <> 'True';
CREATE INDEX records_by_took ON records
    ((object_completion_us - object_start_us), create_us, parent);

-- How long after it began or ended an object was stored, in seconds: the extremes turn a range
-- of those times into a range of create_us.
CREATE INDEX records_by_start_lag ON records (((create_us - object_start_us) / 1000000));
CREATE INDEX records_by_completion_lag
    ON records (((create_us - object_completion_us) / 1000000));

CREATE INDEX results_by_status ON results (summary_status, create_us);

-- Every label once, and the records that have it, in the order in which lists come.
CREATE TABLE labels (
    row_id INTEGER PRIMARY KEY,
    value  TEXT NOT NULL,
    key    TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX labels_by_value ON labels (value, key);

CREATE TABLE record_labels (
    label      INTEGER NOT NULL,
    at_us      INTEGER NOT NULL,
    record_row INTEGER NOT NULL,
    PRIMARY KEY (label, at_us, record_row)
) STRICT, WITHOUT ROWID;

INSERT INTO labels (value, key)
    SELECT DISTINCT e.value, e.key FROM records, json_each(records.labels) AS e;
INSERT INTO record_labels
    SELECT l.row_id, create_us, records.row_id
    FROM records, json_each(records.labels) AS e
    JOIN labels AS l ON l.value = e.value AND l.key = e.key
    ORDER BY 1, 2, 3;

-- Triggers, so that the previous program keeps them too.
CREATE TRIGGER records_labelled AFTER INSERT ON records WHEN NEW.labels IS NOT NULL BEGIN
    INSERT OR IGNORE INTO labels (value, key) SELECT value, key FROM json_each(NEW.labels);
    INSERT OR IGNORE INTO record_labels
        SELECT l.row_id, NEW.create_us, NEW.row_id FROM json_each(NEW.labels) AS e
        CROSS JOIN labels AS l ON l.value = e.value AND l.key = e.key;
END;

CREATE TRIGGER records_relabelled AFTER UPDATE OF labels ON records
WHEN NEW.labels IS NOT OLD.labels BEGIN
    INSERT OR IGNORE INTO labels (value, key) SELECT value, key FROM json_each(NEW.labels);
    DELETE FROM record_labels WHERE at_us = OLD.create_us AND record_row = OLD.row_id
        AND label IN (SELECT l.row_id FROM json_each(OLD.labels) AS e
                      CROSS JOIN labels AS l ON l.value = e.value AND l.key = e.key);
    INSERT OR IGNORE INTO record_labels
        SELECT l.row_id, NEW.create_us, NEW.row_id FROM json_each(NEW.labels) AS e
        CROSS JOIN labels AS l ON l.value = e.value AND l.key = e.key;
END;

CREATE TRIGGER records_unlabelled AFTER DELETE ON records WHEN OLD.labels IS NOT NULL BEGIN
    DELETE FROM record_labels WHERE at_us = OLD.create_us AND record_row = OLD.row_id
        AND label IN (SELECT l.row_id FROM json_each(OLD.labels) AS e
                      CROSS JOIN labels AS l ON l.value = e.value AND l.key = e.key);
    DELETE FROM labels WHERE row_id IN (
        SELECT l.row_id FROM json_each(OLD.labels) AS e
        CROSS JOIN labels AS l ON l.value = e.value AND l.key = e.key
        WHERE NOT EXISTS (SELECT 1 FROM record_labels AS r WHERE r.label = l.row_id));
END;
