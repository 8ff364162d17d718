package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// post leaves a command as another process would, and waits for the answer.
func post(t testing.TB, path string, c workflow.Command) (workflow.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command, err := json.Marshal(c)
	require.NoError(t, err)
	answer, err := sqlite.Post(ctx, path, command)
	require.NoError(t, err)
	return engine.RemoteAnswer(answer)
}

func leave(t testing.TB, path string, c workflow.Command) {
	t.Helper()
	command, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, sqlite.Leave(t.Context(), path, command))
}

func TestTheOwnerDoesTheCommandsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	a := newArticle(t, builder.Work[prompt, draft]{Run: write})
	path := filepath.Join(t.TempDir(), "article.db")
	e := enginetest.Open(t, sqlite.File(path), engine.Config{}, a)

	started, err := post(t, path, workflow.Command{
		Kind: workflow.KindStart, Workflow: "article", Payload: json.RawMessage(`{"text":"nets"}`), Key: "k", Actor: "ann"})
	require.NoError(t, err)
	again, err := post(t, path, workflow.Command{
		Kind: workflow.KindStart, Workflow: "article", Payload: json.RawMessage(`{"text":"nets"}`), Key: "k", Actor: "ann"})
	require.NoError(t, err)
	require.Equal(t, started, again, "the same key gets the first answer")
	e.Drain()

	review := live(t, e, started.Case, "review").ID
	act := func(action workitem.Action, data string) error {
		_, err := post(t, path, workflow.Command{
			Kind: workflow.KindAct, Item: review, Action: action, Payload: json.RawMessage(data), Actor: "bob"})
		return err
	}
	require.NoError(t, act(workitem.Start, ""))
	err = act(workitem.Start, "")
	require.Equal(t, "illegal-transition", engine.Code(err))
	require.ErrorContains(t, err, "it is started, and the action needs it to be initialized")
	require.NoError(t, act(workitem.Complete, `{"ok":true}`))

	c, err := e.Case(t.Context(), started.Case)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
	_, err = post(t, path, workflow.Command{Kind: workflow.KindCancel, Case: started.Case})
	require.ErrorIs(t, err, engine.ErrInactive, "an error has the same kind on both sides")
	_, err = post(t, path, workflow.Command{Kind: workflow.KindStart, Workflow: "artcle"})
	require.ErrorIs(t, err, engine.ErrUnknown)
	_, err = post(t, path, workflow.Command{Kind: "stop"})
	require.Equal(t, "bad-command", engine.Code(err))
}

func TestPendingCommandsAreExecutedAtOpen(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{Run: write})
	path := filepath.Join(t.TempDir(), "article.db")
	e, err := engine.Open(t.Context(), sqlite.File(path), a)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	leave(t, path, workflow.Command{Kind: workflow.KindStart, Workflow: "article", Payload: json.RawMessage(`{"text":"nets"}`)})
	leave(t, path, workflow.Command{Kind: workflow.KindStart, Workflow: "article", Payload: json.RawMessage(`{"text":""}`)})

	opened := enginetest.Open(t, sqlite.File(path), engine.Config{}, a)
	opened.Drain()
	require.Equal(t, 1, cases(t, opened), "the refused one undid itself alone")
}

func cases(t testing.TB, e *enginetest.Engine) int {
	t.Helper()
	n := 0
	for _, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		n++
	}
	return n
}

// A program may share its database with one that has other workflows, such as the command line: neither touches what
// only the other one can do.
func TestCommandForAnotherProgramStays(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{Run: write, Timeout: time.Second})
	path := filepath.Join(t.TempDir(), "article.db")
	e, err := engine.Config{Workers: -1}.Open(t.Context(), sqlite.File(path), a)
	require.NoError(t, err)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	var jobs []*state.Job
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{States: []state.JobState{state.JobPending}}) {
		require.NoError(t, err)
		jobs = append(jobs, j)
	}
	require.Len(t, jobs, 2, "a run and a timeout")
	later, err := a.Start(t.Context(), e, prompt{Text: "nets"}, workflow.After(20*365*24*time.Hour))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	leave(t, path, workflow.Command{Kind: workflow.KindStart, Workflow: "article", Payload: json.RawMessage(`{"text":"more"}`),
		WaitForOwner: true})
	leave(t, path, workflow.Command{Kind: workflow.KindCancel, Case: later, WaitForOwner: true})

	stranger := enginetest.Open(t, sqlite.File(path), engine.Config{})
	stranger.Advance(time.Hour)
	require.Equal(t, 2, cases(t, stranger))
	for j, err := range store.AllJobs(t.Context(), stranger, store.JobFilter{}) {
		require.NoError(t, err)
		require.Equal(t, state.JobPending, j.State)
		require.Zero(t, j.Attempt)
	}
	stranger.Crash(a)
	stranger.Drain()
	require.Equal(t, 3, cases(t, stranger))
	c, err := stranger.Case(t.Context(), later)
	require.NoError(t, err)
	require.Equal(t, state.CaseCanceled, c.State)
	c, err = stranger.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State, "its timeout was over first")
}

