package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/describe"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

func TestAgesAreDurationsOrDays(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]time.Duration{"90s": 90 * time.Second, "3d": 72 * time.Hour, "1h30m": 90 * time.Minute} {
		var a age
		require.NoError(t, a.Set(word))
		require.Equal(t, age(want), a)
	}
	for _, word := range []string{"", "d", "-1d", "-5m", "3 d", "9999999999d", "week"} {
		var a age
		require.Error(t, a.Set(word), word)
	}
}

func TestBoundsOfPeriodsAreAgesOrTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for word, want := range map[string]time.Time{"2h": at.Add(-2 * time.Hour), "1d": at.Add(-24 * time.Hour), "0s": {},
		"2026-11-21T02:00:00Z": time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC), "2026-11-21T02:00:00+01:00": time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)} {
		var b bound
		require.NoError(t, b.Set(word))
		require.True(t, b.time(at).Equal(want), "%s is %s", word, b.time(at))
	}
	for _, word := range []string{"", "yesterday", "2026-11-21", "-5m"} {
		require.ErrorContains(t, new(bound).Set(word), "2026-11-22T12:00:00Z", word)
	}
}

func TestBadJSONIsShownWhereItBreaks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                "unexpected end at line 1 column 1",
		`{"a":`:           "unexpected end at line 1 column 6",
		"{\n \"a\" 1\n}":  "at line 2 column 6: 1: ",
		`{'a':1}`:         "at line 1 column 2: 'a':1}: ",
		`{} {}`:           "at line 1 column 4: {}: ",
		"\x1b[31m":        "at line 1 column 1: �[31m: ",
		`{"ok":true,}`:    "at line 1 column 12: }: ",
		"[1,\n2,\n3,\nx]": "at line 4 column 1: x]: ",
	} {
		require.ErrorContains(t, checkJSON([]byte(text)), want)
	}
	require.NoError(t, checkJSON([]byte(` [1, "ü"] `)))
}

func TestATableIsAlignedAndHarmless(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	tab := &table{w: &b, paint: true, head: []string{"NAME", "STATE", "NOTE"}, width: []int{4, 5, 4}}
	tab.add("ä", "failed", "two\nlines\x1b[2J")
	tab.add("long name", "started", "")
	require.NoError(t, tab.flush())
	tab.add("x", "initialized", "later rows keep the columns")
	require.NoError(t, tab.flush())
	require.Equal(t, "NAME       STATE    NOTE\n"+
		"ä          \x1b[31mfailed\x1b[0m   two lines�[2J\n"+
		"long name  \x1b[33mstarted\x1b[0m\n"+
		"x          initialized  later rows keep the columns\n", b.String())
}

// Wide characters and emoji take two columns of a terminal, and marks none.
func TestATableIsAlignedByColumnsOfTheTerminal(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	tab := &table{w: &b, head: []string{"NAME", "STATE"}, width: []int{4, 5}}
	tab.add("東京😀", "started")
	tab.add("a\u0308b", "done")
	tab.add("abcdef", "failed")
	require.NoError(t, tab.flush())
	require.Equal(t, "NAME    STATE\n東京😀  started\na\u0308b      done\nabcdef  failed\n", b.String())
}

