-- What is known of files: by calls that change them, and by sessions that have read them. And what was decided.

-- What a call was to make of files: path, content before and after, as JSON. A call that a crash cut off is settled by it.
ALTER TABLE call ADD COLUMN files TEXT;

-- The content, as its BLAKE3 hash, that a session last saw of a file.
CREATE TABLE seen_file (
    session_id TEXT NOT NULL,
    path       BLOB NOT NULL,
    hash       BLOB NOT NULL,
    PRIMARY KEY (session_id, path)
) STRICT, WITHOUT ROWID;

-- Where the next command of a session runs, once that is not where the session began.
CREATE TABLE shell (
    session_id TEXT PRIMARY KEY,
    directory  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Events that decide whether a call may run, in the order of time: the ledger of all sessions.
CREATE TABLE decision (
    session_id TEXT NOT NULL REFERENCES session ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX decision_by_time ON decision (at);

INSERT INTO decision SELECT session_id, seq, ts FROM event WHERE type = 'approval.resolved';