// A command that is not to stay is refused at once by an owner that lacks the case's version, with what to do.
func TestCommandForUnloadedVersionIsRefusedAtOnce(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{Policy: workitem.Incident(workitem.Default())})
	path := filepath.Join(t.TempDir(), "article.db")
	e, err := engine.Open(t.Context(), sqlite.File(path), a)
	require.NoError(t, err)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{}) {
		require.NoError(t, err)
		for _, do := range []workitem.Action{workitem.Start, workitem.Fail} {
			_, err := e.Do(t.Context(), workflow.Command{Kind: workflow.KindAct, Item: it.ID, Action: do})
			require.NoError(t, err)
		}
	}
	var incidents []*store.Incident
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{}) {
		require.NoError(t, err)
		incidents = append(incidents, i)
	}
	require.Len(t, incidents, 1)
	require.NoError(t, e.Close())
	stranger, err := engine.Open(t.Context(), sqlite.File(path))
	require.NoError(t, err)
	defer stranger.Close()
	for _, c := range []workflow.Command{
		{Kind: workflow.KindCancel, Case: id},
		{Kind: workflow.KindRetry, Item: incidents[0].Item},
		{Kind: workflow.KindRetryIncident, Job: incidents[0].ID},
		{Kind: workflow.KindGiveUpIncident, Job: incidents[0].ID},
	} {
		_, err := post(t, path, c)
		require.ErrorIs(t, err, engine.ErrUnknown, c.Kind)
		require.Equal(t, "not-loaded", engine.Code(err))
		require.ErrorContains(t, err, "case "+id.String()+" runs on workflow article, which the engine was not opened with: open it with "+
			"that too, or act through the program that has it")
	}
}

func TestExecuteDoesWhatTheTypedHandlesDo(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{Run: write})
	e := enginetest.New(t, a)
	started, err := e.Do(t.Context(), workflow.Command{
		Kind: workflow.KindStart, Workflow: "article", Payload: json.RawMessage(`{"text":"nets"}`)})
	require.NoError(t, err)
	e.Drain()
	_, err = e.Do(t.Context(), workflow.Command{
		Kind: workflow.KindCancel, Case: started.Case, Reason: &workitem.Failure{Code: "withdrawn"}, Actor: "ann"})
	require.NoError(t, err)
	c, err := e.Case(t.Context(), started.Case)
	require.NoError(t, err)
	require.Equal(t, "withdrawn", c.Failure.Code)
	_, err = e.Do(t.Context(), workflow.Start("article", json.RawMessage(`[`)))
	require.Equal(t, "invalid-payload", engine.Code(err))
}

func TestDecodeRemote(t *testing.T) {
	item := workitem.ID{15: 1}
	for _, c := range []workflow.Command{
		{Kind: workflow.KindStart, Workflow: "article", Payload: json.RawMessage(`{"a":1}`), Key: "k", Actor: "ann"},
		{Kind: workflow.KindAct, Item: item, Action: workitem.Complete, Route: []string{"a", "b"}},
		{Kind: workflow.KindCancel, Case: workitem.CaseID(item)},
	} {
		data, err := json.Marshal(c)
		require.NoError(t, err)
		read, err := workflow.Decode(data)
		require.NoError(t, err)
		require.Equal(t, c, read)
	}
	for text, want := range map[string]string{
		`{`:                                  "unexpected EOF",
		`{"kind":"start","workflow":"w"} {}`: "unexpected data after the command, at byte",
		`{"kind":"start","workflow":"w"}]`:   "unexpected data after the command, at byte",
		`{"kind":"start","workflow":"w","when":1}`: `bad command: unknown field "when"`,
		`{"kind":"start"}`:                         `a start command needs "workflow"`,
		`{"kind":"cancel"}`:                        `a cancel command needs "case"`,
		`{"kind":"item","action":"start"}`:         `an item command needs "item"`,
		`{"kind":"cancel","reason":"late"}`:        `the field "reason" cannot be a string`,
		`{"kind":"retri"}`:                         `; did you mean "retry"?`,
		`{"kind":"stop"}`:                          `"stop" is none of the kinds [add-item broadcast cancel `,
		`{}`:                                       `"" is none of the kinds [add-item broadcast cancel `,
		`{"kind":"item","item":"` + item.String() + `","action":"begin"}`:      `"begin" is not an action`,
		`{"kind":"item","item":"` + item.String() + `","action":"initialize"}`: "initialized by their task alone",
		`{"kind":"item","item":"x"}`:                                           `"x" is not an id`,
		`{"kind":"cancel","case":"` + item.String() + `","payload":1}`:         `a cancel command takes no "payload"; leave it out`,
	} {
		_, err := workflow.Decode(json.RawMessage(text))
		require.ErrorContains(t, err, want)
		require.Equal(t, "bad-command", engine.Code(err))
	}
}

