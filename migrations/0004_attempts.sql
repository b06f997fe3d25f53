-- How often in a row a session was being taken up when the daemon ended. It goes when the session is in memory; one that
-- ends the daemon each time is left alone, until another version may do better.
CREATE TABLE attempt (
    session_id TEXT PRIMARY KEY,
    version    TEXT NOT NULL,
    count      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
