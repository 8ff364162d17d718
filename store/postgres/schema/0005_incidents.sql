-- Open incidents are few beside jobs that are live.
CREATE INDEX IF NOT EXISTS jobs_incidents ON jobs (due, id) WHERE kind = 'incident' AND state IN ('pending', 'running', 'waiting');
