package step

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/workitem"
)

// Map calls fn for every input, each in a branch of its own (see [Go]), with at most max branches at a time (0 is
// no limit), and returns the results in the order of the inputs. Waiting branches count. As soon as one fails, Map
// returns its error, starts no further ones, and cancels the others, as All does.
//
//	receipts, err := step.Map(ctx, orders, 10, func(ctx context.Context, i int, o Order) (Receipt, error) {
//		return step.Do(ctx, "charge "+o.ID, func(ctx context.Context) (Receipt, error) { return charge(ctx, o) })
//	})
//
// i is the index of the input, which can be used in names of steps.
func Map[In, Out any](
	ctx context.Context, inputs []In, max int, fn func(ctx context.Context, i int, in In) (Out, error),
) ([]Out, error) {
	results := make([]Out, len(inputs))
	var one func(context.Context, int) error
	if fn != nil {
		one = func(ctx context.Context, i int) (err error) {
			results[i], err = fn(ctx, i, inputs[i])
			return err
		}
	}
	if err := fan(ctx, here(), len(inputs), max, one); err != nil {
		return nil, err
	}
	return results, nil
}

func fan(ctx context.Context, at uintptr, n, most int, fn func(context.Context, int) error) error {
	s, err := currentRun(ctx, title{word: "step.Map"})
	if err != nil {
		return err
	}
	if fn == nil {
		return s.run.nothingToCall(title{word: "step.Map"}, at)
	}
	if most < 0 {
		return s.run.misuse("step.Map, at %s: %d at once is negative; use 0 for no limit", place(at), most)
	}
	if most == 0 {
		most = n
	}
	name := s.group("map")
	c, err := begin(ctx, at, rule{word: "map"}.ask(name, n), nil, nil)
	if err != nil {
		return err
	}
	defer c.end()
	f := &fanOut{call: c, n: n, most: most, fn: fn, group: c.branch.groups}
	i, err := f.run()
	if err != nil {
		return c.wrap(err)
	}
	return ruleAll.result(i, f.started)
}

// fanOut is a Map under way.
type fanOut struct {
	call    *call
	n, most int
	fn      func(context.Context, int) error
	group   int
	started []*branch
}

// run returns the index of the branch that failed first, -1 if none did.
func (f *fanOut) run() (int, error) {
	c, r := f.call, f.call.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := c.final(); s != nil {
		return f.failedBefore(s)
	}
	j := &join{by: c.branch}
	free := func() bool { return j.left < f.most && len(f.started) < f.n }
	j.ready = func(j *join) bool { return j.failed > 0 || free() || j.left == 0 }
	for j.failed == 0 && (j.left > 0 || free()) {
		if free() {
			j.add(f.start(len(f.started)))
		}
		if err := j.wait(c.ctx); err != nil {
			return -1, err
		}
	}
	if j.failed == 0 {
		for _, b := range f.started {
			c.learnFrom(b)
		}
		return -1, nil
	}
	return f.failed(j, free)
}

// failed returns the index of the branch that failed first. Those that an earlier run had started come to what they
// did before, so that nothing of theirs is left over.
func (f *fanOut) failed(j *join, free func() bool) (int, error) {
	c, r := f.call, f.call.run
	for {
		if err := c.waitSettled(); err != nil {
			return -1, err
		}
		if r.owed == 0 || !free() {
			break
		}
		j.add(f.start(len(f.started)))
	}
	i := first(ruleAll, f.started)
	c.learnFrom(f.started[i])
	return i, c.choose(i, f.started) // the next run starts that one only
}

// start starts the branch of one input, which is called by its index whenever it is started. The lock is held.
func (f *fanOut) start(i int) *branch {
	c := f.call
	b := c.run.start(c.ctx, c.branch, fmt.Sprintf("map%d:%d", f.group, i), func(ctx context.Context) error {
		return f.fn(ctx, i)
	})
	f.started = append(f.started, b)
	return b
}

// failedBefore follows the record of an earlier run. The lock is held.
func (f *fanOut) failedBefore(s *workitem.Step) (int, error) {
	c, r := f.call, f.call.run
	ch, err := choiceOf(s, f.n)
	if err != nil {
		return -1, r.keepMistake(err)
	}
	r.pending = append(r.pending, r.abandon(ch.verdict(s.Name), ch.Dropped)...)
	r.followed(c.entry)
	b := f.start(ch.Branch)
	if err := c.follow(b); err != nil {
		return -1, err
	}
	if b.err == nil {
		return -1, errorOf(s) // only code that changed comes here
	}
	return 0, nil
}
