-- The pipeline that a record is of. No release has rows without it, so they are filled here.
ALTER TABLE records ADD COLUMN run_pipeline TEXT COLLATE "C";

UPDATE records SET run_pipeline = coalesce(labels ->> 'tekton.dev/pipeline', object_pipeline_ref)
WHERE labels ? 'tekton.dev/pipeline' OR object_pipeline_ref IS NOT NULL;

UPDATE records SET run_pipeline = NULL WHERE octet_length(run_pipeline) > 253;

-- What is asked of many runs is in the index, so that rows are not read.
CREATE INDEX records_by_creation ON records (object_creation_us, row_id)
    INCLUDE (run_pipeline, run_outcome, run_duration_us, run_began_us);
