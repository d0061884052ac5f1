-- AUTOINCREMENT, because another process may remember the row of a piece that is gone.
CREATE TABLE pieces (
    row_id INTEGER PRIMARY KEY AUTOINCREMENT,
    sha256 BLOB NOT NULL,
    size   INTEGER NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX pieces_by_sha256 ON pieces (sha256);

CREATE TABLE piece_keys (
    key   BLOB PRIMARY KEY,
    piece INTEGER NOT NULL REFERENCES pieces (row_id) ON DELETE CASCADE
) STRICT;

CREATE INDEX piece_keys_by_piece ON piece_keys (piece);

ALTER TABLE bodies ADD COLUMN piece INTEGER REFERENCES pieces (row_id) ON DELETE RESTRICT;

CREATE INDEX bodies_by_piece ON bodies (piece);
