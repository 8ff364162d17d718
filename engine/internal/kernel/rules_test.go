package kernel_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// scene is a definition, commands on one case of it, and what each does. A command that is refused does nothing, and its
// error contains the words after "error: ".
type scene struct {
	rule  int // of the semantics
	name  string
	def   func(*testing.T) *workflow.Definition
	steps []string // a command, then what it does
}

func TestRules(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, s.def(t))
			for i := 0; i < len(s.steps); i += 2 {
				got, err := w.do(s.steps[i])
				if says, refused := strings.CutPrefix(s.steps[i+1], "error: "); refused {
					require.ErrorContains(t, err, says, "rule %d: %s", s.rule, s.steps[i])
					continue
				}
				require.NoError(t, err, "rule %d: %s", s.rule, s.steps[i])
				require.Equal(t, s.steps[i+1], got, "rule %d: %s", s.rule, s.steps[i])
			}
		})
	}
}

func chain(flows, names string) func(*testing.T) *workflow.Definition {
	return func(t *testing.T) *workflow.Definition { t.Helper(); return define(t, "w", flows, tasks(names)...) }
}

func netOf(flows string, list ...net.Task) func(*testing.T) *workflow.Definition {
	return func(t *testing.T) *workflow.Definition { t.Helper(); return define(t, "w", flows, list...) }
}

func items(n int) func(context.Context, *activities.Activation) ([]json.RawMessage, error) {
	return func(context.Context, *activities.Activation) ([]json.RawMessage, error) {
		return make([]json.RawMessage, n), nil
	}
}

func spec(of func(*testing.T) *workflow.Definition, task string, s workflow.Task) func(*testing.T) *workflow.Definition {
	return func(t *testing.T) *workflow.Definition { t.Helper(); return with(of(t), task, s) }
}

