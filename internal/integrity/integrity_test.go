package integrity_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// whole makes a closed database: two cases that wait for a person after a job, a function that has done a step, has taken
// an event and waits for another one, and one that waits for a child case.
func whole(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "whole.db")
	b := builder.New[int]("article")
	draft := builder.Task(b, "draft", builder.Work[int, int]{Input: builder.CaseInput(b),
		Run: func(_ context.Context, n int) (int, error) { return n, nil }})
	review := builder.Task(b, "review", builder.Work[int, int]{Input: builder.Output(draft), Queue: "people"})
	b.Path(b.Start(), draft, review, b.End())
	article, err := b.Build()
	require.NoError(t, err)
	wait := builder.MustAction("wait", func(ctx context.Context, n int) (int, error) {
		if _, err := step.Do(ctx, "first", func(context.Context) (int, error) { return n, nil }); err != nil {
			return 0, err
		}
		if _, err := step.Await[int](ctx, "second"); err != nil {
			return 0, err
		}
		return step.Await[int](ctx, "third")
	})
	call := builder.MustAction("call", func(ctx context.Context, n int) (int, error) {
		return step.Call[int](ctx, "child", "article", n)
	})
	e, err := engine.Config{}.Open(t.Context(), sqlite.File(path), article, wait, call)
	require.NoError(t, err)
	for n := range 2 {
		_, err = article.Start(t.Context(), e, n)
		require.NoError(t, err)
	}
	_, err = call.Start(t.Context(), e, 8)
	require.NoError(t, err)
	run, err := wait.Start(t.Context(), e, 7)
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(run, "second", 1)))
	e.Drain(t.Context())
	require.NoError(t, integrity.Check(t.Context(), e))
	require.NoError(t, e.Close())
	return path
}

// inspect changes a copy of the database by SQL, and returns the rules that it breaks.
func inspect(t *testing.T, path, query string) (rules []string, report integrity.Report) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	broken := filepath.Join(t.TempDir(), "broken.db")
	require.NoError(t, os.WriteFile(broken, data, 0o644))
	db, err := sql.Open("sqlite", broken)
	require.NoError(t, err)
	_, err = db.Exec(query)
	require.NoError(t, err, query)
	require.NoError(t, db.Close())
	s, err := sqlite.File(broken).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	report, err = integrity.Inspect(t.Context(), s, nil)
	require.NoError(t, err)
	for _, b := range report.Breaches {
		rules = append(rules, b.Rule)
	}
	require.NoError(t, s.Close())
	return rules, report
}

// The parts of the SQL below: the first article, its newest entry, and an event that is added to that.
const (
	article  = "(SELECT min(id) FROM cases WHERE workflow = 'article')"
	newest   = " WHERE seq = (SELECT last_seq FROM cases WHERE id = " + article + ")"
	review   = "(SELECT id FROM work_items WHERE task = 'review' AND case_id = " + article + ")"
	waiting  = "(SELECT id FROM cases WHERE workflow = 'wait')"
	lastWait = " WHERE seq = (SELECT last_seq FROM cases WHERE id = " + waiting + ")"
)

func added(event string) string {
	return "UPDATE journal SET events = substr(events, 1, length(events) - 1) || ',' || " + event + " || ']'" + newest
}

