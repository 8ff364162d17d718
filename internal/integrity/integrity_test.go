package integrity_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// whole makes a closed database: two cases that wait for a person after a job, one whose child cases do, a function that has
// done a step, has taken an event and waits for another one, and one that waits for a child case.
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
	wait := builder.MustFunc("wait", func(ctx context.Context, n int) (int, error) {
		if _, err := step.Do(ctx, "first", func(context.Context) (int, error) { return n, nil }); err != nil {
			return 0, err
		}
		if _, err := step.Await[int](ctx, "second"); err != nil {
			return 0, err
		}
		return step.Await[int](ctx, "third")
	})
	call := builder.MustFunc("call", func(ctx context.Context, n int) (int, error) {
		return step.Call[int](ctx, "child", "article", n)
	})
	b = builder.New[int]("issue")
	batch := builder.Composite(b, "batch", article, builder.Cases[int]{
		Items: func(context.Context, *activities.Activation) ([]int, error) { return []int{5, 6}, nil }})
	b.Path(b.Start(), batch, b.End())
	issue, err := b.Build()
	require.NoError(t, err)
	e, err := engine.Config{}.Open(t.Context(), sqlite.File(path), article, issue, wait, call)
	require.NoError(t, err)
	for n := range 2 {
		_, err = article.Start(t.Context(), e, n)
		require.NoError(t, err)
	}
	_, err = issue.Start(t.Context(), e, 3)
	require.NoError(t, err)
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

// inspect changes a copy of the database by SQL, and checks it.
func inspect(t *testing.T, path, query string) integrity.Report {
	t.Helper()
	report, err := tryInspect(t, path, query)
	require.NoError(t, err)
	return report
}

// tryInspect is like inspect for a change after which the store may not be able to read its rows.
func tryInspect(t *testing.T, path, query string) (integrity.Report, error) {
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
	defer s.Close()
	return integrity.Inspect(t.Context(), s, nil)
}

// The parts of the SQL below: cases, one of their entries, and events that are added to it.
const (
	article  = "(SELECT min(id) FROM cases WHERE workflow = 'article')"
	another  = "(SELECT max(id) FROM cases WHERE workflow = 'article' AND parent IS NULL)"
	issue    = "(SELECT id FROM cases WHERE workflow = 'issue')"
	child    = "(SELECT max(id) FROM cases WHERE parent = " + issue + ")"
	draft    = "(SELECT id FROM work_items WHERE task = 'draft' AND case_id = " + article + ")"
	review   = "(SELECT id FROM work_items WHERE task = 'review' AND case_id = " + article + ")"
	waiting  = "(SELECT id FROM cases WHERE workflow = 'wait')"
	calling  = "(SELECT id FROM cases WHERE workflow = 'call')"
	nowhere  = "'01a202f3-4ad3-7001-b033-109f7852e110'" // the id of nothing
	lastStep = "(SELECT id FROM steps WHERE state = 'waiting' AND case_id = " + waiting + ")"
)

// first and last are the end of a statement about the oldest and the newest journal entry of a root case.
func first(root string) string {
	return " WHERE seq = (SELECT min(seq) FROM journal WHERE root = " + root + ")"
}

func last(root string) string {
	return " WHERE seq = (SELECT last_seq FROM cases WHERE id = " + root + ")"
}

// added adds events to the newest entry of a root case. They are an SQL expression.
func added(root, events string) string {
	return "UPDATE journal SET events = substr(events, 1, length(events) - 1) || ',' || " + events + " || ']'" + last(root)
}

// replaced replaces a part of the entries of a root case.
func replaced(root, old, new string) string {
	return "UPDATE journal SET events = replace(events, " + old + ", " + new + ") WHERE root = " + root
}

