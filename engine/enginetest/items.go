package enginetest

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Item finds a work item of a case by its label, such as "review.1.2", or by the name of its task: then it is the one
// that is not final. The test fails if there is none, or if there are several.
func (e *Engine) Item(id workitem.CaseID, label string) *workitem.Item {
	e.t.Helper()
	var found []*workitem.Item
	for _, it := range e.itemsOf(id) {
		if it.Label() == label || it.Task == label && it.State.Live() {
			found = append(found, it)
		}
	}
	if len(found) != 1 {
		e.t.Fatalf("case %s has %d items %q; its items are %s", id, len(found), label, strings.Join(e.States(id), ", "))
	}
	return found[0]
}

// States lists the work items of a case in the order of their creation, each with its state: "review.1.2 completed".
// Those of its child cases are not among them. The list is nil if there is no item.
func (e *Engine) States(id workitem.CaseID) []string {
	e.t.Helper()
	var list []string
	for _, it := range e.itemsOf(id) {
		list = append(list, it.Label()+" "+it.State.String())
	}
	return list
}

func (e *Engine) itemsOf(id workitem.CaseID) []*workitem.Item {
	e.t.Helper()
	var items []*workitem.Item
	for row, err := range store.AllItems(context.Background(), e, store.ItemFilter{Case: id}) {
		if err != nil {
			e.t.Fatalf("items of case %s: %v", id, err)
		}
		items = append(items, row.Item)
	}
	return items
}

// OpenItem creates one more work item in an enabled or started task.
func OpenItem[In any](e *Engine, id workitem.CaseID, task string, input In) *workitem.Item {
	e.t.Helper()
	added, err := e.Do(context.Background(), workflow.AddItem(id, task, payload(e, input)))
	if err != nil {
		e.t.Fatalf("open an item of %s: %v", task, err)
	}
	row, err := e.Engine.Item(context.Background(), added.Item)
	if err != nil {
		e.t.Fatalf("open an item of %s: %v", task, err)
	}
	return row.Item
}

// StartItem starts the item that [Engine.Item] finds, and returns it.
func (e *Engine) StartItem(id workitem.CaseID, label string, opts ...workflow.Option) *workitem.Item {
	e.t.Helper()
	it := e.Item(id, label)
	e.do(it, workitem.Start, nil, opts)
	return it
}

// CompleteItem completes the item that [Engine.Item] finds with an output, and starts it before if nothing has.
func CompleteItem[Out any](e *Engine, id workitem.CaseID, label string, out Out, opts ...workflow.Option) {
	e.t.Helper()
	e.do(e.begun(id, label), workitem.Complete, payload(e, out), opts)
}

// FailItem fails the item that [Engine.Item] finds, and starts it before if nothing has.
func (e *Engine) FailItem(id workitem.CaseID, label string, f *workitem.Failure, opts ...workflow.Option) {
	e.t.Helper()
	e.do(e.begun(id, label), workitem.Fail, payload(e, f), opts)
}

// OutputOf reads the output of the item of this label. The test fails if it has not completed, or gave something else.
func OutputOf[Out any](e *Engine, id workitem.CaseID, label string) Out {
	e.t.Helper()
	it := e.Item(id, label)
	if it.State != workitem.Completed {
		e.t.Fatalf("output of item %s: it is %s", it.Label(), it.State)
	}
	var out Out
	if len(it.Output) == 0 {
		return out
	}
	out, err := domain.Restore[Out](it.Output)
	if err != nil {
		e.t.Fatalf("output of item %s: %v", it.Label(), err)
	}
	return out
}

// begun finds an item, and starts it if nothing has.
func (e *Engine) begun(id workitem.CaseID, label string) *workitem.Item {
	e.t.Helper()
	it := e.Item(id, label)
	if it.State == workitem.Initialized {
		e.do(it, workitem.Start, nil, nil)
	}
	return it
}

func (e *Engine) do(it *workitem.Item, a workitem.Action, payload json.RawMessage, opts []workflow.Option) {
	e.t.Helper()
	if _, err := e.Do(context.Background(), workflow.Act(it.ID, a, payload, opts...)); err != nil {
		e.t.Fatalf("%s item %s: %v", a, it.Label(), err)
	}
}

func payload(e *Engine, v any) json.RawMessage {
	e.t.Helper()
	raw, err := json.Marshal(v) // the engine validates it
	if err != nil {
		e.t.Fatalf("a payload cannot be written as JSON: %v", err)
	}
	return raw
}
