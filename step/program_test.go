package step_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

// op is one operation of a random program. What it has come to is text, so that runs and the model can be compared.
type op struct {
	kind   string // do, sleep, await, call, now, slow, all, any, race, map
	name   string
	d      time.Duration // how long it takes: a sleep, the wait between attempts, the life of a child
	at     time.Duration // when its event is sent, from the beginning
	limit  time.Duration // its timeout; 0 for none
	fails  int           // so many attempts fail
	tries  int           // so many are made
	ends   workitem.StepState
	caught bool // its error is caught, and the program continues
	most   int  // at once, of a map
	subs   [][]op
}

// generator makes programs. Every duration is drawn from so many that two are hardly ever the same, so that it is known
// what comes first.
type generator struct {
	t     *rapid.T
	n     int
	drawn uint64
	chaos bool // with what takes time while the job runs
}

func (g *generator) duration() time.Duration {
	g.drawn++
	fine := rand.New(rand.NewPCG(g.drawn, 0)).Uint64N(1 << 30) // rapid likes small numbers, and draws them again and again
	return time.Duration(rapid.Uint64Range(0, 1<<12).Draw(g.t, "d")<<30 | fine)
}

func (g *generator) sequence(depth, most int) []op {
	ops := make([]op, rapid.IntRange(1, most).Draw(g.t, "ops"))
	for i := range ops {
		ops[i] = g.op(depth)
	}
	return ops
}

func (g *generator) op(depth int) op {
	kinds := []string{"do", "do", "sleep", "await", "call", "now"}
	if depth > 0 {
		kinds = append(kinds, "all", "any", "race", "map")
	}
	if g.chaos {
		kinds = append(kinds, "slow")
	}
	g.n++
	o := op{
		kind: rapid.SampledFrom(kinds).Draw(g.t, "kind"), d: g.duration(), at: g.duration(),
		caught: rapid.Bool().Draw(g.t, "caught"), tries: rapid.IntRange(1, 3).Draw(g.t, "tries"),
		ends: workitem.StepDone,
	}
	o.name = fmt.Sprint(o.kind, g.n)
	if rapid.IntRange(0, 2).Draw(g.t, "bad") == 0 {
		o.fails = rapid.IntRange(1, 3).Draw(g.t, "fails")
		o.ends = rapid.SampledFrom([]workitem.StepState{workitem.StepFailed, workitem.StepCanceled}).Draw(g.t, "ends")
	}
	if rapid.Bool().Draw(g.t, "timed") {
		o.limit = g.duration()
	}
	if slices.Contains([]string{"all", "any", "race", "map"}, o.kind) {
		o.most = rapid.IntRange(1, 3).Draw(g.t, "most")
		o.subs = make([][]op, rapid.IntRange(2, 4).Draw(g.t, "branches"))
		for i := range o.subs {
			g.n++
			first := op{kind: "sleep", name: fmt.Sprint("first", g.n), d: g.duration()}
			o.subs[i] = append([]op{first}, g.sequence(depth-1, 3)...)
		}
	}
	return o
}

// coded is an error of a program, by its code.
func codeOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, step.ErrCanceled):
		return "canceled"
	case errors.Is(err, step.ErrTimeout):
		return "timeout"
	}
	return workitem.FailureOf(err).Code
}

// player runs a program as a job, and watches that every run sees the same.
type player struct {
	job     *steptest.Job
	begin   time.Time
	world   *outside
	crashes int

	mu     sync.Mutex
	seen   map[string]string // what an operation came to
	called map[string]int    // how often its function was called
	wrong  []string
	trace  string // of the last run that came to its end
}

func newPlayer() *player {
	p := &player{job: steptest.New(), seen: make(map[string]string), called: make(map[string]int)}
	p.begin = p.job.Now()
	return p
}

func (p *player) see(o op, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was, ok := p.seen[o.name]; ok && was != text {
		p.wrong = append(p.wrong, fmt.Sprintf("%s was %q, and is now %q", o.name, was, text))
	}
	p.seen[o.name] = text
}

func (p *player) call(o op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.called[o.name]++
}

func (p *player) main(ops []op) func(context.Context) error {
	return func(ctx context.Context) error {
		trace, err := p.play(ctx, ops)
		if err == nil {
			p.trace = trace
		}
		return err
	}
}

func (p *player) play(ctx context.Context, ops []op) (string, error) {
	var b strings.Builder
	for _, o := range ops {
		text, err := p.one(ctx, o)
		if errors.Is(err, step.ErrSuspended) || errors.Is(err, step.ErrLost) || ctx.Err() != nil {
			return "", err
		}
		if err != nil {
			text = "!" + codeOf(err)
		}
		if text != "!canceled" || o.kind == "call" { // before a choice is recorded, a crash may have it made otherwise
			p.see(o, text)
		}
		if err != nil && !o.caught {
			return "", err
		}
		fmt.Fprintf(&b, "(%s %s)", o.name, text)
	}
	return b.String(), nil
}

