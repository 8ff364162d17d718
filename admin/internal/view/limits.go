package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// limits is the page of the queues and of the limits of functions.
func (s *Site) limits(r *Request) (*Page, error) {
	queues, err := s.queueTable(r, source.MaxCounted, true)
	if err != nil {
		return nil, err
	}
	limits, err := s.limitTable(r)
	if err != nil {
		return nil, err
	}
	_, live := s.Backend.(source.Inspector) // another process would be asked at each change
	return &Page{Title: "Limits", Nav: "Limits", Live: live, Parts: []Part{{ID: "head", Template: "list", Data: head{Title: "Limits",
		About: "Queues, and the concurrency limits, rate limits and circuit breakers of functions."}},
		{ID: "queues", Template: "tablepart", Data: queues}, {ID: "limits", Template: "tablepart", Data: limits}}}, nil
}

// queueTable lists the queues that have live items or jobs, are paused or have workers that were set, as they stand by most items of each, and
// as many jobs of each state; with acts, what the user may do to them.
func (s *Site) queueTable(r *Request, most int, acts bool) (*Table, error) {
	queues, whole, err := source.Queues(r, r.R, most)
	if err != nil {
		return nil, err
	}
	t := &Table{ID: "queues", Title: "Queues", Head: []string{"queue", "state", "workers", "", "items waiting", "items started", "jobs pending", "jobs running", "jobs waiting",
		"oldest waiting", ""}, Empty: &Empty{Text: "No queue has work or settings. To set how many jobs of one run at a time:", Command: "tasq queue workers QUEUE 4"}}
	if !whole {
		t.Note = fmt.Sprintf("Of each queue at most %s live items are counted, and as many jobs of each state.", thousands(int64(most)))
	}
	for _, q := range queues {
		word, kind := "open", "pause-queue"
		if q.Paused {
			word, kind = "paused", "resume-queue"
		}
		jobs := func(st state.JobState, n int64) Cell {
			return countLink(n, s.Link("/jobs", "state", st.String())+"&queue="+escapeQuery(q.Queue))
		}
		items := func(st workitem.State, n int64) Cell {
			return countLink(n, s.Link("/items", "state", st.String())+"&queue="+escapeQuery(q.Queue))
		}
		do := text("")
		if a := actions[kind]; acts && r.User.Allowed(string(a.kind), q.Queue) {
			do = buttonCell(a.do+"…", s.actLink(kind, "queue", q.Queue))
		}
		set, workers := text(""), text("as defined")
		if q.Workers > 0 {
			workers = number(int64(q.Workers))
		}
		if acts && r.User.Allowed(string(workflow.KindSetWorkers), q.Queue) {
			set = buttonCell("Set…", s.Link("/act", "kind", "set-workers", "queue", q.Queue, "workers", fmt.Sprint(max(1, q.Workers))))
		}
		t.row("", text(queueName(q.Queue)), stateOf(word), workers, set, items(workitem.Initialized, q.Items), items(workitem.Started, q.Started),
			jobs(state.JobPending, q.Pending), jobs(state.JobRunning, q.Running), jobs(state.JobWaiting, q.Waiting), at(q.Oldest), do)
		for i, k := range r.Mask.PausedKeys(q.Queue, q.PausedKeys) {
			s.pausedKeyRow(t, r, q.Queue, k.Key, acts && k.Key == q.PausedKeys[i].Key)
		}
	}
	return t, nil
}

// pausedKeyRow shows a paused key of a queue. The form is offered for one that is shown as it is.
func (s *Site) pausedKeyRow(t *Table, r *Request, queue, key string, acts bool) {
	do := text("")
	if acts && r.User.Allowed(string(workflow.KindUnpause), queue) {
		do = buttonCell("Resume…", s.Link("/act", "kind", "resume-queue", "queue", queue, "queueKey", key))
	}
	empty := text("")
	t.row("", text(queueName(queue)+", key "+key), stateOf("paused"), empty, empty, empty, empty, empty, empty, empty, empty, do)
}

// askLimits is how long the page waits for the program that runs the functions.
const askLimits = time.Second

// limitsKey is where a request for the page has what the program has answered.
type limitsKey struct{}

type limitsAnswer struct {
	all    []workflow.LimitInfo
	queues []workflow.QueueInfo // if they were asked for, and this process has no engine, which knows them itself
	err    error
}

// withLimits asks the program that runs the functions for their limits, before the page looks at the database: the answer takes the
// engine's writer, which a view may hold up. The answer of another process is used for some seconds.
func (s *Site) withLimits(h http.HandlerFunc, queues bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askLimits)
		defer cancel()
		ask := s.Backend.Do
		if b, ok := s.Backend.(source.Recaller); ok {
			ask = b.Recall
		}
		result, err := ask(ctx, workflow.Limits())
		known := limitsAnswer{all: result.Limits}
		if _, own := s.Backend.(source.Inspector); queues && err == nil && !own {
			result, err = ask(ctx, workflow.Queues())
			known.queues = result.Queues
		}
		if known.err = err; ctx.Err() != nil {
			known.err = errors.Join(err, store.ErrUnavailable)
		}
		h(w, r.WithContext(context.WithValue(r.Context(), limitsKey{}, known)))
	}
}

