-- The restarts and forks of a case are found by it. Most cases are none, so they pay nothing for the index.
CREATE INDEX IF NOT EXISTS cases_predecessor ON cases (predecessor, id) WHERE predecessor IS NOT NULL;
