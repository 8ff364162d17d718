package verify_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// avoids is [verify.Bypass] by a walk over all states: whether one was found, if that many states decide it.
func (in interpreter) avoids(task, to net.TaskID, without []int, budget int) (found, decided bool) {
	empty := in.conditions(task, without)
	seen := map[string]bool{}
	for todo := []caseState{in.first()}; len(todo) > 0; {
		s := todo[0]
		todo = todo[1:]
		if seen[s.key()] {
			continue
		}
		if seen[s.key()] = true; len(seen) > budget {
			return false, false
		}
		over, _ := in.over(s)
		if over && to < 0 || !over && to >= 0 && in.n.Enabled(to, s.tokens, s.busy).Enabled {
			return true, true
		}
		for _, e := range in.events(s) {
			if e.task != task || e.start || subset(e.into, empty) {
				todo = append(todo, in.do(s, e))
			}
		}
	}
	return false, true
}

// conditions lists some outputs of a task, given by their index.
func (in interpreter) conditions(task net.TaskID, outputs []int) []net.ConditionID {
	var list []net.ConditionID
	for _, i := range outputs {
		list = append(list, in.n.Outputs(task)[i])
	}
	return list
}

// subset reports whether a completion without an output can put its tokens there.
func subset(into, empty []net.ConditionID) bool {
	return !slices.ContainsFunc(into, func(c net.ConditionID) bool { return !slices.Contains(empty, c) })
}

// drawWithout draws which outputs of a task get tokens when it completes without an output: none in half of all cases, and of
// a split that chooses any.
func drawWithout(rng *rand.Rand, n *net.Net, task net.TaskID) []int {
	var without []int
	all := n.Task(task).Split != net.Xor && n.Task(task).Split != net.Or
	if rng.Intn(2) == 0 {
		return nil
	}
	for i := range n.Outputs(task) {
		if all || rng.Intn(2) == 0 {
			without = append(without, i)
		}
	}
	return without
}

func TestBypass(t *testing.T) {
	n := define(t, `
		start s
		end e
		task choose split=xor
		task write
		task hurry
		task read join=xor
		task file split=and
		task print
		task last join=and
		flow s -> choose
		flow choose -> write hurry
		flow write -> read
		flow hurry -> read
		flow read -> file
		flow file -> print last
		flow print -> last
		flow last -> e`)
	run := func(task, to string) string {
		id, ok := n.TaskByName(task)
		require.True(t, ok)
		goal := net.TaskID(-1)
		if to != "" {
			goal, ok = n.TaskByName(to)
			require.True(t, ok)
		}
		w, _ := verify.Bypass(n, id, goal, nil, verify.Options{})
		if w == nil {
			return "none"
		}
		return w.String()
	}
	require.Equal(t, "choose to hurry; hurry; then hurry->read 1", run("write", "read"))
	require.Equal(t, "choose to hurry; hurry; read; file; print; last; then e 1", run("write", ""))
	require.Equal(t, "none", run("read", "file"), "every way leads through it")
	require.Equal(t, "none", run("read", ""))
	require.Equal(t, "none", run("print", "last"), "the join waits for it, though a way leads past it")
	require.Equal(t, "none", run("print", ""))
	require.Equal(t, "choose to write; write; read; then read->file 1", run("file", "file"), "what it gave itself before")
}

// On nets grown at random, sound ones, mutants and wild ones, runs are found where a walk over all states finds one,
// and play.
func TestBypassOfRandomNets(t *testing.T) {
	found, none, passed := 0, 0, 0
	for seed := range int64(rounds() / 4) {
		g := newGrower(seed)
		g.grow(6 + int(seed%10))
		if seed%3 == 1 {
			g.mutate()
		}
		n := g.compile()
		if seed%3 == 2 {
			n = wild(seed)
		}
		if n == nil || n.NumTasks() == 0 {
			continue
		}
		rng := rand.New(rand.NewSource(seed))
		for range 4 {
			task := net.TaskID(rng.Intn(n.NumTasks()))
			to := net.TaskID(rng.Intn(n.NumTasks()+1) - 1)
			if n.Task(task).Kind == net.Routing {
				continue // it has no output, and cannot be held up
			}
			without := drawWithout(rng, n, task)
			want, decided := interpreter{n}.avoids(task, to, without, 3000)
			if !decided {
				continue
			}
			w, _ := verify.Bypass(n, task, to, without, verify.Options{})
			what := fmt.Sprintf("seed %d: task %d, to %d of %s, which may give no output to %v", seed, task, to, describe(n), without)
			require.Equal(t, want, w != nil, what)
			if w == nil {
				none++
				continue
			}
			found++
			if slices.Contains(tasksThatComplete(w), n.TaskName(task)) {
				passed++
				require.NotEmpty(t, without, what)
			}
			end := replay(t, n, w)
			over, _ := end.in.over(end.state)
			require.True(t, over && to < 0 || to >= 0 && n.Enabled(to, end.state.tokens, end.state.busy).Enabled, what)
		}
	}
	require.Greater(t, found, 100)
	require.Greater(t, none, 100)
	require.Greater(t, passed, 30, "runs in which the task completes without an output")
}

// Branches that run side by side have more states than can be looked at. An and-join behind them needs none of those,
// and neither does a way past a task that is in front of them.
func TestBypassBesideManyBranches(t *testing.T) {
	text := `
		start s
		end e
		task choose split=xor
		task write
		task hurry
		task read join=xor split=and
		task last join=and
		flow s -> choose
		flow choose -> write hurry
		flow write -> read
		flow hurry -> read
		flow last -> e`
	for i := range 30 {
		text += fmt.Sprintf("\ntask b%d\nflow read -> b%[1]d\nflow b%[1]d -> last", i)
	}
	n := define(t, text)
	looks := func(task, to string) (*verify.Witness, int) {
		of, _ := n.TaskByName(task)
		goal, _ := n.TaskByName(to)
		asked := 0
		now := func() time.Time { asked++; return time.Time{} }
		w, _ := verify.Bypass(n, of, goal, nil, verify.Options{Time: time.Second, Now: now})
		return w, asked
	}
	w, asked := looks("b7", "last")
	require.Nil(t, w)
	require.Zero(t, asked, "no search has begun")
	w, asked = looks("write", "read")
	require.Equal(t, "choose to hurry; hurry; then hurry->read 1", w.String())
	require.Less(t, asked, 100)
}

func tasksThatComplete(w *verify.Witness) []string {
	var names []string
	for _, s := range w.Steps {
		if s.Moment != verify.Starts {
			names = append(names, s.Task)
		}
	}
	return names
}