var scenes = []scene{
	{1, "a token enables, and consumes nothing", chain("i>a a>b b>e", "a b"), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! a>a->b b+1 b.1.1=initialized",
		"begin b.1.1", "b*a->b b.1.1=started",
		"complete b.1.1", "b.1.1=completed b! b>e case=completed",
	}},
	{1, "outputs are tried in flow order, depth first", netOf("i>a a>r a>b r>c b>e c>e",
		net.Task{Name: "a"}, net.Task{Name: "b"}, net.Task{Name: "r", Kind: net.Routing}, net.Task{Name: "c"}), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! a>a->r,a->b r+1 r*a->r r! r>r->c c+1 c.1.1=initialized b+1 b.1.1=initialized",
	}},
	{1, "every enabling is a new generation", netOf("i>a p>a a>p a>e", net.Task{Name: "a", Join: net.Xor, Split: net.Xor}), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1 > p", "a.1.1=completed a! a>p a+2 a.2.1=initialized",
		"begin a.2.1", "a*p a.2.1=started",
		"complete a.2.1 > e", "a.2.1=completed a! a>e case=completed",
	}},
	{1, "an automatic item starts and completes by itself", spec(chain("i>a a>b b>e", "a b"), "a", workflow.Task{Auto: true, Inputs: items(2)}), []string{
		"start", "a+1 a.1.1=initialized a.1.2=initialized a*i a.1.1=started a.1.1=completed a.1.2=started a.1.2=completed a! a>a->b b+1 b.1.1=initialized",
	}},
	{1, "a start that withdraws a task wakes the or-join that waited for it", netOf("i>s s>p s>d s>x x>b p>j b>j d>m d>k k>x m>e j>e",
		net.Task{Name: "s", Split: net.Or}, net.Task{Name: "j", Join: net.Or}, net.Task{Name: "b", Join: net.Xor}, net.Task{Name: "k"}, net.Task{Name: "m"}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1 > p d", "s.1.1=completed s! s>p,d m+1 m.1.1=initialized k+1 k.1.1=initialized",
		"begin m.1.1", "m*d k- k.1.1=canceled m.1.1=started j+1 j.1.1=initialized",
	}},
	{2, "the loser of a choice is withdrawn", chain("i>a i>b a>e b>e", "a b"), []string{
		"start", "a+1 a.1.1=initialized b+1 b.1.1=initialized",
		"begin b.1.1", "b*i a- a.1.1=canceled b.1.1=started",
	}},
	{2, "a task whose join still holds stays", netOf("i>s s>p s>q p>a p>b q>b a>e b>e",
		net.Task{Name: "s"}, net.Task{Name: "a"}, net.Task{Name: "b", Join: net.Xor}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q a+1 a.1.1=initialized b+1 b.1.1=initialized",
		"begin a.1.1", "a*p a.1.1=started",
	}},
	{3, "and takes one from each", netOf("i>s s>p s>q p>a q>a a>e", tasks("s a")...), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q a+1 a.1.1=initialized",
		"begin a.1.1", "a*p,q a.1.1=started",
	}},
	{3, "xor takes one, the first in flow order", netOf("i>s s>p s>q q>a p>a a>e", net.Task{Name: "s"}, net.Task{Name: "a", Join: net.Xor}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q a+1 a.1.1=initialized",
		"begin a.1.1", "a*q a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! a>e a+2 a.2.1=initialized a- a.2.1=canceled case=completed(p)",
	}},
	{3, "or takes one from each that is marked", netOf("i>s s>p s>q s>r p>a q>a r>a a>e",
		net.Task{Name: "s", Split: net.Or}, net.Task{Name: "a", Join: net.Or}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1 > p r", "s.1.1=completed s! s>p,r a+1 a.1.1=initialized",
		"begin a.1.1", "a*p,r a.1.1=started",
	}},
	{4, "a task completes once", chain("i>a a>b b>e", "a b"), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! a>a->b b+1 b.1.1=initialized",
		"complete a.1.1", "error: it is completed, and the action needs it to be started",
	}},
	{5, "a route that names no flow is refused", netOf("i>a a>b a>c b>e c>e",
		net.Task{Name: "a", Split: net.Xor}, net.Task{Name: "b"}, net.Task{Name: "c"}), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1 > x", "error: bad route",
		"complete a.1.1 > b c", "error: bad route",
		"complete a.1.1 > c", "a.1.1=completed a! a>a->c c+1 c.1.1=initialized",
	}},
	{5, "a route function that names nothing is refused", spec(netOf("i>a a>b a>c b>e c>e",
		net.Task{Name: "a", Split: net.Or}, net.Task{Name: "b"}, net.Task{Name: "c"}), "a",
		workflow.Task{Route: func(context.Context, *activities.Activation) ([]string, error) { return nil, nil }}), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1", "error: bad route",
		"complete a.1.1 > c b", "a.1.1=completed a! a>a->b,a->c b+1 b.1.1=initialized c+1 c.1.1=initialized",
	}},
	{5, "without a route an xor-split takes its first flow, and an or-split each", netOf("i>a a>p a>q p>b q>b b>c b>d c>e d>e",
		net.Task{Name: "a", Split: net.Xor}, net.Task{Name: "b", Join: net.Xor, Split: net.Or}, net.Task{Name: "c"}, net.Task{Name: "d"}), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! a>p b+1 b.1.1=initialized",
		"begin b.1.1", "b*p b.1.1=started",
		"complete b.1.1", "b.1.1=completed b! b>b->c,b->d c+1 c.1.1=initialized d+1 d.1.1=initialized",
	}},
	{5, "an and-split takes no route", netOf("i>a a>b a>c b>e c>e", tasks("a b c")...), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1 > b", "error: task a of workflow w has an and-split, which takes every flow (b, c)",
	}},
	{6, "an or-join waits while an input can get a token", netOf("i>s s>a s>b a>p b>q p>j q>j j>e",
		net.Task{Name: "s", Split: net.Or}, net.Task{Name: "a"}, net.Task{Name: "b"}, net.Task{Name: "j", Join: net.Or}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1 > a b", "s.1.1=completed s! s>s->a,s->b a+1 a.1.1=initialized b+1 b.1.1=initialized",
		"begin a.1.1", "a*s->a a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! a>p",
		"begin b.1.1", "b*s->b b.1.1=started",
		"complete b.1.1", "b.1.1=completed b! b>q j+1 j.1.1=initialized",
	}},
	{7, "a region is emptied before its owner produces", netOf("i>s s>p s>q s>r p>a q>b r>c c>z a>e b>e z>d d>e",
		net.Task{Name: "s"}, net.Task{Name: "a", Cancels: []string{"b", "c", "z"}}, net.Task{Name: "b"}, net.Task{Name: "c"}, net.Task{Name: "d"}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q,r a+1 a.1.1=initialized b+1 b.1.1=initialized c+1 c.1.1=initialized",
		"begin c.1.1", "c*r c.1.1=started",
		"complete c.1.1", "c.1.1=completed c! c>z d+1 d.1.1=initialized",
		"begin b.1.1", "b*q b.1.1=started",
		"begin a.1.1", "a*p a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! bx b.1.1=canceled ~z d- d.1.1=canceled a>e case=completed",
	}},
	{7, "an enabled member loses its private tokens alone", netOf("i>s s>p s>q s>r p>a q>b r>b r>c a>m b>m c>m m>e",
		net.Task{Name: "s"}, net.Task{Name: "a", Cancels: []string{"b"}}, net.Task{Name: "b"}, net.Task{Name: "c"}, net.Task{Name: "m", Join: net.Xor}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q,r a+1 a.1.1=initialized b+1 b.1.1=initialized c+1 c.1.1=initialized",
		"begin a.1.1", "a*p a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! bx b.1.1=canceled ~q a>a->m m+1 m.1.1=initialized",
	}},
	{7, "a region of one task and one condition", netOf("i>s s>p s>q s>r p>a q>b r>c a>e b>e c>e",
		net.Task{Name: "s"}, net.Task{Name: "a", Cancels: []string{"b", "r"}}, net.Task{Name: "b"}, net.Task{Name: "c"}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q,r a+1 a.1.1=initialized b+1 b.1.1=initialized c+1 c.1.1=initialized",
		"begin b.1.1", "b*q b.1.1=started",
		"begin a.1.1", "a*p a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! bx b.1.1=canceled ~r c- c.1.1=canceled a>e case=completed",
	}},
	{7, "a region that cancels what an or-join waited for wakes it", netOf("i>s s>p s>q s>r p>a q>b r>x x>y b>z y>j z>j a>m j>n m>o n>o o>e",
		net.Task{Name: "s"}, net.Task{Name: "a", Cancels: []string{"b"}}, net.Task{Name: "b"}, net.Task{Name: "x"},
		net.Task{Name: "j", Join: net.Or}, net.Task{Name: "o"}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q,r a+1 a.1.1=initialized b+1 b.1.1=initialized x+1 x.1.1=initialized",
		"begin b.1.1", "b*q b.1.1=started",
		"begin x.1.1", "x*r x.1.1=started",
		"complete x.1.1", "x.1.1=completed x! x>y",
		"begin a.1.1", "a*p a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! bx b.1.1=canceled a>m j+1 j.1.1=initialized",
	}},
	{8, "the end cancels and withdraws the rest, and notes what is left", netOf("i>s s>p s>q s>r p>a q>b r>c a>e b>e c>e",
		net.Task{Name: "s"}, net.Task{Name: "a"}, net.Task{Name: "b"}, net.Task{Name: "c"}), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q,r a+1 a.1.1=initialized b+1 b.1.1=initialized c+1 c.1.1=initialized",
		"begin b.1.1", "b*q b.1.1=started",
		"begin a.1.1", "a*p a.1.1=started",
		"complete a.1.1", "a.1.1=completed a! a>e bx b.1.1=canceled c- c.1.1=canceled case=completed(r)",
	}},
	{9, "a loop that nothing leaves is rolled back", netOf("i>a a>p p>r r>q q>r2 r2>p r2>e", net.Task{Name: "a"},
		net.Task{Name: "r", Kind: net.Routing}, net.Task{Name: "r2", Kind: net.Routing, Split: net.Xor}), []string{
		"start", "a+1 a.1.1=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1", "error: the command does not terminate",
	}},
	{11, "what was never started is not completed, and what has ended does not change", spec(chain("i>a a>e", "a"), "a",
		workflow.Task{Inputs: items(2)}), []string{
		"start", "a+1 a.1.1=initialized a.1.2=initialized",
		"complete a.1.1", "error: it is initialized, and the action needs it to be started",
		"fail a.1.1", "error: it is initialized, and the action needs it to be started",
		"begin a.1.1", "a*i a.1.1=started",
		"begin a.1.1", "error: it is started, and the action needs it to be initialized",
		"reset a.1.1", "a.1.1=initialized",
		"begin a.1.1", "a.1.1=started",
		"complete a.1.1", "a.1.1=completed",
		"begin a.1.1", "error: it is completed, and the action needs it to be initialized",
		"reset a.1.1", "error: it is completed, and the action needs it to be started",
		"drop a.1.1", "error: it is completed, and the action needs it to be initialized or started",
	}},
	{12, "a verdict starts what was not started", chain("i>a a>b b>e", "a b"), []string{
		"start", "a+1 a.1.1=initialized",
		"drop a.1.1", "a.1.1=canceled a*i a! a>a->b b+1 b.1.1=initialized",
	}},
	{13, "by default a task completes with its last item", spec(chain("i>a a>e", "a"), "a", workflow.Task{Inputs: items(2)}), []string{
		"start", "a+1 a.1.1=initialized a.1.2=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"complete a.1.1", "a.1.1=completed",
		"begin a.1.2", "a.1.2=started",
		"complete a.1.2", "a.1.2=completed a! a>e case=completed",
	}},
	{13, "by default a failed item fails the task", spec(chain("i>a a>e", "a"), "a", workflow.Task{Inputs: items(2)}), []string{
		"start", "a+1 a.1.1=initialized a.1.2=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"begin a.1.2", "a.1.2=started",
		"fail a.1.1", "a.1.1=failed af a.1.2=canceled case=failed",
	}},
	{13, "a quorum completes with so many, and cancels the rest", spec(chain("i>a a>e", "a"), "a",
		workflow.Task{Inputs: items(3), Policy: workitem.Quorum(2)}), []string{
		"start", "a+1 a.1.1=initialized a.1.2=initialized a.1.3=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"begin a.1.2", "a.1.2=started",
		"complete a.1.1", "a.1.1=completed",
		"complete a.1.2", "a.1.2=completed a! a.1.3=canceled a>e case=completed",
	}},
	{13, "a quorum that cannot be reached fails", spec(chain("i>a a>e", "a"), "a",
		workflow.Task{Inputs: items(3), Policy: workitem.Quorum(2)}), []string{
		"start", "a+1 a.1.1=initialized a.1.2=initialized a.1.3=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"begin a.1.2", "a.1.2=started",
		"fail a.1.1", "a.1.1=failed",
		"fail a.1.2", "a.1.2=failed af a.1.3=canceled case=failed",
	}},
	{13, "a threshold fails with one failure more", spec(chain("i>a a>e", "a"), "a",
		workflow.Task{Inputs: items(3), Policy: workitem.Threshold(1)}), []string{
		"start", "a+1 a.1.1=initialized a.1.2=initialized a.1.3=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"begin a.1.2", "a.1.2=started",
		"fail a.1.1", "a.1.1=failed",
		"fail a.1.2", "a.1.2=failed af a.1.3=canceled case=failed",
	}},
	{13, "a task that goes on when items fail completes", spec(chain("i>a a>e", "a"), "a",
		workflow.Task{Inputs: items(2), Policy: workitem.ContinueOnFailure()}), []string{
		"start", "a+1 a.1.1=initialized a.1.2=initialized",
		"begin a.1.1", "a*i a.1.1=started",
		"begin a.1.2", "a.1.2=started",
		"fail a.1.1", "a.1.1=failed",
		"complete a.1.2", "a.1.2=completed a! a>e case=completed",
	}},
	{16, "a task that fails fails its case, with all that is live", netOf("i>s s>p s>q p>a q>b a>e b>e", tasks("s a b")...), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q a+1 a.1.1=initialized b+1 b.1.1=initialized",
		"begin b.1.1", "b*q b.1.1=started",
		"begin a.1.1", "a*p a.1.1=started",
		"fail a.1.1", "a.1.1=failed af bx b.1.1=canceled case=failed",
	}},
	{16, "a case that is canceled cancels all that is live", netOf("i>s s>p s>q p>a q>b a>e b>e", tasks("s a b")...), []string{
		"start", "s+1 s.1.1=initialized",
		"begin s.1.1", "s*i s.1.1=started",
		"complete s.1.1", "s.1.1=completed s! s>p,q a+1 a.1.1=initialized b+1 b.1.1=initialized",
		"begin b.1.1", "b*q b.1.1=started",
		"cancel", "a- a.1.1=canceled bx b.1.1=canceled case=canceled",
		"cancel", "error: has ended",
	}},
}
