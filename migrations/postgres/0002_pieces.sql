-- Bodies that others refer to: those are kept as zstd frames with the piece's content as their
-- dictionary. Content is stored once and never changes. bytes is one zstd frame by itself.
CREATE TABLE pieces (
    row_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sha256 BYTEA NOT NULL,
    size   BIGINT NOT NULL,
    bytes  BYTEA NOT NULL
);

CREATE UNIQUE INDEX pieces_by_sha256 ON pieces (sha256);

ALTER TABLE pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Which piece new bodies refer to. A key is the digest of what they have in common.
CREATE TABLE piece_keys (
    key   BYTEA PRIMARY KEY,
    piece BIGINT NOT NULL REFERENCES pieces (row_id) ON DELETE CASCADE
);

CREATE INDEX piece_keys_by_piece ON piece_keys (piece);

-- codec 2: one zstd frame with the content of `piece` as its dictionary.
ALTER TABLE bodies ADD COLUMN piece BIGINT REFERENCES pieces (row_id) ON DELETE RESTRICT;

CREATE INDEX bodies_by_piece ON bodies (piece);

-- A hash takes a third of the tree, and uids are only ever compared for equality.
DROP INDEX records_by_object_uid;
CREATE INDEX records_by_object_uid ON records USING hash (object_uid);

-- Few rows have one name; to sort them costs less than to keep them sorted.
DROP INDEX records_by_object_name;
CREATE INDEX records_by_object_name ON records (left(object_name, 128));
