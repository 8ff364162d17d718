-- The running and the failed cases of a workflow are few beside those that completed, and open incidents beside jobs that are live.
CREATE INDEX IF NOT EXISTS cases_workflow_live ON cases (workflow, id) WHERE state = 'started';
CREATE INDEX IF NOT EXISTS cases_workflow_failed ON cases (workflow, id) WHERE state = 'failed';
CREATE INDEX IF NOT EXISTS jobs_incidents ON jobs (due, id) WHERE kind = 'incident' AND state IN ('pending', 'running', 'waiting');
