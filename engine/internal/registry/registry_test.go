package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// one builds a workflow of one task.
func one(t *testing.T, name, task string, opts ...builder.Option) *builder.Workflow[int] {
	t.Helper()
	b := builder.New[int](name, opts...)
	b.Path(b.Start(), b.Routing(task, builder.Routing{}), b.End())
	w, err := b.Build()
	require.NoError(t, err)
	return w
}

func open(t *testing.T, workflows ...*workflow.Definition) (*registry.Registry, error) {
	t.Helper()
	return registry.New(slog.New(slog.DiscardHandler), workflows)
}

// A workflow is found by its fingerprint, and by its name, of which the last version given serves new cases. The child of a
// composite task is there with its parent.
func TestDefinitionsAreFound(t *testing.T) {
	old := one(t, "claim", "pay", builder.Version("1")).Definition
	fresh := one(t, "claim", "pay", builder.Version("2")).Definition
	child := one(t, "child", "work")
	b := builder.New[int]("parent")
	b.Path(b.Start(), builder.Composite(b, "sub", child, builder.Cases[int]{Input: builder.CaseInput(b)}), b.End())
	parent, err := b.Build()
	require.NoError(t, err)

	r, err := open(t, old, fresh, parent.Definition)
	require.NoError(t, err)
	require.Same(t, fresh, r.Named("claim"))
	require.Same(t, old, r.Definition(old.Fingerprint))
	require.Same(t, child.Definition, r.Named("child"))
	require.Equal(t, []string{"child", "claim", "parent"}, r.Names())
	next := one(t, "child", "work", builder.Version("2")).Definition
	last, err := open(t, parent.Definition, next, child.Definition)
	require.NoError(t, err)
	require.Same(t, child.Definition, last.Named("child"), "the last one given, though its parent has brought it along before")
	require.Nil(t, r.Named("none"))
	require.Nil(t, r.Definition("none"))

	at := time.Unix(1, 0)
	stored := r.Stored(at)
	require.Len(t, stored, 4)
	for i, d := range stored {
		require.Equal(t, at, d.Created)
		require.JSONEq(t, string(r.Definition(d.Fingerprint).Document), string(d.Document))
		if i > 0 {
			require.Less(t, stored[i-1].Fingerprint, d.Fingerprint)
		}
	}
}

// Two workflows under one name and version are refused, with the lines of both; so is one that was not built.
func TestTwoOfOneNameAreRefused(t *testing.T) {
	a := one(t, "claim", "pay").Definition
	_, err := open(t, a, one(t, "claim", "reject").Definition)
	require.ErrorContains(t, err, "there are two workflows claim (registry_test.go:")
	_, err = open(t, a, one(t, "claim", "pay").Definition)
	require.ErrorContains(t, err, "there are two workflows claim", "built alike, their code may still differ")
	_, err = open(t, a, a)
	require.NoError(t, err, "it is one workflow, given twice")
	_, err = open(t, a, nil)
	require.ErrorContains(t, err, "workflow 2 of 2 is nil: look at the error of its Build")
}

// What verification warns of is logged with the place and the advice.
func TestWarningsAreLogged(t *testing.T) {
	b := builder.New[int]("quote")
	fork, join := b.Routing("fork", builder.Routing{Split: builder.And}), b.Routing("join", builder.Routing{Join: builder.Or})
	left, right := b.Routing("left", builder.Routing{}), b.Routing("right", builder.Routing{})
	b.Path(b.Start(), fork, left, join, b.End())
	b.Path(fork, right, join)
	w, err := b.Build()
	require.NoError(t, err)
	var log bytes.Buffer
	_, err = registry.New(slog.New(slog.NewTextHandler(&log, nil)), []*workflow.Definition{w.Definition})
	require.NoError(t, err)
	require.Contains(t, log.String(), "code=or-join-is-and")
	require.Contains(t, log.String(), "at=registry_test.go:")
}

// database holds a definition, and the running cases of it.
type database struct {
	store.Reader
	stored  *store.Definition
	running []*state.Case
	err     error
}

func (d *database) View(_ context.Context, f func(store.Reader) error) error { return f(d) }

func (d *database) Definitions(context.Context) ([]*store.Definition, error) {
	return []*store.Definition{d.stored}, d.err
}

