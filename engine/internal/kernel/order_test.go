package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A child case that a callback adds runs as far as it can before the call returns. The joins of its parent wait until the command
// is through: j, which the start of k has decided, is enabled after both children.
func TestAChildCaseDoesNotLookAtTheJoinsOfItsParent(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	d := define(t, "w", "i>s s>p s>d s>x x>b p>j b>j d>k d>l l>x k>e j>e",
		net.Task{Name: "s", Split: net.Or}, net.Task{Name: "j", Join: net.Or}, net.Task{Name: "b"}, net.Task{Name: "l"},
		net.Task{Name: "k", Kind: net.Composite, Of: []string{"child"}})
	with(d, "k", workflow.Task{Of: map[string]*workflow.Definition{"child": child}, Hooks: activities.TaskHooks{
		OnStarted: func(ctx context.Context, a *activities.Activation) error {
			for range 2 {
				if _, err := a.NewCase(ctx, activities.NewCase{}); err != nil {
					return err
				}
			}
			return nil
		}}})
	w := newWorld(t, d, child)
	w.must("start")
	w.must("begin s.1.1")
	w.must("complete s.1.1 > p d")
	require.Equal(t, "k*d l- l.1.1=canceled k.1.2/c+1 k.1.2/c.1.1=initialized k.1.3/c+1 k.1.3/c.1.1=initialized "+
		"k.1.1/c*i k.1.1/c.1.1=started j+1 j.1.1=initialized", w.must("begin k.1.1/c.1.1"))
}

// The bound of a command has room for the child cases that its definitions ask for.
func TestChildCasesAddRoom(t *testing.T) {
	child := define(t, "child", "i>c c>d d>e", tasks("c d")...)
	d := define(t, "w", "i>k k>e", net.Task{Name: "k", Kind: net.Composite, Of: []string{"child"}})
	with(d, "k", workflow.Task{Of: map[string]*workflow.Definition{"child": child},
		Cases: func(context.Context, *activities.Activation) ([]activities.NewCase, error) {
			return make([]activities.NewCase, 3), nil
		}})
	w := newWorld(t, d, child)
	id := w.host.NewCaseID(w.now)
	w.tree.Root = id
	_, err := w.command(func(m *kernel.Machine) error {
		defer func() { require.Equal(t, 3*2*100, m.Room()) }()
		return m.Start(&state.Case{ID: id}, d, nil, w.now, nil)
	})
	require.NoError(t, err)
}

// A route is for the task whose item is acted on. Another one that completes in the same command, in this case or in another one,
// goes where it goes by itself.
func TestARouteIsForOneTask(t *testing.T) {
	child := define(t, "child", "i>c c>p c>q p>d q>d d>e", tasks("c d")...)
	d := define(t, "w", "i>s s>r s>y s>z r>a a>p a>q p>g q>g g>e y>b b>u b>v u>f v>f f>e z>k k>e",
		net.Task{Name: "a", Split: net.Xor}, net.Task{Name: "s"}, net.Task{Name: "b"}, net.Task{Name: "f"}, net.Task{Name: "g", Join: net.Xor},
		net.Task{Name: "k", Kind: net.Composite, Of: []string{"child"}})
	var others []*workitem.Item
	keep := func(_ context.Context, it *activities.Item) error { others = append(others, it.Item); return nil }
	with(child, "c", workflow.Task{ItemHooks: activities.ItemHooks{OnStarted: keep}})
	with(d, "b", workflow.Task{ItemHooks: activities.ItemHooks{OnStarted: keep}})
	with(d, "k", workflow.Task{Of: map[string]*workflow.Definition{"child": child}})
	with(d, "a", workflow.Task{Inputs: items(2), Hooks: activities.TaskHooks{
		OnWorkItemStateChanged: func(_ context.Context, c *activities.Change) error {
			if c.To != workitem.Completed {
				return nil
			}
			for _, it := range others {
				if err := c.Ask(it, workitem.Complete, nil); err != nil {
					return err
				}
			}
			return nil
		}}})
	w := newWorld(t, d, child)
	w.must("start")
	w.must("begin s.1.1")
	w.must("complete s.1.1")
	w.must("begin b.1.1")
	w.must("begin k.1.1/c.1.1")
	w.must("begin a.1.1")
	did := w.must("complete a.1.1 > q")
	require.Contains(t, did, "b>u,v")
	require.Contains(t, did, "k.1.1/c>p,q")
}

