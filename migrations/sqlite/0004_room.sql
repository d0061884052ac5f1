-- What PostgreSQL drops here, SQLite keeps: it has no statistics to choose another index by.
SELECT 1;
