-- The pipeline that a record is of. No release has rows without it, so they are filled here.
ALTER TABLE records ADD COLUMN run_pipeline TEXT;

UPDATE records
SET run_pipeline = coalesce(
    (SELECT value FROM json_each(labels) WHERE key = 'tekton.dev/pipeline'),
    object_pipeline_ref
);

UPDATE records SET run_pipeline = NULL WHERE length(CAST(run_pipeline AS BLOB)) > 253;

-- What is asked of many runs is in the index, so that payloads, labels and names are not passed.
CREATE INDEX records_by_creation ON records
    (object_creation_us, run_pipeline, run_outcome, run_duration_us, run_began_us, data_type, parent);
