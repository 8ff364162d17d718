-- The journal is what a commit writes, and the truth. Entries of one root case are chained: cases.last_seq is the newest,
-- prev leads to the one before. There is no other index, so that an append touches the last page only.
CREATE TABLE journal (
    seq     INTEGER PRIMARY KEY,
    prev    INTEGER NOT NULL,
    root    TEXT    NOT NULL,
    at      INTEGER NOT NULL, -- microseconds since 1970, here and below
    command TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    key     TEXT,
    answer  TEXT,
    events  TEXT    NOT NULL
);

-- Keys are random, so they have a table of their own: only a command with a key pays for them.
CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) WITHOUT ROWID;

-- What follows is the projection of the journal up to meta.projected_seq. Keys rise with time, so new rows are appended.
-- Indexes on live rows are partial: a row that was born and ended between two writes never touches them.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE definitions (
    fingerprint TEXT PRIMARY KEY,
    name        TEXT    NOT NULL,
    version     TEXT    NOT NULL,
    net         TEXT    NOT NULL,
    document    TEXT,
    code        INTEGER NOT NULL,
    created     INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE cases (
    id          TEXT PRIMARY KEY,
    root        TEXT    NOT NULL,
    parent      TEXT,
    parent_task TEXT    NOT NULL,
    generation  INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    workflow    TEXT    NOT NULL,
    version     TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    created     INTEGER NOT NULL,
    input       TEXT,
    state       TEXT    NOT NULL,
    begun       INTEGER NOT NULL,
    marking     TEXT    NOT NULL,
    tasks       TEXT    NOT NULL,
    output      TEXT,
    failure     TEXT,
    ended       INTEGER,
    last_seq    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX cases_children ON cases (root) WHERE parent IS NOT NULL;
CREATE INDEX cases_live ON cases (id) WHERE state = 'started';
CREATE INDEX cases_failed ON cases (id) WHERE state = 'failed';

CREATE TABLE work_items (
    id          TEXT PRIMARY KEY,
    case_id     TEXT    NOT NULL,
    task        TEXT    NOT NULL,
    generation  INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    predecessor TEXT,
    created     INTEGER NOT NULL,
    due         INTEGER,
    input       TEXT,
    queue       TEXT    NOT NULL,
    priority    INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    successor   TEXT,
    output      TEXT,
    failure     TEXT,
    actor       TEXT    NOT NULL,
    started     INTEGER,
    ended       INTEGER
) WITHOUT ROWID;
CREATE INDEX work_items_case ON work_items (case_id, task, generation);
CREATE INDEX work_items_live ON work_items (id) WHERE state IN ('initialized', 'started');
CREATE INDEX work_items_queue ON work_items (queue, -priority, id) WHERE state IN ('initialized', 'started');
CREATE INDEX work_items_failed ON work_items (id) WHERE state = 'failed';

CREATE TABLE jobs (
    id         TEXT PRIMARY KEY,
    case_id    TEXT    NOT NULL,
    root       TEXT    NOT NULL,
    task       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    item       TEXT,
    kind       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    queue      TEXT    NOT NULL,
    priority   INTEGER NOT NULL,
    input      TEXT,
    detached   INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    due        INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    crashes    INTEGER NOT NULL,
    fence      INTEGER NOT NULL,
    owner      TEXT    NOT NULL,
    lease      INTEGER,
    failure    TEXT,
    ended      INTEGER
) WITHOUT ROWID;
CREATE INDEX jobs_case ON jobs (case_id);
CREATE INDEX jobs_live ON jobs (case_id) WHERE state IN ('pending', 'running');
CREATE INDEX jobs_due ON jobs (due) WHERE state IN ('pending', 'running');
CREATE INDEX jobs_failed ON jobs (id) WHERE state = 'failed';

-- How many cases, items and jobs there are of each kind, kept as they change: counting a million rows takes seconds.
CREATE TABLE counts (
    what     TEXT NOT NULL, -- case, item or job
    workflow TEXT NOT NULL,
    task     TEXT NOT NULL, -- empty for cases
    state    TEXT NOT NULL,
    n        INTEGER NOT NULL,
    PRIMARY KEY (what, workflow, task, state)
) WITHOUT ROWID;

-- How many items ended in each hour, by about how long they took (store.TookClass), kept as they end: a look at a million items takes seconds.
CREATE TABLE ended (
    hour     INTEGER NOT NULL, -- since 1970
    workflow TEXT    NOT NULL,
    task     TEXT    NOT NULL,
    state    TEXT    NOT NULL,
    took     INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    PRIMARY KEY (hour, workflow, task, state, took)
) WITHOUT ROWID;

-- Commands that other processes leave for the one that owns the file.
CREATE TABLE requests (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    command TEXT    NOT NULL,
    replied INTEGER,
    result  TEXT,
    code    TEXT,
    error   TEXT
);

INSERT INTO meta (name, value) VALUES ('projected_seq', 0);

-- Every task of every case, as the definition lists them.
CREATE VIEW tasks AS
SELECT c.id AS case_id, c.workflow,
       t.value ->> '$.name' AS task,
       COALESCE(s.value ->> '$.state', 'disabled') AS state,
       COALESCE(s.value ->> '$.gen', 0) AS generation,
       COALESCE(s.value ->> '$.created', 0) AS created,
       s.value -> '$.output' AS output
FROM cases c
JOIN definitions d ON d.fingerprint = c.fingerprint
JOIN json_each(d.net, '$.tasks') t
LEFT JOIN json_each(c.tasks) s ON s.key = t.value ->> '$.name';

-- Every event of every case, for queries that go through the whole journal.
CREATE VIEW changes AS
SELECT j.seq, e.key AS number, j.root, j.at, j.command, j.actor,
       COALESCE(e.value ->> '$.case', j.root) AS case_id,
       e.value ->> '$.e' AS event,
       e.value ->> '$.task' AS task,
       e.value ->> '$.item' AS item,
       e.value ->> '$.job' AS job,
       e.value ->> '$.to' AS state,
       e.value AS detail
FROM journal j JOIN json_each(j.events) e;

-- The same events, found by their case: WHERE case_id = ... reads the entries of one root case, by their chain, and no
-- others. Without it each case reads those of its root, which is slow where root cases have many descendants.
CREATE VIEW history AS
SELECT j.seq, e.key AS number, j.root, j.at, j.command, j.actor,
       c.id AS case_id,
       e.value ->> '$.e' AS event,
       e.value ->> '$.task' AS task,
       e.value ->> '$.item' AS item,
       e.value ->> '$.job' AS job,
       e.value ->> '$.to' AS state,
       e.value AS detail
FROM cases c
CROSS JOIN cases r ON r.id = c.root
CROSS JOIN json_each((WITH RECURSIVE chain(seq) AS (
        SELECT r.last_seq
        UNION ALL SELECT p.prev FROM chain CROSS JOIN journal p ON p.seq = chain.seq WHERE p.prev > 0 AND p.prev < p.seq)
    SELECT json_group_array(seq) FROM chain)) s
CROSS JOIN journal j ON j.seq = s.value
CROSS JOIN json_each(j.events) e
WHERE COALESCE(e.value ->> '$.case', j.root) = c.id;
