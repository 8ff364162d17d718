package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// order is the input of the cases.
type order struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

var anOrder = []byte(`{"customer":"0197a3c4-0000-7000-8000-000000000000","cents":1250}`)

// claim has three items that are done in the transaction that starts the case, and one for a person.
var claim = build("claim", func(b *builder.Builder[order]) {
	auto := builder.Work[order, order]{Input: builder.CaseInput(b), Auto: true}
	nodes := []builder.Node{b.Start()}
	for _, name := range []string{"register", "triage", "assess"} {
		nodes = append(nodes, builder.Task(b, name, auto))
	}
	b.Path(append(nodes, builder.Task(b, "check", builder.Work[order, order]{Input: builder.CaseInput(b), Queue: "clerks"}), b.End())...)
})

// long goes round without end: each round is two entries of the journal.
var long = build("long", func(b *builder.Builder[order]) {
	work := builder.Task(b, "work", builder.Work[order, order]{Input: builder.CaseInput(b), Join: builder.Xor, Split: builder.Xor, RouteByCaller: true})
	b.Path(b.Start(), work, b.End())
	builder.Flow(b, work, work)
})

// parcel has one item, and an incident where that fails.
var parcel = build("parcel", func(b *builder.Builder[order]) {
	ship := builder.Work[order, order]{Input: builder.CaseInput(b), Queue: "carriers", Policy: workitem.Incident(workitem.Policy{})}
	b.Path(b.Start(), builder.Task(b, "ship", ship), b.End())
})

func build(name string, declare func(*builder.Builder[order])) *builder.Workflow[order] {
	b := builder.New[order](name)
	declare(b)
	return b.MustBuild()
}

// world is what the pages show.
type world struct {
	long, claim, item string
	middle            int64 // of the history of the long case
}

// batch is how many commands share a transaction.
const batch = 100

// fill makes the cases that are missing: of each hundred claims, 90 are completed, 5 have failed and 5 wait for a person. Each parcel is an open incident.
func fill(ctx context.Context, e *engine.Engine, cases, entries, incidents int) (*world, error) {
	began := time.Now()
	w := &world{}
	counts, err := countsOf(ctx, e)
	if err != nil {
		return nil, err
	}
	for n := counts["claim"]; n < cases; n += batch {
		if err := e.Update(ctx, func(tx *engine.Tx) error { return some(ctx, tx) }); err != nil {
			return nil, err
		}
		if n%1000 == 0 {
			fmt.Fprintf(os.Stderr, "\r%d of %d cases, %s ", n, cases, time.Since(began).Round(time.Second))
		}
	}
	for n := counts["parcel"]; n < incidents; n += batch {
		if err := e.Update(ctx, func(tx *engine.Tx) error { return lost(ctx, tx, n) }); err != nil {
			return nil, err
		}
	}
	if counts["long"] == 0 {
		if err := goRound(ctx, e, entries); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(os.Stderr, "\r%-40s\r", "")
	return w, w.find(ctx, e, entries)
}

func countsOf(ctx context.Context, e *engine.Engine) (map[string]int, error) {
	counts := make(map[string]int)
	return counts, e.View(ctx, func(r store.Reader) error {
		all, err := r.Counts(ctx)
		for _, c := range all {
			if c.What == "case" {
				counts[c.Workflow] += int(c.N)
			}
		}
		return err
	})
}

func some(ctx context.Context, tx *engine.Tx) error {
	for i := range batch {
		started, err := tx.Do(ctx, workflow.Start("claim", anOrder, workflow.By("portal")))
		if err != nil {
			return err
		}
		kind := i % 100
		if kind >= 95 {
			continue
		}
		open, err := openItem(ctx, tx, started.Case)
		if err != nil {
			return err
		}
		act := workflow.Act(open.ID, workitem.Complete, anOrder)
		if kind >= 90 {
			act = workflow.Fail(open.ID, &workitem.Failure{Code: fmt.Sprint("cause-", kind), Message: "429 too many requests"})
		}
		if _, err := tx.Do(ctx, workflow.Act(open.ID, workitem.Start, nil, workflow.By("ann"))); err != nil {
			return err
		}
		if _, err := tx.Do(ctx, act); err != nil {
			return err
		}
	}
	return nil
}

// lost makes cases with an incident each: nine of ten have the same failure code, and every message is another.
func lost(ctx context.Context, tx *engine.Tx, from int) error {
	for i := range batch {
		started, err := tx.Do(ctx, workflow.Start("parcel", anOrder, workflow.By("portal"), workflow.BusinessKey(fmt.Sprint("P-", from+i)),
			workflow.Label("lane", fmt.Sprint((from+i)%1000))))
		if err != nil {
			return err
		}
		open, err := openItem(ctx, tx, started.Case)
		if err != nil {
			return err
		}
		f := &workitem.Failure{Code: "no-carrier", Message: fmt.Sprintf("no carrier takes parcel %d", from+i)}
		if i%10 == 0 {
			f.Code = fmt.Sprint("carrier-", i/10)
		}
		if _, err := tx.Do(ctx, workflow.Act(open.ID, workitem.Start, nil, workflow.By("ann"))); err != nil {
			return err
		}
		if _, err := tx.Do(ctx, workflow.Fail(open.ID, f)); err != nil {
			return err
		}
	}
	return nil
}

// goRound makes one case of many entries: each transaction is one.
func goRound(ctx context.Context, e *engine.Engine, entries int) error {
	started, err := e.Do(ctx, workflow.Start("long", anOrder, workflow.By("portal")))
	for n := 1; n < entries && err == nil; n++ {
		err = e.Update(ctx, func(tx *engine.Tx) error {
			open, err := openItem(ctx, tx, started.Case)
			if err != nil {
				return err
			}
			c := workflow.Act(open.ID, workitem.Start, nil, workflow.By("ann"))
			if open.State == workitem.Started {
				c = workflow.Act(open.ID, workitem.Complete, anOrder, workflow.Route("work"))
			}
			_, err = tx.Do(ctx, c)
			return err
		})
		if n%1000 == 0 {
			fmt.Fprintf(os.Stderr, "\r%d of %d entries ", n, entries)
		}
	}
	return err
}

// openItem finds the item of a case that is to be done.
func openItem(ctx context.Context, tx *engine.Tx, id workitem.CaseID) (*workitem.Item, error) {
	c, err := tx.Case(ctx, id)
	if err != nil {
		return nil, err
	}
	for it := range c.Items.All() {
		if !it.State.Final() {
			return it, nil
		}
	}
	return nil, fmt.Errorf("case %s has no open item", id)
}

// find looks for what the addresses name.
func (w *world) find(ctx context.Context, e *engine.Engine, entries int) error {
	return e.View(ctx, func(r store.Reader) error {
		for name, id := range map[string]*string{"long": &w.long, "claim": &w.claim} {
			found, err := r.Cases(ctx, store.CaseFilter{Workflow: name, States: []state.CaseState{state.CaseStarted}, Page: store.Page{Limit: 1}})
			if err != nil {
				return err
			}
			*id = found[0].ID.String()
			newest, err := r.Journal(ctx, store.JournalFilter{Root: found[0].ID, Desc: true, Limit: 1})
			if err != nil {
				return err
			}
			if name == "long" {
				w.middle = newest[0].Seq - int64(entries/2)
			}
		}
		found, err := r.Items(ctx, store.ItemFilter{States: []workitem.State{workitem.Initialized}, Page: store.Page{Limit: 1}})
		if err == nil {
			w.item = found[0].ID.String()
		}
		return err
	})
}