// Each rule is reported when it is broken, and so is each part of one that is checked in a place of its own, in the words of
// that place: a database that breaks a rule often breaks others by that.
func TestEachRuleIsReported(t *testing.T) {
	path := whole(t)
	report := inspect(t, path, "SELECT 1")
	require.Empty(t, report.Breaches)
	require.Equal(t, int64(5), report.Cases)
	require.Equal(t, report.Of, report.Entries)
	for _, c := range []struct{ rule, says, query string }{
		{"I1", "would hold less than no token", replaced(article, `'"from":["start"]'`, `'"from":["draft->review"]'`)},
		{"I2", "is enabled as 3 after 0", replaced(article, `'"task":"review","to":"enabled","gen":1'`, `'"task":"review","to":"enabled","gen":3'`)},
		{"I3", "is enabled while it is enabled", added(article, `'{"e":"task","task":"review","to":"enabled","gen":2}'`)},
		{"I4", "goes from enabled to completed", added(article, `'{"e":"task","task":"review","to":"completed","gen":1}'`)},
		{"I4", "activation 4 of task review", added(article, `'{"e":"task","task":"review","to":"disabled","gen":4}'`)},
		{"I5", "its task is disabled in activation 1, its case started", added(article, `'{"e":"task","task":"review","to":"disabled","gen":1}'`)},
		{"I5", "its case failed", added(article, `'{"e":"case-ended","to":"failed"}'`)},
		{"I5", "is waiting, and the case is failed", added(waiting, `'{"e":"case-ended","to":"failed"}'`)},
		{"I5", "is pending, and its item draft.1.1 is completed", added(article, `'{"e":"job-opened","job":"' || `+nowhere+` || '","task":"draft","gen":1,"item":"' || `+draft+` ||
			'","kind":"run","to":"pending","due":1,"at":1}'`)},
		{"I5", "is started, and its task batch is canceled", added(issue, `'{"e":"task","task":"batch","to":"canceled","gen":1}'`)},
		{"I6", "produces tokens, and is enabled", added(article, `'{"e":"produced","task":"review","into":[]}'`)},
		{"I6", "consumes [] instead of [0]", replaced(article, `'"from":["start"]'`, `'"from":[]'`)},
		{"I7", "in the tables, and started with { draft->review:1 }", "UPDATE cases SET marking = '{}' WHERE id = " + article},
		{"I7", "task review of case", "UPDATE cases SET tasks = replace(tasks, 'enabled', 'disabled') WHERE id = " + article},
		{"I7", "ended with 1 ", "UPDATE cases SET output = '1' WHERE id = " + article},
		{"I7", "runs on another definition", "UPDATE cases SET fingerprint = (SELECT fingerprint FROM cases WHERE id = " + calling +
			") WHERE id = " + waiting},
		{"I7", "item ", "UPDATE work_items SET state = 'failed' WHERE id = " + review},
		{"I7", "item ", "UPDATE work_items SET retry = '{}' WHERE id = " + review},
		{"I7", "has 1 items in the tables, and 2", "DELETE FROM work_items WHERE id = " + review},
		{"I7", "job ", "UPDATE jobs SET fence = 9"},
		{"I7", "step ", "UPDATE steps SET result = '9' WHERE name = 'first'"},
		{"I7", "event ", "UPDATE messages SET value = '9'"},
		{"I7", "is in the journal (entry ", "DELETE FROM cases WHERE id = " + article},
		{"I8", "by the counts of the tables", "UPDATE counts SET n = n + 1 WHERE what = 'case'"},
		{"I8", "there are none of {What:item", "DELETE FROM counts WHERE what = 'item'"},
		{"I8", "that ended of {Workflow:", "UPDATE ended SET n = n + 1"},
		{"I8", "that ended of {Workflow:", "INSERT INTO ended (hour, workflow, task, state, took, n) VALUES (1, 'article', '', 'completed', 3, 1)"},
		{"I8", "there are none that ended of {Workflow:", "DELETE FROM ended"},
		{"I8", "State:started", "UPDATE ended SET took = took + 1 WHERE state = 'started'"},
		{"I8", "item ", "UPDATE work_items SET case_id = " + nowhere + " WHERE id = " + review},
		{"I8", "job ", "UPDATE jobs SET case_id = " + nowhere},
		{"I8", "step ", "UPDATE steps SET case_id = " + nowhere},
		{"I8", "event ", "UPDATE messages SET case_id = " + nowhere},
		{"I8", "the journal has no entry of it", "UPDATE cases SET last_seq = 0 WHERE id = " + article},
		{"I8", "and not in the journal of its root case", "CREATE TEMP TABLE copy AS SELECT * FROM cases WHERE id = " + child + "; UPDATE copy SET id = " + nowhere +
			"; INSERT INTO cases SELECT * FROM copy"},
		{"I9", "which is completed", added(article, `'{"e":"item","item":"' || `+draft+` || '","action":"cancel","to":"canceled","at":1}'`)},
		{"I9", "gives item", added(article, `'{"e":"retry","item":"' || `+draft+` || '","retry":{}}'`)},
		{"I9", "which is failed", added(article, `'{"e":"case-ended","to":"failed"},{"e":"task","task":"review","to":"canceled","gen":1}'`)},
		{"I9", "suspends case", added(article, `'{"e":"case-ended","to":"failed"},{"e":"case-suspended","at":1}'`)},
		{"I9", "resumes task 1 of case", added(article, `'{"e":"case-ended","to":"failed"},{"e":"task-resumed","task":"review","gen":1}'`)},
		{"I1", "is resumed, and it is started", added(article, `'{"e":"case-resumed","at":1}'`)},
		{"I10", "is started, its task is enabled", added(article, `'{"e":"item","item":"' || `+review+` || '","action":"start","to":"started","at":1}'`)},
		{"I10", "has begun, and the case above it has not", replaced(issue, `'{"e":"case-begun"},'`, `''`)},
		{"J1", "follows ", "UPDATE journal SET prev = 999" + first(article)},
		{"J1", "the journal has ", "DELETE FROM journal WHERE seq = (SELECT prev FROM journal" + last(waiting) + ")"},
		{"J1", "follows ", "UPDATE journal SET prev = seq" + last(article)},
		{"J2", "which is not there", added(article, `'{"e":"task","case":"' || `+another+` || '","task":"review","to":"disabled","gen":1}'`)},
		{"S1", "and its job", added(waiting, `'{"e":"job","job":"' || (SELECT id FROM jobs WHERE case_id = `+waiting+`) || '","to":"done","at":1}'`)},
		{"S1", "waits for nothing", added(waiting, `'{"e":"step","step":"' || `+lastStep+` || '","to":"canceled","at":1}'`)},
		{"S2", "recorded two steps \"first\"", "UPDATE journal SET events = replace(events, '\"name\":\"third\"', '\"name\":\"first\"')"},
		{"S3", "is live, and no step", added(calling, `'{"e":"step","step":"' || (SELECT id FROM steps WHERE child IS NOT NULL) || '","to":"done","at":1}'`)},
		{"S4", "which is not there", "UPDATE journal SET events = substr(events, 1, instr(events, 'event-taken')) || " +
			"replace(substr(events, instr(events, 'event-taken') + 1), (SELECT step FROM messages), " + nowhere +
			") WHERE events LIKE '%event-taken%'"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var found []string
			for _, b := range inspect(t, path, c.query).Breaches {
				if b.Rule == c.rule && strings.Contains(b.Text, c.says) {
					return
				}
				found = append(found, b.Error())
			}
			require.Fail(t, "it is not reported", "%s, %q, of\n%s\nfound:\n%s", c.rule, c.says, c.query, strings.Join(found, "\n"))
		})
	}
}