// A terminal that is wider than a table has to be shows more of its last column.
func TestATableHasTheWidthOfAWideTerminal(t *testing.T) {
	t.Parallel()
	message := strings.Repeat("x", 150)
	line := func(wide int) string {
		var b strings.Builder
		tab := &table{w: &b, wide: wide, head: []string{"STATE", "FAILURE"}, width: []int{5, 7}}
		tab.add("failed", message)
		require.NoError(t, tab.flush())
		return strings.Split(b.String(), "\n")[1]
	}
	require.Equal(t, "failed  "+message, line(160))
	for wide, want := range map[int]int{0: 100, 80: 100, 120: 120} {
		require.Equal(t, want, printable.Width(line(wide)))
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	require.Equal(t, `did you mean "review"?`, spelling.Hint("revew", []string{"draft", "review"}))
	require.Equal(t, "there is draft, review", spelling.Hint("zzz", []string{"draft", "review"}))
	require.Equal(t, "there are none", spelling.Hint("zzz", nil))
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprint("task", i, strings.Repeat("x", 20)))
	}
	require.Contains(t, spelling.Hint("zzz", many), " and 5 more")
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for code, errs := range map[int][]error{
		ExitNo:       {exit(ExitNo, ""), demo.ErrFailed, demo.ErrCanceled},
		ExitUsage:    {usagef("what?"), demo.ErrUsage, engine.ErrTooLarge},
		ExitNotFound: {engine.ErrNotFound, engine.ErrUnknown},
		ExitRefused: {engine.ErrInactive, engine.ErrBadRoute, engine.ErrKeyReused, engine.ErrCallback, engine.ErrDrift, engine.ErrRunaway,
			engine.ErrUnfinished, &workitem.TransitionError{}, &engine.NotLoadedError{}, workitem.Failf("no-funds", "empty"),
			demo.ErrForeign},
		ExitDatabase: {store.ErrOwned, store.ErrCorrupt, store.ErrNewer, store.ErrReadOnly, store.ErrLost, store.ErrUnavailable,
			errors.New("no space left on device")},
	} {
		for _, err := range errs {
			require.Equal(t, code, exitCode(fmt.Errorf("wrapped: %w", err)), err)
		}
	}
}

// What the owner of a database answers has the exit code that it would have here; a code that is unknown is one of the
// process's own.
func TestExitCodesOfAnOwner(t *testing.T) {
	t.Parallel()
	for code, words := range map[int][]string{
		ExitUsage:    {"invalid-payload", "too-large", "bad-command"},
		ExitNotFound: {"not-found", "unknown-workflow"},
		ExitRefused: {"illegal-transition", "not-loaded", "not-active", "not-ended", "lease-lost", "bad-route", "runaway", "key-reused",
			"callback-failed", "definition-changed", "error", "no-funds"},
		ExitDatabase: {"commit-failed", "closed", "lost", "owned", "older", "read-only", "newer", "corrupt", "undone", "unavailable"},
	} {
		for _, word := range words {
			require.Equal(t, code, exitCode(fmt.Errorf("wrapped: %w", &engine.RemoteError{Code: word})), word)
		}
	}
}

