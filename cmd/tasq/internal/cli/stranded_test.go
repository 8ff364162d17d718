package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// hard is a workflow whose or-join J cannot be decided within its budget once S is done: forty choices, each of which empties something that
// another one fills, come before a step that needs both of two conditions and never gets both.
func hard() string {
	var b strings.Builder
	b.WriteString("workflow hard\n start i\n end o\n condition z\n condition p\n condition q\n task S split=and\n task X split=xor\n task W join=and\n task J join=or\n")
	b.WriteString(" flow i -> S\n flow z -> X\n flow X -> p, q\n flow p -> W\n flow q -> W\n flow W -> J\n flow J -> o\n")
	const width = 40
	to := []string{"J", "z"}
	for i := range width {
		a, next := fmt.Sprint("a", i), fmt.Sprint("a", (i+1)%width)
		fmt.Fprintf(&b, " condition %s\n condition b%d\n task T%d join=xor split=xor\n cancel T%d: %s\n", a, i, i, i, next)
		fmt.Fprintf(&b, " flow %s -> T%d\n flow b%d -> T%d, W\n flow T%d -> b%d, %s\n", a, i, i, i, i, i, next)
		to = append(to, a)
	}
	return b.String() + " flow S -> " + strings.Join(to, ", ") + "\n"
}

// anHourAgo is the clock of a program that has closed its database since.
type anHourAgo struct{ retry.Clock }

func (anHourAgo) Now() time.Time { return retry.SystemClock.Now().Add(-time.Hour) }

// disable cancels the open items of a case by hand, and leaves its tokens where they are.
func disable(t *testing.T, o store.Opener, id workitem.CaseID) {
	t.Helper()
	s, err := o.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
		tree, err := tx.Load(t.Context(), id)
		if err != nil {
			return err
		}
		c, at := tree.Case(id), time.Now()
		var changes []state.Change
		for it := range c.Items.All() {
			if it.State.Final() {
				continue
			}
			task, _ := c.Net.TaskByName(it.Task)
			changes = append(changes, &state.ItemMoved{Case: id, Item: it.ID, Action: workitem.Cancel, To: workitem.Canceled, At: at},
				&state.TaskMoved{Case: id, Task: task, To: state.TaskDisabled, Generation: c.Tasks[task].Generation})
		}
		tree.Begin()
		for _, change := range changes {
			if err := tree.Apply(change); err != nil {
				return err
			}
		}
		return tx.Append(t.Context(), &store.Entry{Root: id, At: at, Command: "by hand", Changes: changes}, tree)
	}))
	require.NoError(t, s.Close())
}

// The doctor finds from outside, on a file and on a server, whether a program is open or none: work of a definition that no process has, and
// an or-join that is not decided once nothing else can act. What a person can continue with is no case for it. The usual and the long form have
// the file, as each look at the or-join uses its whole budget.
func TestTheDoctorFindsStrandedCasesWithoutAProgram(t *testing.T) {
	t.Parallel()
	for name, open := range bothStores {
		if name != "file" && !testsize.Nightly() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, db := open(t)
			parsed, err := scenario.ParseNotation(net.Pos{}, hard())
			require.NoError(t, err)
			defs, _, err := scenario.Compile(parsed, nil)
			require.NoError(t, err)
			posted := builder.MustFunc("posted", func(_ context.Context, n int) (int, error) { return n, nil })
			e, err := engine.Config{Workers: -1, Clock: anHourAgo{retry.SystemClock}}.Open(t.Context(), o, defs[0], posted)
			require.NoError(t, err)
			run, err := posted.Run(t.Context(), e, 1)
			require.NoError(t, err)
			started, err := e.Do(t.Context(), workflow.Start("hard", []byte(`{}`)))
			require.NoError(t, err)
			for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: started.Case}) {
				require.NoError(t, err)
				for _, act := range []workitem.Action{workitem.Start, workitem.Complete} {
					_, err = e.Do(t.Context(), workflow.Act(it.ID, act, []byte(`{}`)))
					require.NoError(t, err)
				}
			}
			require.NoError(t, e.Close())
			says := func(want int, args ...string) string {
				code, out, errs := call(t.Context(), append(args, "--db", db)...)
				require.Equal(t, want, code, out+errs)
				return out
			}
			lacks := func(cause, out string) {
				require.Regexp(t, "case "+run.ID.String()+" of posted \\("+cause+"\\): .*\n  to repair it: open an engine with workflow posted", out)
			}
			out := says(cli.ExitNo, "doctor", "--live")
			lacks("no-workers", out)
			require.NotContains(t, out, started.Case.String(), "users can go on")
			require.Regexp(t, "undecided .*J", says(cli.ExitOK, "incidents"))
			require.Contains(t, says(cli.ExitOK, "incidents", "--code", "undecided", "-o", "csv"), "undecided: or-join J waits: its search ran out of its budget")
			byHand := "its search ran out of its budget; it is decided anew when the case goes on, or by a person who moves a token, as with tasq case move " +
				started.Case.String() + " FROM 'W->J'"
			require.Contains(t, says(cli.ExitOK, "why", started.Case.String()), byHand)
			require.Contains(t, says(cli.ExitOK, "why", started.Case.String(), "J"), byHand)
			_, _, errs := call(t.Context(), "incident", "retry", "--kind", "undecided", "--db", db)
			require.Contains(t, errs, "tasq why CASE names the command")
			require.Contains(t, says(cli.ExitOK, "case", "move", started.Case.String(), "z", "W->J", "--dry-run"), "J")

			disable(t, o, started.Case)
			out = says(cli.ExitNo, "doctor", "--live")
			require.Contains(t, out, "case "+started.Case.String()+" of hard (incident): whether or-join J has to wait was not decided")
			require.Contains(t, out, "to repair it: tasq case move "+started.Case.String())
			says(cli.ExitOK, "case", "move", started.Case.String(), "z", "X", "--by", "ann")
			require.NotContains(t, says(cli.ExitNo, "doctor", "--live"), started.Case.String())

			e, err = engine.Config{Workers: -1}.Open(t.Context(), o, defs[0])
			require.NoError(t, err)
			lacks("not-loaded", says(cli.ExitNo, "doctor", "--live"))
			require.NoError(t, e.Close())
			says(cli.ExitOK, "doctor", "--quiet")
		})
	}
}
