-- What was asked of a run beyond its input, the run that it restarts, and how long it is kept once it has ended.
ALTER TABLE cases ADD COLUMN options TEXT;
ALTER TABLE cases ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cases ADD COLUMN predecessor TEXT;
ALTER TABLE cases ADD COLUMN keep_until INTEGER;

-- What may be removed next. Few cases are in it, if any: those that have ended and are not kept for ever.
CREATE INDEX cases_keep ON cases (keep_until, id) WHERE keep_until IS NOT NULL;

-- What operators have decided and engines remember, beside cases.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Since when, by whom and why nothing of a case begins.
ALTER TABLE cases ADD COLUMN suspended TEXT;
CREATE INDEX cases_suspended ON cases (id) WHERE suspended IS NOT NULL;

-- Where queries look: the cases of a workflow, what failed alike, the items of a task that are live or failed, and what somebody asked
-- for. What the engine asks for itself has no actor, so only commands of others pay for the last one.
CREATE INDEX cases_workflow ON cases (workflow, id);
CREATE INDEX cases_code ON cases (failure ->> '$.code', id) WHERE failure IS NOT NULL;
CREATE INDEX work_items_code ON work_items (failure ->> '$.code', id) WHERE failure IS NOT NULL;
CREATE INDEX work_items_task_live ON work_items (task, id) WHERE state IN ('initialized', 'started');
CREATE INDEX work_items_task_failed ON work_items (task, id) WHERE state = 'failed';
CREATE INDEX work_items_retried ON work_items (id) WHERE attempt > 1;
CREATE INDEX journal_actor ON journal (actor, seq) WHERE actor <> '';

-- By what a case is found: its business key, and its labels. The triggers keep the table of labels as an index of the column.
ALTER TABLE cases ADD COLUMN business_key TEXT;
ALTER TABLE cases ADD COLUMN key_unique INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cases ADD COLUMN labels TEXT;
CREATE INDEX cases_key ON cases (business_key, id) WHERE business_key IS NOT NULL;
CREATE TABLE case_labels (
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    case_id TEXT NOT NULL,
    PRIMARY KEY (name, value, case_id)
) WITHOUT ROWID;
CREATE TRIGGER cases_labeled AFTER INSERT ON cases WHEN NEW.labels IS NOT NULL BEGIN
    INSERT INTO case_labels SELECT key, value, NEW.id FROM json_each(NEW.labels);
END;
CREATE TRIGGER cases_unlabeled AFTER DELETE ON cases WHEN OLD.labels IS NOT NULL BEGIN
    DELETE FROM case_labels WHERE (name, value, case_id) IN (SELECT key, value, OLD.id FROM json_each(OLD.labels));
END;

-- What engines share of limits; until says when a row says no more than none.
CREATE TABLE limits (
    name    TEXT NOT NULL,
    key     TEXT NOT NULL,
    state   TEXT NOT NULL,
    until   INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (name, key)
) WITHOUT ROWID;
CREATE INDEX limits_until ON limits (until);
