package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	words "github.com/tasq-dev/tasq/internal/describe"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The defaults of [RunIncident].
const (
	DefaultIncidentDB = "tasq-incident.db"
	purchases         = 40 // the number of cases that a new demo starts
	codeDown          = "supplier-down"
)

// IncidentOptions configure the demo of incidents.
type IncidentOptions struct {
	Setting
	// Ask leaves the decisions to the user of the pages, which Serve serves. Otherwise the demo decides.
	Ask bool
}

// purchase is the input of a case, price the output of its first task, and parcel that of the supplier.
type purchase struct {
	ID     string `json:"id"    validate:"required"`
	Pieces int    `json:"pieces" validate:"gt=0"`
}

type price struct {
	ID    string `json:"id"    validate:"required"`
	Cents int64  `json:"cents" validate:"gt=0"`
}

type parcel struct {
	ID   string `json:"id"   validate:"required"`
	From string `json:"from" validate:"required"`
}

// supplier sells the parts.
type supplier interface {
	price(context.Context, purchase) (price, error)
	buy(context.Context, price) (parcel, error)
}

// purchasing is the workflow: it asks the price of a part, buys it, and stores it. If a part cannot be bought, a person
// decides.
type purchasing struct {
	*builder.Workflow[purchase]
	buy *builder.TaskRef[price, parcel]
}

func newPurchasing(s supplier, wait time.Duration) (p *purchasing, err error) {
	b, p := builder.New[purchase]("purchase", builder.Describe("parts are bought; a person decides if the supplier fails"),
		builder.BusinessKey(func(p purchase) string { return p.ID })), new(purchasing)
	ask := builder.Task(b, "price", builder.Work[purchase, price]{Input: builder.CaseInput(b), Run: s.price})
	p.buy = builder.Task(b, "buy", builder.Work[price, parcel]{Input: builder.Output(ask), Run: s.buy,
		Retry: retry.Exponential(2, wait), Policy: workitem.Incident(workitem.Default())})
	keep := builder.Task(b, "store", builder.Work[parcel, parcel]{Input: builder.Output(p.buy),
		Run: func(_ context.Context, p parcel) (parcel, error) { return p, nil }})
	b.Path(b.Start(), ask, p.buy, keep, b.End())
	p.Workflow, err = b.Build()
	return p, err
}

// fakeSupplier is a supplier that can be down.
type fakeSupplier struct{ down atomic.Bool }

func (w *fakeSupplier) price(_ context.Context, p purchase) (price, error) {
	return price{p.ID, int64(p.Pieces) * 250}, nil
}

func (w *fakeSupplier) buy(_ context.Context, p price) (parcel, error) {
	if w.down.Load() {
		return parcel{}, workitem.Failf(codeDown, "the supplier does not answer")
	}
	return parcel{p.ID, "the supplier"}, nil
}

// incidents is one run of the demo.
type incidents struct {
	IncidentOptions
	out      io.Writer
	supplier fakeSupplier
	recipe   *purchasing
	engine   *engine.Engine
	bulk     *bulk.Bulk
}

