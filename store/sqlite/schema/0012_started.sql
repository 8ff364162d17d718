-- Few of many that are live: who holds what is asked of all that wait for people.
CREATE INDEX IF NOT EXISTS work_items_started ON work_items (id) WHERE state = 'started';