// A history with changes that the scripts do not show.
func TestTheStoryOfEveryEvent(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &state.Case{ID: workitem.CaseID{1}, Root: workitem.CaseID{1}, Net: compiled(t)}
	other := workitem.CaseID{2}
	s := describe.New(state.NewTree(c), c.ID)
	draft, _ := c.Net.TaskByName("draft")
	a, _ := c.Net.ConditionByName("a")
	first := &workitem.Item{ID: workitem.ID{3}, Case: c.ID, Task: "draft", Generation: 2, Number: 1, Attempt: 1}
	job := &state.Job{ID: workitem.JobID{4}, Case: c.ID, Task: "draft", Kind: state.JobCall, Name: "notify", Due: at.Add(time.Second)}
	for _, step := range []struct {
		event state.Change
		want  string
	}{
		{&state.TaskMoved{Case: c.ID, Task: draft, To: state.TaskEnabled, Generation: 2}, "task draft enabled (activation 2)"},
		{&state.TaskMoved{Case: c.ID, Task: draft, To: state.TaskStarted, Consumed: []net.ConditionID{a}},
			"task draft started, with a token of a"},
		{&state.TaskMoved{Case: c.ID, Task: draft, To: state.TaskDisabled}, "task draft withdrawn"},
		{&state.TaskMoved{Case: c.ID, Task: draft, To: state.TaskFailed}, "task draft failed"},
		{&state.Removed{Case: c.ID, Task: draft, From: a, Tokens: 2}, "task draft emptied a of its cancellation region (2 tokens)"},
		{&state.ItemOpened{Item: first}, "item draft.2.1 created"},
		{&state.ItemMoved{Case: c.ID, Item: first.ID, To: workitem.Initialized, By: "ann"}, "item draft.2.1 reset by ann"},
		{&state.ItemMoved{Case: c.ID, Item: workitem.ID{9}, To: workitem.Canceled},
			"item 09000000-0000-0000-0000-000000000000 canceled"},
		{&state.JobOpened{Job: job}, "job call notify of draft scheduled, due in 1s"},
		{&state.JobMoved{Case: c.ID, Job: job.ID, To: state.JobRunning, Owner: "host/1"},
			"job call notify of draft claimed by host/1"},
		{&state.JobMoved{Case: c.ID, Job: job.ID, To: state.JobRunning, Owner: "host/1"},
			"job call notify of draft goes on: lease renewed by host/1"},
		{&state.JobMoved{Case: c.ID, Job: job.ID, To: state.JobPending, Due: at, Crashes: 2},
			"job call notify of draft put back (2 crashes so far)"},
		{&state.JobMoved{Case: c.ID, Job: job.ID, To: state.JobRunning, Crashes: 2, Owner: "host/2"},
			"job call notify of draft claimed by host/2"},
		{&state.JobMoved{Case: c.ID, Job: job.ID, To: state.JobRunning, Owner: "host/2"},
			"job call notify of draft has come further: its crashes are forgotten"},
		{&state.JobMoved{Case: c.ID, Job: job.ID, To: state.JobFailed, Failure: &workitem.Failure{Code: "crash"}},
			"job call notify of draft failed: crash"},
		{&state.Noted{Case: c.ID, Task: -1, Code: "incident", Text: "look"}, "note: incident: look"},
		{&state.Noted{Case: c.ID, Task: draft, Code: "incident", Text: "look"}, "note on task draft: incident: look"},
		{&state.CaseEnded{Case: c.ID, State: state.CaseCompleted, Leftover: []net.ConditionID{a}, Output: []byte(`{ "n": 1 }`)},
			`case completed with {"n":1}; improper: tokens are left in a`},
		{&state.CaseEnded{Case: c.ID, State: state.CaseFailed, Failure: &workitem.Failure{Code: "x", Message: "y"}},
			"case failed: x: y"},
		{&state.CaseEnded{Case: c.ID, State: state.CaseCanceled, KeepUntil: at.Add(7 * 24 * time.Hour)},
			"case canceled; kept until 2030-01-08T00:00:00Z"},
		{&state.CaseOpened{Case: &state.Case{ID: c.ID, Workflow: "w", Input: []byte(`1`), Priority: 3,
			Predecessor: workitem.CaseID{8}, Options: []byte(`{"retry":{"attempts":2}}`)}},
			`case of w opened with 1, priority 3, restarts 08000000-0000-0000-0000-000000000000, asked: {"retry":{"attempts":2}}`},
		{&state.CaseRemoved{Case: c.ID}, "case removed, with all that it had"},
	} {
		line, ours := s.Describe(step.event, at)
		require.True(t, ours)
		require.Equal(t, step.want, line)
	}
	_, ours := s.Describe(&state.CaseBegun{Case: other}, at)
	require.False(t, ours, "another case's event is not described")
	require.Equal(t, "item complete draft.2.1, case cancel x", s.CommandText("item complete "+first.ID.String()+", case cancel x"))
}

func compiled(t *testing.T) *net.Net {
	t.Helper()
	parsed, err := scenario.ParseNotation(net.Pos{},
		"workflow w\nstart s\nend e\ncondition a\ntask draft\nflow s -> draft\nflow draft -> a\ntask b\nflow a -> b\nflow b -> e")
	require.NoError(t, err)
	n, err := net.Compile(parsed[0].Def)
	require.NoError(t, err)
	return n
}

