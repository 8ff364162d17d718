-- Names are those of the schema that the store makes, which is the first of the search path while this runs. Text that is
-- compared or sorted is so by its bytes, as in every store. Times are microseconds since 1970 (UTC).

-- Each engine that has the database open. The row is what its commits are fenced with: an engine whose row is not "live" any
-- more, or whose epoch is another one, cannot commit. An engine that lost its connection takes the next epoch.
CREATE TABLE processes (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    epoch  bigint      NOT NULL DEFAULT 1,
    name   text        NOT NULL, -- host and process
    state  text        NOT NULL, -- live, dead
    reads  smallint    NOT NULL, -- the newest format of entries that it reads
    prints text[] COLLATE "C" NOT NULL DEFAULT '{}', -- the fingerprints of its definitions
    token  bigint      NOT NULL, -- names the advisory locks that its session, or the transaction that commits, holds
    pid    int,                  -- of the server's process for the connection that commits; NULL through a pooler
    joined timestamptz NOT NULL
) WITH (fillfactor = 50);

-- When each engine was last seen. It is a table of its own, so that a beat never waits for a commit's lock on the fence.
CREATE TABLE pulses (
    process bigint PRIMARY KEY,
    beat    timestamptz NOT NULL,
    pace    interval    NOT NULL, -- the next beat comes within
    busy    boolean     NOT NULL,
    skew    bigint      NOT NULL DEFAULT 0 -- its clock ahead of the server's, in microseconds
) WITH (fillfactor = 10);

-- The journal is the truth: the tables of cases, items, jobs, steps and events follow from it, and are written in the same
-- transaction. A root case and all its descendants are one stream, and an entry is appended at the next revision of it: two
-- that both want to be the next meet in the primary key.
CREATE TABLE journal (
    root    uuid,
    rev     bigint,
    seq     bigint   NOT NULL,
    process bigint   NOT NULL,
    format  smallint NOT NULL,
    at      bigint   NOT NULL,
    command text     NOT NULL,
    actor   text     NOT NULL,
    key     text,
    answer  text,
    events  text     NOT NULL,
    PRIMARY KEY (root, rev)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02);
CREATE UNIQUE INDEX journal_seq ON journal (seq);
-- What the engine asks for itself has no actor, so only commands of others pay for it.
CREATE INDEX journal_actor ON journal (actor, seq) WHERE actor <> '';

-- By SHA-256, for a key may be long.
CREATE TABLE idempotency_keys (
    key  bytea PRIMARY KEY,
    root uuid   NOT NULL,
    seq  bigint NOT NULL
);

CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);

CREATE TABLE definitions (
    fingerprint text COLLATE "C" PRIMARY KEY,
    name        text COLLATE "C" NOT NULL,
    version     text COLLATE "C" NOT NULL,
    net         text    NOT NULL,
    document    text,
    code        boolean NOT NULL,
    created     bigint  NOT NULL
);

CREATE TABLE cases (
    root        uuid,
    id          uuid,
    rev         bigint  NOT NULL, -- of the last entry that wrote the row
    parent      uuid,
    parent_task text    NOT NULL,
    generation  integer NOT NULL,
    number      integer NOT NULL,
    workflow    text COLLATE "C" NOT NULL,
    version     text    NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    created     bigint  NOT NULL,
    input       text,
    caller      uuid,
    options     text,
    priority    integer NOT NULL,
    predecessor uuid,
    business_key text COLLATE "C",
    key_unique   boolean NOT NULL,
    labels       text, -- a JSON object of texts
    state       text COLLATE "C" NOT NULL,
    begun       boolean NOT NULL,
    marking     text    NOT NULL,
    tasks       text    NOT NULL,
    output      text,
    failure     text,
    ended       bigint,
    keep_until  bigint,
    last_seq    bigint  NOT NULL,
    suspended   text, -- since when, by whom and why, of a case of which nothing begins
    PRIMARY KEY (root, id)
) WITH (fillfactor = 80);
CREATE INDEX cases_id ON cases (id);
CREATE INDEX cases_live ON cases (id) WHERE state = 'started'; -- it changes once: every other update stays HOT
CREATE INDEX cases_failed ON cases (id) WHERE state = 'failed';
CREATE INDEX cases_suspended ON cases (id) WHERE suspended IS NOT NULL;
CREATE INDEX cases_key ON cases (business_key, id) WHERE business_key IS NOT NULL;
CREATE INDEX cases_labels ON cases USING gin ((labels::jsonb) jsonb_path_ops) WHERE labels IS NOT NULL;
CREATE INDEX cases_workflow ON cases (workflow, id);
-- The code as it stands in the text of the failure: to read that as JSON fails where it holds a \u0000.
CREATE INDEX cases_code ON cases (substring(failure from '^{"retryable":[truefals]+,"code":"(([^"\\]|\\.)*)"'), id) WHERE failure IS NOT NULL;
CREATE INDEX cases_keep ON cases (keep_until, id) WHERE keep_until IS NOT NULL;