// What an activation is withdrawn or canceled from outside, its own callback answers.
func TestAnActivationThatEndsFromOutside(t *testing.T) {
	d := define(t, "w", "i>a i>b a>e b>e", tasks("a b")...)
	var log []string
	note := func(text string) func(context.Context, *activities.Activation) error {
		return func(context.Context, *activities.Activation) error { log = append(log, text); return nil }
	}
	with(d, "a", workflow.Task{Hooks: activities.TaskHooks{OnDisabled: note("a disabled"), OnCanceled: note("a canceled"), OnFailed: note("a failed")}})
	w := newWorld(t, d)
	w.must("start")
	w.must("begin b.1.1")
	require.Equal(t, []string{"a disabled"}, log)
	w, log = newWorld(t, d), nil
	w.must("start")
	w.must("begin a.1.1")
	w.must("cancel")
	require.Equal(t, []string{"a canceled"}, log)
	w, log = newWorld(t, d), nil
	w.must("start")
	w.must("begin a.1.1")
	w.must("fail a.1.1")
	require.Equal(t, []string{"a failed"}, log)
}

// Nets of more than 64 tasks or conditions work as smaller ones do.
func TestLargeNets(t *testing.T) {
	for _, n := range []int{63, 64, 65, 130} {
		var names, flows []string
		for i := range n {
			names = append(names, fmt.Sprintf("t%d", i))
			flows = append(flows, fmt.Sprintf("t%d>t%d", i, i+1))
		}
		flows[n-1] = fmt.Sprintf("t%d>e", n-1)
		d := define(t, "w", "i>t0 "+strings.Join(flows, " "), tasks(strings.Join(names, " "))...)
		for i := range d.Tasks {
			d.Tasks[i].Auto = true
		}
		w := newWorld(t, d)
		require.True(t, strings.HasSuffix(w.must("start"), "case=completed"), n)
	}
}

// All timers of a task are set.
func TestTheTimersOfATask(t *testing.T) {
	act := func(context.Context, *activities.Activation) error { return nil }
	w := timed(t, workflow.Task{}, activities.Timer{Name: "x", After: time.Hour, Task: act}, activities.Timer{Name: "y", After: time.Hour, Task: act})
	require.Equal(t, []string{"x", "y"}, labels(w.live()))
}

// A child case that a step waits for ends with the deadline of the step while the job runs, and with the job of a call.
func TestTheChildCaseOfAStepThatIsOver(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	w := working(t, function(t, "w"), child)
	s := called("call", "child")
	s.Due = w.now.Add(time.Minute)
	w.write(s)
	w.now = w.now.Add(time.Minute)
	did, err := w.command(func(m *kernel.Machine) error { return m.Steps().EndDue(w.work.Job, w.work.Fence) })
	require.NoError(t, err)
	require.Equal(t, "call=failed child.1/c- child.1/c.1.1=canceled child.1/case=canceled", did)

	w = calling(t, retry.Policy{})
	w.host.defs = append(w.host.defs, child)
	w.write(called("call", "child"))
	require.Equal(t, "call:f=done call=canceled child.1/c- child.1/c.1.1=canceled child.1/case=canceled", w.mustSettle())
}

// Steps that a store cannot read are no steps that never were: the command fails.
func TestStepsThatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a",
		workflow.Task{Run: run, Hooks: activities.TaskHooks{OnWorkItemStateChanged: activities.Resume(retry.Constant(3, 0))}})
	w := working(t, d)
	w.host.broken = broken
	_, err := w.settle(w.work, workitem.Failf("busy", "later"))
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "steps of a.1.1")
	w.host.broken = nil
	_, err = w.settle(w.work, workitem.Failf("busy", "later"))
	require.NoError(t, err)
	w.host.broken = broken
	_, err = w.command(func(m *kernel.Machine) error { _, err := m.Leases().Claim(w.live()[0].ID, "worker", w.now); return err })
	require.ErrorIs(t, err, broken)
}
