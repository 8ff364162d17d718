-- The cases that ended are counted beside the work items, with no task, from their creation on. The class of a duration is store.TookClass.
INSERT INTO ended (hour, workflow, task, state, took, n)
SELECT hour, workflow, '', state, CASE WHEN us < 8 THEN us ELSE 8 * (62 - p) + ((us >> (61 - p)) & 7) END AS class, count(*)
FROM (SELECT hour, workflow, state, us, position('1' IN us::bit(64)::text) AS p
    FROM (SELECT floor(ended / 3600000000.0)::bigint AS hour, workflow, state,
              CASE state WHEN 'completed' THEN greatest(ended - created, 0) ELSE 0 END AS us
        FROM cases WHERE state IN ('completed', 'failed')) c) d
GROUP BY hour, workflow, state, class;
