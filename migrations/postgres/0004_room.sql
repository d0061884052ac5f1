-- A parent's records of one type are found among the parent's, or where the type is rare among
-- the type's, so the index of both took room for nothing.
DROP INDEX records_by_parent_type;
