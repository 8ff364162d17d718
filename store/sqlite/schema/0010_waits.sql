-- How long the items that ended had waited, from when they were due to their start, is counted beside them with the state 'started'. The class of a
-- duration (store.TookClass) is computed as in 0006.
INSERT INTO ended (hour, workflow, task, state, took, n)
SELECT hour, workflow, task, 'started', CASE WHEN us < 8 THEN us ELSE 8 * (high - 2) + ((us >> (high - 3)) & 7) END AS class, count(*)
FROM (SELECT hour, workflow, task, us, 4 * length(hex) - CASE WHEN hex < '2' THEN 4 WHEN hex < '4' THEN 3 WHEN hex < '8' THEN 2 ELSE 1 END AS high
    FROM (SELECT hour, workflow, task, us, printf('%x', us) AS hex
        FROM (SELECT (i.ended - ((i.ended % 3600000000) + 3600000000) % 3600000000) / 3600000000 AS hour, c.workflow AS workflow, i.task AS task,
                  max(i.started - max(i.created, ifnull(i.due, i.created)), 0) AS us
            FROM work_items i JOIN cases c ON c.id = i.case_id WHERE i.state IN ('completed', 'failed') AND i.started IS NOT NULL)))
GROUP BY hour, workflow, task, class;