CREATE TABLE work_items (
    root        uuid,
    id          uuid,
    case_id     uuid    NOT NULL,
    task        text COLLATE "C" NOT NULL,
    generation  integer NOT NULL,
    number      integer NOT NULL,
    attempt     integer NOT NULL,
    predecessor uuid,
    created     bigint  NOT NULL,
    due         bigint,
    input       text,
    queue       text COLLATE "C" NOT NULL,
    priority    integer NOT NULL,
    state       text COLLATE "C" NOT NULL,
    successor   uuid,
    output      text,
    failure     text,
    actor       text    NOT NULL,
    started     bigint,
    ended       bigint,
    PRIMARY KEY (root, id)
) WITH (fillfactor = 85);
CREATE INDEX work_items_id ON work_items (id);
CREATE INDEX work_items_live ON work_items (queue, (-priority), id) WHERE state IN ('initialized', 'started');
CREATE INDEX work_items_failed ON work_items (id) WHERE state = 'failed';
CREATE INDEX work_items_retried ON work_items (id) WHERE attempt > 1;
CREATE INDEX work_items_code ON work_items (substring(failure from '^{"retryable":[truefals]+,"code":"(([^"\\]|\\.)*)"'), id) WHERE failure IS NOT NULL;
CREATE INDEX work_items_task_live ON work_items (task, id) WHERE state IN ('initialized', 'started');
CREATE INDEX work_items_task_failed ON work_items (task, id) WHERE state = 'failed';