// Definitions that a database holds as text are rebuilt in every version, so that older cases continue.
func TestRebuildGivesEveryVersionBack(t *testing.T) {
	t.Parallel()
	text := func(task string) string {
		return "workflow w\nstart s\nend e\ncomposite " + task + " of child\nflow s -> " + task + "\nflow " + task + " -> e\n" +
			"workflow child\nstart s\nend e\ntask t\nflow s -> t\nflow t -> e\n"
	}
	var stored []*store.Definition
	for version, task := range []string{"a", "b"} {
		parsed, err := scenario.ParseNotation(net.Pos{}, text(task))
		require.NoError(t, err)
		defs, problems, err := scenario.Compile(parsed, nil)
		require.NoError(t, err)
		require.Empty(t, problems)
		for _, d := range defs {
			if version > 0 && d.Name == "child" {
				continue // it did not change
			}
			stored = append(stored, &store.Definition{Name: d.Name, Version: fmt.Sprint(version), Fingerprint: d.Fingerprint,
				Net: d.Net.Definition(), Document: d.Document, Created: time.Unix(int64(version), 0)})
		}
	}
	stored = append(stored,
		&store.Definition{Name: "code", Code: true, Document: []byte(`{"notation":"workflow code"}`)},
		&store.Definition{Name: "other", Document: []byte(`{"tasks":[]}`)},
		&store.Definition{Name: "torn", Document: []byte(`{"notation":"workflow"}`)},
	)
	defs, err := rebuild(stored)
	require.NoError(t, err)
	var got []string
	for _, d := range defs {
		got = append(got, d.Name+" "+d.Version)
		require.Contains(t, []string{stored[0].Fingerprint, stored[1].Fingerprint, stored[2].Fingerprint}, d.Fingerprint)
	}
	require.ElementsMatch(t, []string{"w 0", "child 0", "w 1"}, got)
	require.Equal(t, "w 1", got[len(got)-1], "the newest of a name comes last")
}

// A text that is drawn in its place goes up over the lines of the one before, and is not written if nothing changed.
func TestDrawingInPlace(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	d := inPlace{w: &b}
	require.NoError(t, d.draw("A\nB\n"))
	require.Equal(t, "\x1b[?7l\x1b[JA\nB\n\x1b[?7h", b.String())
	b.Reset()
	require.NoError(t, d.draw("A\nB\n"))
	require.Empty(t, b.String())
	require.NoError(t, d.draw("C\n"))
	require.Equal(t, "\x1b[?7l\x1b[2F\x1b[JC\n\x1b[?7h", b.String())
}

// A terminal is drawn as the journal moves, and after a second, as ages grow; rows are asked for only as it moves.
// An entry that is not settled does not count.
func TestTheMovesOfTheJournal(t *testing.T) {
	t.Parallel()
	for refresh, want := range map[time.Duration]string{0: "0s:1 1s:2 3s:3 ", time.Second: "0s:1 1s:2 2s:2 3s:3 4s:3 "} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 4750*time.Millisecond)
			defer cancel()
			var got strings.Builder
			for seq, err := range moves(ctx, journal{begun}, retry.SystemClock, refresh) {
				require.NoError(t, err)
				fmt.Fprintf(&got, "%s:%d ", time.Since(begun), seq)
			}
			require.Equal(t, want, got.String())
		})
	}
}

// Rows that change without an entry of the journal are printed once the interval of a list such as incidents has passed; without one they are not.
func TestRowsChangeWithoutTheJournal(t *testing.T) {
	t.Parallel()
	for poll, want := range map[time.Duration]string{0: "{\"id\":0}\n", watchRefresh: "{\"id\":0}\n{\"id\":2}\n{\"id\":0,\"gone\":true}\n"} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2750*time.Millisecond)
			defer cancel()
			var out strings.Builder
			a := &app{Streams: Streams{Out: &out}, output: "json"}
			w := &watch{a: a, on: true, poll: poll}
			require.NoError(t, w.watchRows(ctx, still{journal: journal{begun.Add(time.Hour)}}, func(context.Context, store.Reader) error {
				id := 0
				if time.Since(begun) >= 2*time.Second {
					id = 2
				}
				return a.object(map[string]int{"id": id})
			}))
			require.Equal(t, want, out.String())
		})
	}
}

// still is a store whose journal has no new entry.
type still struct {
	store.Store
	journal journal
}

func (s still) View(ctx context.Context, f func(store.Reader) error) error {
	return s.journal.View(ctx, f)
}

// journal has entry 1 from the beginning, 2 after a second, and 3 after three.
type journal struct{ begun time.Time }

func (j journal) View(_ context.Context, f func(store.Reader) error) error {
	return f(journalReader{j: j})
}

type journalReader struct {
	store.Reader
	j journal
}

func (r journalReader) Journal(_ context.Context, f store.JournalFilter) ([]*store.Entry, error) {
	seq := int64(1)
	if !f.Settled {
		seq = 100
	}
	for _, after := range []time.Duration{time.Second, 3 * time.Second} {
		if time.Since(r.j.begun) >= after {
			seq++
		}
	}
	return []*store.Entry{{Seq: seq}}, nil
}
