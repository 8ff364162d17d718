-- What was asked of a run beyond its input, the run that it restarts, and how long it is kept once it has ended.
ALTER TABLE cases ADD COLUMN options TEXT;
ALTER TABLE cases ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cases ADD COLUMN predecessor TEXT;
ALTER TABLE cases ADD COLUMN keep_until INTEGER;

-- What may be removed next. Few cases are in it, if any: those that have ended and are not kept for ever.
CREATE INDEX cases_keep ON cases (keep_until, id) WHERE keep_until IS NOT NULL;

-- Since when, by whom and why nothing of a case begins.
ALTER TABLE cases ADD COLUMN suspended TEXT;
CREATE INDEX cases_suspended ON cases (id) WHERE suspended IS NOT NULL;
