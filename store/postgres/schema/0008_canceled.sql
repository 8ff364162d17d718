-- Few of many: to list them without an index reads all others, unless most are canceled.
CREATE INDEX IF NOT EXISTS cases_canceled ON cases (id) WHERE state = 'canceled';
CREATE INDEX IF NOT EXISTS work_items_canceled ON work_items (id) WHERE state = 'canceled';
