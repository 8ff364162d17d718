-- Durable steps of jobs, and the events that were sent to cases. An owner is the work item of a run, or another job itself.
CREATE TABLE steps (
    id      TEXT PRIMARY KEY,
    owner   TEXT    NOT NULL,
    job     TEXT    NOT NULL,
    item    TEXT,
    case_id TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    target  TEXT    NOT NULL,
    topic   INTEGER NOT NULL,
    input   TEXT,
    run     INTEGER NOT NULL,
    child   TEXT,
    copied  INTEGER NOT NULL,
    created INTEGER NOT NULL,
    state   TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    due     INTEGER,
    result  TEXT,
    failure TEXT,
    ended   INTEGER
) WITHOUT ROWID;
CREATE INDEX steps_owner ON steps (owner);
CREATE INDEX steps_waiting ON steps (case_id) WHERE state = 'waiting';
CREATE INDEX steps_topic ON steps (target) WHERE state = 'waiting' AND topic = 1;

CREATE TABLE messages (
    id      TEXT PRIMARY KEY,
    case_id TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    topic   INTEGER NOT NULL,
    value   TEXT,
    actor   TEXT    NOT NULL,
    sent    INTEGER NOT NULL,
    step    TEXT,
    taken   INTEGER
) WITHOUT ROWID;
CREATE INDEX messages_case ON messages (case_id);
CREATE INDEX messages_unread ON messages (case_id) WHERE taken IS NULL;

ALTER TABLE cases ADD COLUMN caller TEXT;

-- A job that waits for its steps is live, too.
DROP INDEX jobs_live;
DROP INDEX jobs_due;
CREATE INDEX jobs_live ON jobs (case_id) WHERE state IN ('pending', 'running', 'waiting');
CREATE INDEX jobs_due ON jobs (due) WHERE state IN ('pending', 'running', 'waiting');