func (d *database) Cases(_ context.Context, f store.CaseFilter) ([]*state.Case, error) {
	if f.Fingerprint != d.stored.Fingerprint {
		return nil, nil
	}
	return d.running, nil
}

// A definition that running cases depend on must not change under its version: the error says where it did.
func TestDriftIsReported(t *testing.T) {
	d := one(t, "claim", "pay", builder.Version("3")).Definition
	r, err := open(t, d)
	require.NoError(t, err)

	var document map[string]any
	require.NoError(t, json.Unmarshal(d.Document, &document))
	document["extra"] = map[string]any{"limit": 5}
	changed, err := json.Marshal(document)
	require.NoError(t, err)
	db := &database{
		stored:  &store.Definition{Name: "claim", Version: "3", Fingerprint: "before", Document: changed},
		running: []*state.Case{{ID: workitem.CaseID{1}}},
	}
	err = r.CheckDrift(t.Context(), db)
	require.ErrorIs(t, err, registry.ErrDrift)
	require.ErrorContains(t, err, "workflow claim version 3 is not what case "+db.running[0].ID.String()+" runs on: "+
		`extra was {"limit":5} and is absent; give the changed workflow a new version`)

	db.stored.Document = json.RawMessage(`no JSON`)
	require.ErrorContains(t, r.CheckDrift(t.Context(), db), "runs on: the definition;")

	db.running = nil
	require.NoError(t, r.CheckDrift(t.Context(), db), "no case depends on it")
	db.running = []*state.Case{{ID: workitem.CaseID{1}}}
	db.stored.Version = "2"
	require.NoError(t, r.CheckDrift(t.Context(), db), "another version is another workflow")
	db.stored.Version, db.stored.Fingerprint = "3", d.Fingerprint
	require.NoError(t, r.CheckDrift(t.Context(), db), "it is the same")

	db.err = store.ErrUnavailable
	require.ErrorIs(t, r.CheckDrift(t.Context(), db), store.ErrUnavailable)
}

// A long list of differences is cut, and each names its element.
func TestDifferencesAreNamed(t *testing.T) {
	d := one(t, "claim", "pay").Definition
	r, err := open(t, d)
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(d.Document, &document))
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		document[key] = key
	}
	changed, err := json.Marshal(document)
	require.NoError(t, err)
	err = r.CheckDrift(t.Context(), &database{
		stored:  &store.Definition{Name: "claim", Fingerprint: "before", Document: changed},
		running: []*state.Case{{ID: workitem.CaseID{1}}},
	})
	require.ErrorContains(t, err, `a was "a" and is absent; b was "b" and is absent`)
	require.ErrorContains(t, err, "; and 2 more;")
}

// What was added to lists and removed from them is named, as is what has changed in an element of both.
func TestDifferencesOfListsAreNamed(t *testing.T) {
	before := one(t, "claim", "pay").Definition
	b := builder.New[int]("claim")
	b.Path(b.Start(), b.Routing("check", builder.Routing{}), builder.Task(b, "pay", builder.Work[any, any]{Queue: "tellers"}), b.End())
	after, err := b.Build()
	require.NoError(t, err)
	r, err := open(t, after.Definition)
	require.NoError(t, err)
	err = r.CheckDrift(t.Context(), &database{
		stored:  &store.Definition{Name: "claim", Fingerprint: "before", Document: before.Document},
		running: []*state.Case{{ID: workitem.CaseID{1}}},
	})
	require.ErrorContains(t, err, "runs on: flows[start->pay] was removed; flows[start->check] was added; flows[check->pay] was added; "+
		"tasks[check] was added; tasks[pay].code was absent and is ")
	require.ErrorContains(t, err, `; tasks[pay].queue was absent and is "tellers"; give`)

	var document map[string]any
	require.NoError(t, json.Unmarshal(after.Document, &document))
	slices.Reverse(document["flows"].([]any))
	changed, err := json.Marshal(document)
	require.NoError(t, err)
	err = r.CheckDrift(t.Context(), &database{
		stored:  &store.Definition{Name: "claim", Fingerprint: "before", Document: changed},
		running: []*state.Case{{ID: workitem.CaseID{1}}},
	})
	require.ErrorContains(t, err, "runs on: flows are in another order; give")
}