CREATE TABLE jobs (
    root       uuid,
    id         uuid,
    case_id    uuid    NOT NULL,
    task       text COLLATE "C" NOT NULL,
    generation integer NOT NULL,
    item       uuid,
    kind       text COLLATE "C" NOT NULL,
    name       text    NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    priority   integer NOT NULL,
    input      text,
    detached   boolean NOT NULL,
    created    bigint  NOT NULL,
    state      text COLLATE "C" NOT NULL,
    due        bigint  NOT NULL,
    attempt    integer NOT NULL,
    crashes    integer NOT NULL,
    fence      bigint  NOT NULL,
    owner      text    NOT NULL,
    lease      bigint,
    failure    text,
    ended      bigint,
    holder     bigint  NOT NULL, -- the engine that does it when it is due; 0: any that can
    PRIMARY KEY (root, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX jobs_id ON jobs (id);
CREATE INDEX jobs_due ON jobs (due, id) WHERE state IN ('pending', 'running', 'waiting');
CREATE INDEX jobs_held ON jobs (holder) WHERE holder > 0 AND state IN ('pending', 'running', 'waiting');
CREATE INDEX jobs_free ON jobs ((-priority), due, id) WHERE holder = 0 AND state IN ('pending', 'running', 'waiting');
CREATE INDEX jobs_failed ON jobs (id) WHERE state = 'failed';

-- The owner is the work item of a run, or another job itself.
CREATE TABLE steps (
    root    uuid,
    id      uuid,
    owner   uuid    NOT NULL,
    job     uuid    NOT NULL,
    item    uuid,
    case_id uuid    NOT NULL,
    name    text    NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    target  text COLLATE "C" NOT NULL,
    topic   boolean NOT NULL,
    input   text,
    run     integer NOT NULL,
    child   uuid,
    copied  boolean NOT NULL,
    created bigint  NOT NULL,
    state   text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    due     bigint,
    result  text,
    failure text,
    ended   bigint,
    PRIMARY KEY (root, id)
);
CREATE INDEX steps_id ON steps (id);
CREATE INDEX steps_owner ON steps (owner, id);
CREATE INDEX steps_topic ON steps (target, root) WHERE state = 'waiting' AND topic;

CREATE TABLE messages (
    root    uuid,
    id      uuid,
    case_id uuid    NOT NULL,
    name    text COLLATE "C" NOT NULL,
    topic   boolean NOT NULL,
    value   text,
    actor   text    NOT NULL,
    sent    bigint  NOT NULL,
    step    uuid,
    taken   bigint,
    PRIMARY KEY (root, id)
);
CREATE INDEX messages_id ON messages (id);

-- How many cases, items and jobs there are of each kind: counting a million rows takes seconds. A commit only adds deltas,
-- which are folded into the counts now and then, so that commits do not wait for each other's rows.
CREATE TABLE counts (
    what     text COLLATE "C", -- case, item or job
    workflow text COLLATE "C",
    task     text COLLATE "C", -- empty for cases
    state    text COLLATE "C",
    n        bigint NOT NULL,
    PRIMARY KEY (what, workflow, task, state)
);
CREATE TABLE count_deltas (
    what     text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    task     text COLLATE "C" NOT NULL,
    state    text COLLATE "C" NOT NULL,
    n        bigint NOT NULL
);

-- How many items ended in each hour since 1970, by about how long they took (store.TookClass), in the same way.
CREATE TABLE ended (
    hour     bigint,
    workflow text COLLATE "C",
    task     text COLLATE "C",
    state    text COLLATE "C",
    took     bigint,
    n        bigint NOT NULL,
    PRIMARY KEY (hour, workflow, task, state, took)
);
CREATE INDEX ended_none ON ended (hour) WHERE n = 0;
CREATE TABLE ended_deltas (
    hour     bigint NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    task     text COLLATE "C" NOT NULL,
    state    text COLLATE "C" NOT NULL,
    took     bigint NOT NULL,
    n        bigint NOT NULL
);

-- Commands that other programs leave for an engine.
CREATE TABLE requests (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    command text   NOT NULL,
    replied bigint,
    result  text,
    code    text,
    error   text
);
CREATE INDEX requests_open ON requests (id) WHERE replied IS NULL;

-- What operators have decided and engines remember, beside cases.
CREATE TABLE settings (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

-- What engines share of limits; until says when a row says no more than none.
CREATE TABLE limits (
    name    text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    state   text NOT NULL,
    until   bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (name, key)
);
CREATE INDEX limits_until ON limits (until);

-- The table of all collections of package domain.
CREATE TABLE records (
    collection text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    value      text NOT NULL,
    PRIMARY KEY (collection, key)
);

-- Every task of every case, as the definition lists them.
CREATE VIEW tasks AS
SELECT c.id AS case_id, c.workflow,
       t.value ->> 'name' AS task,
       COALESCE(s.value ->> 'state', 'disabled') AS state,
       COALESCE((s.value ->> 'gen')::integer, 0) AS generation,
       COALESCE((s.value ->> 'created')::integer, 0) AS created,
       s.value -> 'output' AS output
FROM cases c
JOIN definitions d ON d.fingerprint = c.fingerprint
CROSS JOIN LATERAL json_array_elements(d.net::json -> 'tasks') AS t(value)
LEFT JOIN LATERAL json_each(c.tasks::json) AS s(key, value) ON s.key = t.value ->> 'name';

-- Every event of every case: WHERE root = ... finds those of one root case.
CREATE VIEW history AS
SELECT j.seq, e.number - 1 AS number, j.root, j.at, j.command, j.actor,
       COALESCE((e.value ->> 'case')::uuid, j.root) AS case_id,
       e.value ->> 'e' AS event,
       e.value ->> 'task' AS task,
       e.value ->> 'item' AS item,
       e.value ->> 'job' AS job,
       e.value ->> 'to' AS state,
       e.value AS detail
FROM journal j CROSS JOIN LATERAL json_array_elements(j.events::json) WITH ORDINALITY AS e(value, number);
