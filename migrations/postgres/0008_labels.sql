-- The index of labels also knows whose a record is, and in which week and on which day it was
-- stored, so that lists of one parent or of one time read no rows of others; see docs/adr/0024.

DROP INDEX records_by_labels;
DROP INDEX records_by_labels_unwell;
CREATE INDEX records_by_labels ON records
    USING gin (labels jsonb_path_ops, (ARRAY[parent]),
               (ARRAY[create_us / 604800000000, create_us / 86400000000]))
    WITH (gin_pending_list_limit = 256);
CREATE INDEX records_by_labels_unwell ON records
    USING gin (labels jsonb_path_ops, (ARRAY[parent]),
               (ARRAY[create_us / 604800000000, create_us / 86400000000]))
    WITH (gin_pending_list_limit = 256)
    WHERE left(object_condition_status, 128) <> 'True'
        OR (left(object_reason, 128) <> 'Succeeded' AND left(object_reason, 128) <> 'Completed');

ANALYZE records;