// Whatever a row holds is compared with the journal: a change of any column is reported, by the check or by the store, which
// cannot read the row then.
func TestEachColumnIsCompared(t *testing.T) {
	path := whole(t)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	for _, table := range []string{"cases", "work_items", "jobs", "steps", "messages"} {
		rows, err := db.Query("SELECT name, type FROM pragma_table_info(?) WHERE pk = 0", table)
		require.NoError(t, err)
		changes := make(map[string]string)
		for rows.Next() {
			var name, kind string
			require.NoError(t, rows.Scan(&name, &kind))
			changes[name] = "CASE " + name + " WHEN 1 THEN 0 ELSE coalesce(" + name + ", 0) + 1 END"
			if kind == "TEXT" {
				changes[name] = "CASE WHEN json_valid(" + name + ") THEN '99' ELSE coalesce(" + name + ", '') || '\"x\"' END"
			}
		}
		require.NoError(t, rows.Close())
		require.NotEmpty(t, changes)
		for column, value := range changes {
			t.Run(table+"."+column, func(t *testing.T) {
				report, err := tryInspect(t, path, "UPDATE "+table+" SET "+column+" = "+value)
				if err == nil {
					require.NotEmpty(t, report.Breaches)
				}
			})
		}
	}
}

// mixed is a store that returns the rows of its cases wrongly, as one of another kind may.
type mixed struct {
	integrity.Viewer
	wrap func(store.Reader) store.Reader
}

// View implements integrity.Viewer.
func (m mixed) View(ctx context.Context, f func(store.Reader) error) error {
	return m.Viewer.View(ctx, func(r store.Reader) error {
		return f(struct {
			store.Reader
			store.Auditor
		}{m.wrap(r), r.(store.Auditor)})
	})
}

// strange returns an entry that was not asked for.
type strange struct {
	store.Reader
	entry *store.Entry
}

// Journal implements store.Reader.
func (s strange) Journal(ctx context.Context, f store.JournalFilter) ([]*store.Entry, error) {
	entries, err := s.Reader.Journal(ctx, f)
	return append(entries, s.entry), err
}

// fewer leaves out the last child case.
type fewer struct{ store.Reader }

// Cases implements store.Reader.
func (s fewer) Cases(ctx context.Context, f store.CaseFilter) ([]*state.Case, error) {
	cases, err := s.Reader.Cases(ctx, f)
	if f.Roots != nil {
		last := 0
		for i, c := range cases {
			if !c.Parent.IsZero() {
				last = i
			}
		}
		cases = slices.Delete(cases, last, last+1)
	}
	return cases, err
}

// What no change of a SQLite database shows, since the store cannot read it then, is reported too.
func TestAStoreThatMixesUpCases(t *testing.T) {
	s, err := sqlite.File(whole(t)).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	for says, wrap := range map[string]func(store.Reader) store.Reader{
		"J1: the chain of another case leads to journal entry 1000, which is of case 01": func(r store.Reader) store.Reader {
			return strange{r, &store.Entry{Seq: 1000, Root: workitem.CaseID{1}}}
		},
		"has 1 cases in the tables, and 2 in the journal": func(r store.Reader) store.Reader { return fewer{r} },
	} {
		require.ErrorContains(t, integrity.Check(t.Context(), mixed{s, wrap}), says)
	}
}