// RunIncident runs the demo of incidents on a database. A supplier is down, so all purchases fail with the same error,
// and wait for a decision. One is skipped with an output, one is moved back by a step, and one bulk action retries the
// others once the supplier is up again. With Ask, the user decides in the pages. The demo continues the purchases of an earlier run. When the context ends, it
// stops at once and returns the error of the context; the cases stay in the file.
func RunIncident(ctx context.Context, out io.Writer, o IncidentOptions) (err error) {
	o.DB = cmp.Or(o.DB, DefaultIncidentDB)
	d := &incidents{IncidentOptions: o, out: out, bulk: bulk.New(engine.Code)}
	d.supplier.down.Store(true)
	if d.recipe, err = newPurchasing(&d.supplier, o.waits(time.Second)); err != nil {
		return err
	}
	db := database.Of(o.DB)
	fmt.Fprintf(out, "database: %s (%s)\n", db.Name(), made(ctx, db))
	if err := Claim(ctx, db.Opener()); err != nil {
		return fmt.Errorf("database %s: %w", db.Name(), err)
	}
	if d.engine, err = configOf(o.Err).Open(ctx, db.Opener(), d.recipe, d.bulk); err != nil {
		return fmt.Errorf("database %s: %w", db.Name(), err)
	}
	defer func() { err = errors.Join(err, d.engine.Close()) }()
	wait, stop, err := d.pages(ctx, out, d.engine, d.bulk)
	if err != nil {
		return err
	}
	defer stop()
	if err = d.run(ctx); ctx.Err() != nil {
		fmt.Fprintf(out, "\nStopped, and nothing is lost. To go on: tasq demo incident %s-d %s\n", map[bool]string{true: "-serve "}[d.Ask], printable.Word(db.Name()))
		return ctx.Err()
	}
	if err == nil {
		wait()
	}
	return err
}