// typeCodes are the codes of errors that are known by their type, or by a code of the process's own.
var typeCodes = map[string]struct{}{"illegal-transition": {}, "invalid-payload": {}, "no-funds": {}, "error": {}}

func TestCodesAreStable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{engine.ErrNotFound, "not-found"},
		{engine.ErrInactive, "not-active"},
		{engine.ErrBadRoute, "bad-route"},
		{engine.ErrRunaway, "runaway"},
		{workitem.Failf("no-funds", "empty"), "no-funds"},
		{engine.ErrUnknown, "unknown-workflow"},
		{engine.ErrDrift, "definition-changed"},
		{engine.ErrClosed, "closed"},
		{engine.ErrCallback, "callback-failed"},
		{engine.ErrKeyReused, "key-reused"},
		{engine.ErrTooLarge, "too-large"},
		{engine.ErrConfig, "bad-config"},
		{engine.ErrFull, "full"},
		{engine.ErrUnfinished, "not-ended"},
		{engine.ErrLeaseLost, "lease-lost"},
		{workflow.ErrKeyTaken, "key-taken"},
		{workflow.ErrNotFailed, "not-failed"},
		{workflow.ErrSuspended, "suspended"},
		{workflow.ErrDeadEnd, "dead-end"},
		{workflow.ErrBadCommand, "bad-command"},
		{store.ErrOwned, "owned"},
		{store.ErrOlder, "older"},
		{store.ErrLost, "lost"},
		{store.ErrUndone, "undone"},
		{store.ErrConflict, "conflict"},
		{store.ErrHalfCopied, "half-copied"},
		{store.ErrUnavailable, "unavailable"},
		{store.ErrReadOnly, "read-only"},
		{store.ErrNewer, "newer"},
		{store.ErrCorrupt, "corrupt"},
		{&workitem.TransitionError{}, "illegal-transition"},
		{&domain.InvalidError{}, "invalid-payload"},
		{fmt.Errorf("no funds"), "error"},
	} {
		require.Equal(t, c.want, engine.Code(c.err))
		if c.err == nil {
			continue
		}
		require.Equal(t, c.want, engine.Code(fmt.Errorf("wrapped: %w", c.err)))
		remote := &engine.RemoteError{Code: c.want, Text: c.err.Error()}
		require.Equal(t, c.want, engine.Code(remote))
		if _, isType := typeCodes[c.want]; !isType {
			require.ErrorIs(t, remote, c.err, "the caller in another process finds the same kind")
		}
	}
	require.ErrorIs(t, &engine.RemoteError{Code: "not-found"}, engine.ErrNotFound)
	require.NotErrorIs(t, &engine.RemoteError{Code: "not-found"}, engine.ErrInactive)
}

// More commands may be left than are read at a time, and those of another program stay where they are: none of them
// hides the ones behind it.
func TestManyCommandsThatWereLeftAreAllDone(t *testing.T) {
	t.Parallel()
	a, b := oneTask("ours"), oneTask("theirs")
	path := filepath.Join(t.TempDir(), "many.db")
	e, err := engine.Open(t.Context(), sqlite.File(path), a, b)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	for _, name := range []string{"theirs", "ours"} {
		for range engine.InboxBatch + 1 {
			leave(t, path, workflow.Command{
				Kind: workflow.KindStart, Workflow: name, Payload: json.RawMessage(`{"text":"x"}`), WaitForOwner: true})
		}
	}

	opened := enginetest.Open(t, sqlite.File(path), engine.Config{}, a)
	opened.Drain()
	require.Equal(t, engine.InboxBatch+1, cases(t, opened))
}

