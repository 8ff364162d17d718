-- The items of a queue whatever their state, in the order in which they are listed; which queues have jobs, and the jobs of a queue in one state in
-- due order. What is in the queue without a name is in neither: in most databases that is most of all, and it is written most often.
CREATE INDEX IF NOT EXISTS work_items_named ON work_items (queue, -priority, id) WHERE queue <> '';
CREATE INDEX IF NOT EXISTS jobs_named ON jobs (queue, state, due) WHERE queue <> '' AND state IN ('pending', 'running', 'waiting');