func (p *player) one(ctx context.Context, o op) (string, error) {
	switch o.kind {
	case "do":
		return p.do(ctx, o)
	case "slow":
		return step.Do(ctx, o.name, func(context.Context) (string, error) {
			p.call(o)
			p.pass(o.d)
			return "slow", nil
		})
	case "sleep":
		return "slept", step.Sleep(ctx, o.name, o.d)
	case "await":
		var opts []step.Option
		if o.limit > 0 {
			opts = append(opts, step.Timeout(o.limit))
		}
		return step.Await[string](ctx, o.name, opts...)
	case "call":
		var opts []step.Option
		if o.limit > 0 {
			opts = append(opts, step.Timeout(o.limit))
		}
		return step.Call[string](ctx, o.name, "child", o.d, opts...)
	case "now":
		now, err := step.Now(ctx, o.name)
		return now.Sub(p.begin).String(), err
	case "map":
		texts, err := step.Map(ctx, o.subs, o.most, func(ctx context.Context, _ int, sub []op) (string, error) {
			return p.play(ctx, sub)
		})
		return strings.Join(texts, "|"), err
	}
	return p.branches(ctx, o)
}

func (p *player) do(ctx context.Context, o op) (string, error) {
	return step.Do(ctx, o.name, func(context.Context) (string, error) {
		p.call(o)
		made := 0
		if s := p.job.Step(o.name); s != nil && s.State == workitem.StepWaiting {
			made = s.Attempt
		}
		if made < o.fails {
			return "", workitem.Failf("flaky", "attempt %d", made+1)
		}
		return "done", nil
	}, step.Retry(retry.Constant(o.tries, o.d)))
}

func (p *player) branches(ctx context.Context, o op) (string, error) {
	bs := make([]*step.Branch[string], len(o.subs))
	all := make([]step.AnyBranch, len(o.subs))
	for i, sub := range o.subs {
		bs[i] = step.Go(ctx, func(ctx context.Context) (string, error) { return p.play(ctx, sub) })
		all[i] = bs[i]
	}
	var i int
	var err error
	switch o.kind {
	case "all":
		err = step.All(ctx, all...)
	case "any":
		i, err = step.Any(ctx, o.name, all...)
	case "race":
		i, err = step.Race(ctx, o.name, all...)
	}
	if err != nil {
		return "", err
	}
	if o.kind != "all" {
		text, err := bs[i].Wait(ctx)
		return fmt.Sprint(i, ":", text), err
	}
	texts := make([]string, len(bs))
	for i, b := range bs {
		if texts[i], err = b.Wait(ctx); err != nil {
			return "", err
		}
	}
	return strings.Join(texts, "|"), nil
}

// outside is what happens around a job: events, and the ends of its children.
type outside struct {
	mu     sync.Mutex // functions that take their time run beside each other
	events []op
	lives  map[string]op
}

func outsideOf(ops []op) *outside {
	w := &outside{lives: make(map[string]op)}
	var walk func([]op)
	walk = func(ops []op) {
		for _, o := range ops {
			switch o.kind {
			case "await":
				w.events = append(w.events, o)
			case "call":
				w.lives[o.name] = o
			}
			for _, sub := range o.subs {
				walk(sub)
			}
		}
	}
	walk(ops)
	slices.SortFunc(w.events, func(a, b op) int { return int(a.at - b.at) })
	return w
}

// next returns when something happens next outside, and what.
func (w *outside) next(p *player) (at time.Time, do func(), ok bool) {
	if len(w.events) > 0 {
		e := w.events[0]
		at, ok = p.begin.Add(e.at), true
		do = func() {
			w.events = w.events[1:]
			_ = p.job.Send(e.name, "sent") // no one may be there any more
		}
	}
	for _, s := range p.job.Steps() {
		if s.Kind != workitem.StepCase || s.State != workitem.StepWaiting {
			continue
		}
		o := w.lives[s.Name]
		if end := s.Created.Add(o.d); !ok || end.Before(at) {
			at, ok = end, true
			do = func() { endChild(p.job, o) }
		}
	}
	return at, do, ok
}

func endChild(job *steptest.Job, o op) {
	switch o.ends {
	case workitem.StepDone:
		_ = job.Complete(o.name, "shipped")
	case workitem.StepFailed:
		_ = job.Fail(o.name, workitem.Failf("sank", "it sank"))
	default:
		_ = job.Cancel(o.name)
	}
}
