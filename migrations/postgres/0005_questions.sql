-- Questions that people ask of records among many, each answered by an index of its own; see
-- docs/adr/0020.

CREATE INDEX records_by_labels ON records USING gin (labels jsonb_path_ops)
    WITH (gin_pending_list_limit = 256);
CREATE INDEX records_by_pipeline ON records (left(object_pipeline_ref, 128), create_us, row_id)
    WHERE left(object_pipeline_ref, 128) IS NOT NULL;
-- What went well is found among the newest.
CREATE INDEX records_by_reason ON records (left(object_reason, 128), create_us, row_id)
    WHERE left(object_reason, 128) <> 'Succeeded' AND left(object_reason, 128) <> 'Completed';
CREATE INDEX records_by_status ON records (left(object_condition_status, 128), create_us, row_id)
    WHERE left(object_condition_status, 128) <> 'True';
CREATE INDEX records_by_took ON records ((object_completion_us - object_start_us));
-- What did not go well is a small part of all, which other questions narrow down further.
CREATE INDEX records_by_labels_unwell ON records USING gin (labels jsonb_path_ops)
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

-- How long after it began or ended an object was stored, in seconds: the extremes turn a range
-- of those times into a range of create_us.
CREATE INDEX records_by_start_lag ON records (((create_us - object_start_us) / 1000000));
CREATE INDEX records_by_completion_lag
    ON records (((create_us - object_completion_us) / 1000000));

CREATE INDEX results_by_status ON results (summary_status, create_us, row_id);

-- What is only ever added at the end leaves no room between.
ALTER INDEX records_pkey SET (fillfactor = 100);
ALTER INDEX bodies_pkey SET (fillfactor = 100);
ALTER INDEX records_by_create SET (fillfactor = 100);

-- What the planner learns of an index that leaves rows out it does not use for the table.
CREATE STATISTICS records_pipelines ON (left(object_pipeline_ref, 128)) FROM records;
CREATE STATISTICS records_reasons ON (left(object_reason, 128)) FROM records;
CREATE STATISTICS records_statuses ON (left(object_condition_status, 128)) FROM records;

-- Of expressions the planner knows nothing until it has looked at them.
ANALYZE records;
ANALYZE results;