// run prints the parts of the demo one after the other.
func (d *incidents) run(ctx context.Context) error {
	all, err := d.cases(ctx)
	if err != nil {
		return err
	}
	open, err := d.incidents(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%s, and the supplier is down.\n", printable.Plural(len(all), "purchase"))
	if len(open) > 0 {
		fmt.Fprintf(d.out, "%s alike: %s. Each waits for a decision; no case has failed.\n", printable.Plural(len(open), "incident"), open[0].Failure)
		d.say("tasq incidents", "--code", codeDown)
	}
	decide := d.decide
	if d.Ask && d.Serve {
		decide = d.leave
	}
	shown, err := decide(ctx, open)
	if err != nil {
		return err
	}
	if err := d.ends(ctx, all); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nAll purchases have ended:\n")
	if err := d.counts(ctx); err != nil {
		return err
	}
	for _, id := range shown {
		if err := d.history(ctx, id); err != nil {
			return err
		}
	}
	fmt.Fprintln(d.out, "\nTo look around:")
	d.say("tasq audit")
	d.say("tasq cases", "--counts")
	return nil
}

// say prints a command line for the database of the demo.
func (d *incidents) say(command string, args ...string) {
	fmt.Fprintf(d.out, "  %s -d %s", command, printable.Word(database.Of(d.DB).Name()))
	for _, a := range args {
		fmt.Fprint(d.out, " ", a)
	}
	fmt.Fprintln(d.out)
}

// cases returns the running purchases, or new ones, after they have ended or become incidents.
func (d *incidents) cases(ctx context.Context) (all []workitem.CaseID, err error) {
	f := store.CaseFilter{Workflow: d.recipe.Name, States: []state.CaseState{state.CaseStarted}}
	for c, err := range store.AllCases(ctx, d.engine, f) {
		if err != nil {
			return nil, err
		}
		all = append(all, c.ID)
	}
	for n := 1; len(all) < purchases && n <= purchases; n++ {
		id, err := d.recipe.Start(ctx, d.engine, purchase{ID: fmt.Sprintf("P-%02d", n), Pieces: n}, workflow.By("demo"))
		if err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	for _, id := range all {
		if _, err := d.engine.WaitRun(ctx, id); err != nil { // it has ended, or has become an incident
			return nil, err
		}
	}
	return all, nil
}

func (d *incidents) incidents(ctx context.Context) (open []*store.Incident, err error) {
	for i, err := range store.Incidents(ctx, d.engine, store.IncidentFilter{Workflow: d.recipe.Name, Code: new(codeDown)}) {
		if err != nil {
			return nil, err
		}
		open = append(open, i)
	}
	return open, nil
}

// decide executes the decisions of persons about incidents. It returns the cases whose history is printed.
func (d *incidents) decide(ctx context.Context, open []*store.Incident) (shown []workitem.CaseID, err error) {
	if len(open) < 3 {
		d.supplier.down.Store(false)
		return nil, d.retry(ctx)
	}
	skip, move, last := open[1], open[2], open[0]
	key, err := d.keyOf(ctx, skip.Case)
	if err != nil {
		return nil, err
	}
	output, err := json.Marshal(parcel{key, "a shop in town"})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(d.out, "\nAnn got the parts of %s in town, so that work is skipped with an output:\n", key)
	d.say("tasq item skip "+skip.Item.String(), "--data "+printable.Word(string(output))+" --by ann --reason \"bought in town\"")
	if _, err = d.engine.Do(ctx, workflow.Skip(skip.Item, output, workflow.By("ann"), workflow.Because("bought in town"))); err != nil {
		return nil, err
	}

	d.supplier.down.Store(false)
	if key, err = d.keyOf(ctx, move.Case); err != nil {
		return nil, err
	}
	fmt.Fprintf(d.out, "\nThe supplier is back. The price of %s has changed, so that one goes on a step earlier:\n", key)
	d.say("tasq case move "+move.Case.String()+" buy price", "--by ben --reason \"a new price\"")
	if _, err = d.engine.Do(ctx, workflow.Move(move.Case, "buy", "price", workflow.By("ben"), workflow.Because("a new price"))); err != nil {
		return nil, err
	}
	return []workitem.CaseID{skip.Case, move.Case, last.Case}, d.retry(ctx)
}

// retry retries the other incidents by one bulk action.
func (d *incidents) retry(ctx context.Context) error {
	targets, err := bulk.Open(ctx, d.engine, store.IncidentFilter{Workflow: d.recipe.Name, Code: new(codeDown)})
	if err != nil || len(targets) == 0 {
		return err
	}
	fmt.Fprintf(d.out, "\nOne command has the others tried again:\n")
	d.say("tasq incident retry", "--code "+codeDown+" --all --by cleo --reason \"the supplier is back\"")
	run, err := d.bulk.Start(ctx, d.engine, bulk.Action{Kind: workflow.KindRetry, Reason: "the supplier is back", Actor: "cleo"}, targets)
	if err != nil {
		return err
	}
	result, err := run.Result(ctx, d.engine)
	fmt.Fprintf(d.out, "%s done, %d refused\n", printable.Plural(result.Done, "incident"), len(result.Refused)+result.More)
	return err
}

func (d *incidents) keyOf(ctx context.Context, id workitem.CaseID) (string, error) {
	c, err := d.engine.Case(ctx, id)
	if err != nil {
		return "", err
	}
	return c.Key, nil
}

// counts prints the number of purchases by outcome.
func (d *incidents) counts(ctx context.Context) error {
	return d.engine.View(ctx, func(r store.Reader) error {
		all, err := r.Counts(ctx)
		for _, c := range all {
			if c.What == "case" && c.Workflow == d.recipe.Name {
				fmt.Fprintf(d.out, "  %d %s\n", c.N, c.State)
			}
		}
		return err
	})
}

// history prints the actions of persons on a case, with their reasons.
func (d *incidents) history(ctx context.Context, id workitem.CaseID) error {
	tree, err := store.TreeOf(ctx, d.engine, id)
	if errors.Is(err, store.ErrNotFound) { // the user of the pages has removed it
		return nil
	} else if err != nil {
		return err
	}
	c := tree.Case(id)
	fmt.Fprintf(d.out, "\n%s:\n", c.Key)
	history := words.New(tree, id)
	for e, err := range store.AllEntries(ctx, d.engine, store.JournalFilter{Root: id}) {
		if err != nil {
			return err
		}
		for i, change := range e.Changes {
			line, _ := history.Describe(change, e.At)
			if e.By == "" || e.By == "demo" {
				continue
			}
			if i == 0 {
				fmt.Fprintf(d.out, "  %s, by %s\n", printable.Line(history.CommandText(e.Command)), printable.Line(e.By))
			}
			fmt.Fprintf(d.out, "    %s\n", printable.Line(line))
		}
	}
	return nil
}
