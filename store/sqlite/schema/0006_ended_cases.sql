-- The cases that ended are counted beside the work items, with no task, from their creation on. The class of a duration (store.TookClass) has the
-- three bits below the highest one, whose place the digits of the hexadecimal form tell.
INSERT INTO ended (hour, workflow, task, state, took, n)
SELECT hour, workflow, '', state, CASE WHEN us < 8 THEN us ELSE 8 * (high - 2) + ((us >> (high - 3)) & 7) END AS class, count(*)
FROM (SELECT hour, workflow, state, us, 4 * length(hex) - CASE WHEN hex < '2' THEN 4 WHEN hex < '4' THEN 3 WHEN hex < '8' THEN 2 ELSE 1 END AS high
    FROM (SELECT hour, workflow, state, us, printf('%x', us) AS hex
        FROM (SELECT (ended - ((ended % 3600000000) + 3600000000) % 3600000000) / 3600000000 AS hour, workflow, state,
                  CASE state WHEN 'completed' THEN max(ended - created, 0) ELSE 0 END AS us
            FROM cases WHERE state IN ('completed', 'failed'))))
GROUP BY hour, workflow, state, class;
