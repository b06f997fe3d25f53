-- The journal, what is stored beside it, and an index over it.
--
-- Times are nanoseconds since 1970: datetime(ts / 1000000000, 'unixepoch') makes them readable.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What happened. `payload` holds the very bytes that were sent; `hash` is BLAKE3 over `prev_hash` and `payload`.
-- The hashes stand before the payload, so that reading them does not walk through a long payload's pages.
CREATE TABLE event (
    session_id TEXT    NOT NULL,
    seq        INTEGER NOT NULL CHECK (seq > 0),
    type       TEXT    NOT NULL,
    ts         INTEGER NOT NULL,
    prev_hash  BLOB    NOT NULL,
    hash       BLOB    NOT NULL,
    payload    TEXT    NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER event_never_changes BEFORE UPDATE ON event
BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only');
END;

-- Stored beside the journal: what is nobody's event.

-- A tool call from its start to its result, so that a crash in between is seen for what it is.
CREATE TABLE call (
    session_id  TEXT    NOT NULL,
    call_id     TEXT    NOT NULL,
    turn_id     TEXT    NOT NULL,
    ordinal     INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    class       TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    started_at  INTEGER,
    finished_at INTEGER,
    result      TEXT,
    PRIMARY KEY (session_id, call_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX call_by_turn ON call (turn_id);

-- What a client was told about a message that it may send again.
CREATE TABLE receipt (
    session_id        TEXT    NOT NULL,
    client_message_id TEXT    NOT NULL,
    payload_hash      TEXT    NOT NULL,
    turn_id           TEXT    NOT NULL,
    state             TEXT    NOT NULL,
    seq               INTEGER NOT NULL,
    PRIMARY KEY (session_id, client_message_id)
) STRICT, WITHOUT ROWID;

-- A rule that a person granted for the rest of a session.
CREATE TABLE session_grant (
    session_id TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    rule       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, tool, rule)
) STRICT, WITHOUT ROWID;

-- The index: made from the journal and from nothing else, so it can be thrown away and made again. `seq` names the
-- event that holds the whole thing as it was last told; the other columns are what is searched by or changed since.

CREATE TABLE session (
    id         TEXT PRIMARY KEY,
    seq        INTEGER NOT NULL,
    cwd        TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    archived   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX session_by_update ON session (updated_at, id);

CREATE TABLE turn (
    id                 TEXT PRIMARY KEY,
    session_id         TEXT    NOT NULL REFERENCES session ON DELETE CASCADE,
    seq                INTEGER NOT NULL,
    state              TEXT    NOT NULL,
    ended_at           INTEGER,
    error              TEXT,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_usd           REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX turn_by_session ON turn (session_id);
CREATE INDEX turn_open ON turn (id) WHERE state IN ('queued', 'running', 'recoverable');

CREATE TABLE message (
    session_id TEXT    NOT NULL REFERENCES session ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    turn_id    TEXT,
    role       TEXT    NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE approval (
    id         TEXT PRIMARY KEY,
    session_id TEXT    NOT NULL REFERENCES session ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    short_id   TEXT    NOT NULL,
    state      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_by_session ON approval (session_id);
CREATE INDEX approval_by_state ON approval (state);

CREATE TABLE question (
    id         TEXT PRIMARY KEY,
    session_id TEXT    NOT NULL REFERENCES session ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    short_id   TEXT    NOT NULL,
    state      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX question_by_session ON question (session_id);
CREATE INDEX question_by_state ON question (state);

CREATE TABLE todo (
    session_id TEXT PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    seq        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
