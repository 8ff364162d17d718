package engine_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// A repair of a case that has ended waits for the program with the definition too: only the repair itself, and not the
// case, says which definition it needs.
func TestARepairForAnotherProgramStays(t *testing.T) {
	for name, in := range map[string]func(*testing.T) (store.Opener, func(json.RawMessage) error){
		"sqlite": func(t *testing.T) (store.Opener, func(json.RawMessage) error) {
			path := filepath.Join(t.TempDir(), "repair.db")
			return sqlite.File(path), func(c json.RawMessage) error { return sqlite.Leave(t.Context(), path, c) }
		},
		"postgres": func(t *testing.T) (store.Opener, func(json.RawMessage) error) {
			dsn := prepared.Database(t)
			return postgres.Open(dsn), func(c json.RawMessage) error { return postgres.Leave(t.Context(), dsn, c) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, leave := in(t)
			var b supplier
			letters := builder.MustLetters("letters")
			charge := builder.MustFunc("charge", b.run, builder.DeadLetter(letters))
			pay := builder.MustFunc("pay", b.run)
			e := enginetest.Open(t, in, engine.Config{}, charge, pay)
			charged, err := charge.Run(t.Context(), e, 7)
			require.NoError(t, err)
			paid, err := pay.Run(t.Context(), e, 8)
			require.NoError(t, err)
			e.Advance(time.Minute)
			found, _ := lettersOf(t, e, store.CaseFilter{})
			require.Len(t, found, 1)
			require.Equal(t, state.CaseFailed, caseOf(t, e, charged.ID).State)
			b.fixed.Store(true)

			e.Crash(letters)
			for _, c := range []workflow.Command{workflow.Redrive(found[0].ID), workflow.Resume(paid.ID, nil)} {
				c.WaitForOwner = true
				left, err := json.Marshal(c)
				require.NoError(t, err)
				require.NoError(t, leave(left))
			}
			e.Crash(letters) // whose first poll ends before Drain returns
			e.Drain()
			require.Equal(t, state.CaseFailed, caseOf(t, e, paid.ID).State, "this program lacks its definition")
			require.Equal(t, state.CaseStarted, caseOf(t, e, found[0].ID).State)

			e.Crash(charge, pay)
			e.Drain()
			require.Equal(t, state.CaseCompleted, caseOf(t, e, paid.ID).State)
			letter := caseOf(t, e, found[0].ID)
			require.Equal(t, state.CaseCanceled, letter.State)
			require.Equal(t, "redriven", letter.Failure.Code)
			done := 0
			for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{States: []state.CaseState{state.CaseCompleted}}) {
				require.NoError(t, err)
				require.Contains(t, []string{"pay", "charge"}, c.Workflow)
				done++
			}
			require.Equal(t, 2, done, "the repaired case, and the one that was started again")
		})
	}
}