// Each rule is reported when it is broken, and so is each part of one that is checked in a place of its own.
func TestEachRuleIsReported(t *testing.T) {
	path := whole(t)
	rules, report := inspect(t, path, "SELECT 1")
	require.Empty(t, rules)
	require.Equal(t, int64(4), report.Cases)
	require.Equal(t, report.Of, report.Entries)
	for _, c := range []struct{ rule, query string }{
		{"I1", "UPDATE journal SET events = replace(events, '\"from\":[\"start\"]', '\"from\":[\"draft->review\"]') " +
			"WHERE root = " + article},
		{"I2", "UPDATE journal SET events = replace(events, '\"task\":\"review\",\"to\":\"enabled\",\"gen\":1', " +
			"'\"task\":\"review\",\"to\":\"enabled\",\"gen\":3')"},
		{"I3", added(`'{"e":"task","task":"review","to":"enabled","gen":2}'`)},
		{"I4", added(`'{"e":"task","task":"review","to":"completed","gen":1}'`)},
		{"I4", added(`'{"e":"task","task":"review","to":"disabled","gen":4}'`)},
		{"I5", added(`'{"e":"task","task":"review","to":"disabled","gen":1}'`)},
		{"I5", added(`'{"e":"case-ended","to":"failed"}'`)},
		{"I6", added(`'{"e":"produced","task":"review","into":[]}'`)},
		{"I6", "UPDATE journal SET events = replace(events, '\"from\":[\"start\"]', '\"from\":[]')"},
		{"I7", "UPDATE cases SET marking = '{}' WHERE id = " + article},
		{"I7", "UPDATE cases SET tasks = replace(tasks, 'enabled', 'disabled') WHERE id = " + article},
		{"I7", "UPDATE cases SET output = '1' WHERE id = " + article},
		{"I7", "UPDATE work_items SET state = 'failed' WHERE id = " + review},
		{"I7", "DELETE FROM work_items WHERE id = " + review},
		{"I7", "UPDATE jobs SET fence = 9"},
		{"I7", "UPDATE steps SET result = '9' WHERE name = 'first'"},
		{"I7", "UPDATE messages SET value = '9'"},
		{"I7", "DELETE FROM cases WHERE id = " + article},
		{"I8", "UPDATE counts SET n = n + 1 WHERE what = 'case'"},
		{"I8", "DELETE FROM counts WHERE what = 'item'"},
		{"I8", "UPDATE work_items SET case_id = '01a202f3-4ad3-7001-b033-109f7852e110' WHERE id = " + review},
		{"I8", "UPDATE jobs SET case_id = '01a202f3-4ad3-7001-b033-109f7852e110'"},
		{"I8", "UPDATE steps SET case_id = '01a202f3-4ad3-7001-b033-109f7852e110'"},
		{"I8", "UPDATE messages SET case_id = '01a202f3-4ad3-7001-b033-109f7852e110'"},
		{"I8", "UPDATE cases SET last_seq = 0 WHERE id = " + article},
		{"I9", added(`'{"e":"item","item":"' || (SELECT id FROM work_items WHERE task = 'draft' AND case_id = ` + article +
			`) || '","action":"cancel","to":"canceled","at":1}'`)},
		{"I9", added(`'{"e":"case-ended","to":"failed"},{"e":"task","task":"review","to":"canceled","gen":1}'`)},
		{"I10", added(`'{"e":"item","item":"' || ` + review + ` || '","action":"start","to":"started","at":1}'`)},
		{"J1", "UPDATE journal SET prev = 0" + newest},
		{"J1", "DELETE FROM journal WHERE seq = (SELECT prev FROM journal" + newest + ")"},
		{"J1", "UPDATE journal SET prev = seq" + newest},
		{"J2", added(`'{"e":"task","case":"' || (SELECT max(id) FROM cases WHERE workflow = 'article') ||` +
			`'","task":"review","to":"disabled","gen":1}'`)},
		{"S1", "UPDATE journal SET events = substr(events, 1, length(events) - 1) || ',{\"e\":\"job\",\"job\":\"' || " +
			"(SELECT id FROM jobs WHERE state = 'waiting' AND root = " + waiting + ") || '\",\"to\":\"done\",\"at\":1}]'" + lastWait},
		{"S2", "UPDATE journal SET events = replace(events, '\"name\":\"third\"', '\"name\":\"first\"')"},
		{"S3", "UPDATE journal SET events = substr(events, 1, length(events) - 1) || ',{\"e\":\"step\",\"step\":\"' || " +
			"(SELECT id FROM steps WHERE child IS NOT NULL) || '\",\"to\":\"done\",\"at\":1}]' " +
			"WHERE seq = (SELECT last_seq FROM cases WHERE workflow = 'call')"},
		{"S4", "UPDATE journal SET events = substr(events, 1, instr(events, 'event-taken')) || " +
			"replace(substr(events, instr(events, 'event-taken') + 1), (SELECT step FROM messages), " +
			"'01a202f3-4ad3-7001-b033-109f7852e110') WHERE events LIKE '%event-taken%'"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			rules, _ := inspect(t, path, c.query)
			require.Contains(t, rules, c.rule, c.query)
		})
	}
}