func oneTask(name string) *builder.Workflow[prompt] {
	b := builder.New[prompt](name)
	b.Path(b.Start(), builder.Task(b, "task", builder.Work[prompt, draft]{Input: builder.CaseInput(b)}), b.End())
	return b.MustBuild()
}

// hint is a watcher that says once that a command was left.
type hint struct{ left bool }

// Changed implements store.Watcher.
func (h *hint) Changed(context.Context) (bool, error) {
	changed := h.left
	h.left = false
	return changed, nil
}

// A command that could not be taken is asked for again, though nothing has changed in the meantime.
func TestACommandThatCouldNotBeTakenIsTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "again.db")
	b := &broken{Opener: sqlite.File(path)} // which hides the inbox from the engine
	e := enginetest.Open(t, b, engine.Config{}, oneTask("ours"))
	look := engine.Inbox(e.Engine, &hint{left: true})
	leave(t, path, workflow.Command{
		Kind: workflow.KindStart, Workflow: "ours", Payload: json.RawMessage(`{"text":"x"}`)})
	b.begin.Store(true)
	require.ErrorIs(t, look(), errDisk)
	b.begin.Store(false)
	require.NoError(t, look())
	require.Equal(t, 1, cases(t, e))
}

// A completion handler that takes too long is told by a job, whoever gave the command that ended the run.
func TestAHandlerThatHangsDoesNotRefuseARemoteCommand(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	var calls atomic.Int32
	h := builder.Handler("h", func(context.Context, *builder.Completion[int], string) error {
		if calls.Add(1) == 1 {
			<-release
		}
		return nil
	})
	a := builder.MustFunc("a", func(ctx context.Context, n int) (int, error) {
		<-ctx.Done()
		return n, ctx.Err()
	}, builder.Handles(h))
	path := filepath.Join(t.TempDir(), "handler.db")
	e := enginetest.Open(t, sqlite.File(path), engine.Config{CallbackTimeout: 2 * time.Second}, a)
	run, err := a.Run(t.Context(), e, 1, builder.OnComplete(h, "x"))
	require.NoError(t, err)
	_, err = post(t, path, workflow.Command{Kind: workflow.KindCancel, Case: run.ID})
	require.NoError(t, err)
	e.Drain()
	require.EqualValues(t, 2, calls.Load())
}

// A command of another process whose SQL undoes its transaction is refused, and answered, once; others that came with it are done.
func TestARemoteCommandThatUndoesItsTransactionIsRefused(t *testing.T) {
	t.Parallel()
	b := builder.New[prompt]("bad")
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{OnEnabled: func(ctx context.Context, a *activities.Activation) error {
		_, err := a.DB().ExecContext(ctx, undoing)
		return err
	}}), b.End())
	path := filepath.Join(t.TempDir(), "undone.db")
	e := enginetest.Open(t, sqlite.File(path), engine.Config{}, b.MustBuild(), oneTask("ours"))
	withTable(t, e)
	start := func(name string) workflow.Command {
		return workflow.Command{Kind: workflow.KindStart, Workflow: name, Payload: json.RawMessage(`{"text":"x"}`)}
	}
	leave(t, path, start("ours"))
	_, err := post(t, path, start("bad"))
	require.ErrorContains(t, err, store.ErrUndone.Error())
	_, err = post(t, path, start("ours"))
	require.NoError(t, err)
	require.Equal(t, 2, cases(t, e))
}

// outageInbox is an outage whose store shows its inbox.
type outageInbox struct{ *outage }

// Open implements store.Opener.
func (f outageInbox) Open(ctx context.Context, o store.Options) (store.Store, error) {
	var opened store.Store
	h := f.hooks()
	h.Opened = func(s store.Store) error {
		opened = s
		return nil
	}
	s, err := h.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return struct {
		store.Store
		store.Watcher
	}{s, opened.(store.Watcher)}, nil
}

// A command that comes while the store fails is done when it works again, once.
func TestARemoteCommandWaitsForTheStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "waits.db")
	f := &outage{Opener: sqlite.File(path)}
	e := enginetest.Open(t, outageInbox{f}, engine.Config{}, oneTask("ours"))
	f.down.Store(true)
	leave(t, path, workflow.Command{Kind: workflow.KindStart, Workflow: "ours", Payload: json.RawMessage(`{"text":"x"}`)})
	f.refusedTimes(t, 3)
	f.down.Store(false)
	_, err := post(t, path, workflow.Command{Kind: workflow.KindStart, Workflow: "ours", Payload: json.RawMessage(`{"text":"y"}`)})
	require.NoError(t, err)
	require.Equal(t, 2, cases(t, e))
}