// limitTable lists the limits, with what is in use, as the program that runs the functions knows it.
func (s *Site) limitTable(r *Request) (*Table, error) {
	known, _ := r.Context.Value(limitsKey{}).(limitsAnswer)
	t := &Table{ID: "limits", Title: "Limits of functions", Head: []string{"limit", "kind", "number", "defined", "in use", "", "waiting", "next free", ""},
		Empty: &Empty{Text: "No workflow of this database has limits."}}
	if err := known.err; err != nil {
		if !errors.Is(err, store.ErrReadOnly) && !errors.Is(err, store.ErrUnavailable) {
			return nil, err
		}
		t.Note = "Only the program that owns the database knows the current usage, and it does not answer: start it, and tasq serve with --act."
		t.Empty.Text = "No limit is in use. " + t.Note
	}
	all, err := why.ReadLimits(r, r.R, known.all)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(l workflow.LimitInfo) bool { return l.Engines > 0 }); i >= 0 {
		t.Note = fmt.Sprintf("What waits, and what is in use of limits that are not shared, is that of one of %d programs.", all[i].Engines)
	}
	for _, l := range all {
		do := text("")
		if r.User.Allowed(string(workflow.KindSetLimit), l.Limit.Name) {
			do = buttonCell("Set…", s.Link("/act", "kind", "set-limit", "limit", l.Limit.Name, "number", fmt.Sprint(l.Limit.N)))
		}
		if known.err == nil && !l.Loaded && r.User.Allowed(string(workflow.KindForgetLimit), l.Limit.Name) {
			do = buttonCell("Forget…", s.Link("/act", "kind", "forget-limit", "limit", l.Limit.Name))
		}
		waiting, next := number(int64(l.Waiting)), text(l.NextFree())
		if known.err != nil {
			waiting, next = muted("not known"), muted("not known")
		}
		t.row("", text(l.Limit.Name), text(l.Kind()), number(l.Limit.N), number(l.Defined), number(l.Used), meter(l), waiting, next, do)
		shown := r.Mask.Limits([]workflow.LimitInfo{l})[0]
		for i, k := range shown.Set {
			s.keyRow(t, r, &l, k, k.Key == l.Set[i].Key)
		}
		for _, h := range shown.Holders {
			s.holderRow(t, &l, h)
		}
		if l.HeldOutside > 0 || l.WaitingOutside > 0 {
			t.row("", text(l.Limit.Name), text("outside of jobs"), text(""), text(""), number(l.HeldOutside), text(""), number(int64(l.WaitingOutside)), text(""), text(""))
		}
		if l.MoreHolders > 0 {
			t.row("", text(l.Limit.Name), text(fmt.Sprintf("and %d more holds", l.MoreHolders)), text(""), text(""), text(""), text(""), text(""), text(""), text(""))
		}
	}
	return t, nil
}

// keyRow shows a key of a limit that has a number of its own. The form is offered for one that is shown as it is.
func (s *Site) keyRow(t *Table, r *Request, l *workflow.LimitInfo, k workflow.KeyLimit, whole bool) {
	do, state := text(""), ""
	if whole && r.User.Allowed(string(workflow.KindSetLimit), l.Limit.Name) {
		do = buttonCell("Set…", s.Link("/act", "kind", "set-limit", "limit", l.Limit.Name, "number", fmt.Sprint(k.N), "limitKey", k.Key))
	}
	if k.N == 0 {
		state = "paused"
	}
	t.row("", text(l.Limit.Name), text("key "+k.Key), number(k.N), number(l.Limit.N), text(""), text(""), text(""), text(state), do)
}

// holderRow shows a case that holds slots of a limit over several tasks.
func (s *Site) holderRow(t *Table, l *workflow.LimitInfo, h workflow.LimitHolder) {
	what := "held since " + h.Task
	if h.Key != "" {
		what += ", key " + h.Key
	}
	id := h.Case.String()
	t.row("", text(l.Limit.Name), text(what), text(""), text(""), number(h.N), link("case "+short(id), s.Link("/cases/"+id)), text(""), text(""), text(""))
}

// meter shows how much of a limit is in use.
func meter(l workflow.LimitInfo) Cell {
	if l.Limit.N <= 0 || l.Keys > 1 || l.Limit.Algorithm == limit.CircuitBreaker {
		return text("")
	}
	return Cell{Kind: "meter", Text: fmt.Sprint(min(100, 100*l.Used/l.Limit.N)), Title: fmt.Sprintf("%d of %d in use", l.Used, l.Limit.N)}
}
