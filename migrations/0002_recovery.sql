-- What a turn that was cut off needs to go on.

-- How often a call was started: one that only reads may start again after a crash, but not for ever.
ALTER TABLE call ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;

-- What was growing a moment ago: the words of an answer (key 'message') or the output of a call (its id). Kept so that
-- a crash does not take it along; no promise stands on it, and it goes when the turn ends.
CREATE TABLE draft (
    session_id TEXT NOT NULL,
    key        TEXT NOT NULL,
    text       TEXT NOT NULL,
    PRIMARY KEY (session_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX message_by_turn ON message (turn_id);
