-- How long the items that ended had waited, from when they were due to their start, is counted beside them with the state 'started'. The class of a
-- duration is store.TookClass, as in 0004.
INSERT INTO ended (hour, workflow, task, state, took, n)
SELECT hour, workflow, task, 'started', CASE WHEN us < 8 THEN us ELSE 8 * (62 - p) + ((us >> (61 - p)) & 7) END AS class, count(*)
FROM (SELECT hour, workflow, task, us, position('1' IN us::bit(64)::text) AS p
    FROM (SELECT floor(i.ended / 3600000000.0)::bigint AS hour, c.workflow, i.task, greatest(i.started - greatest(i.created, i.due), 0) AS us
        FROM work_items i JOIN cases c ON c.root = i.root AND c.id = i.case_id
        WHERE i.state IN ('completed', 'failed') AND i.started IS NOT NULL) d) e
GROUP BY hour, workflow, task, class;
