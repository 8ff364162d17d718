package integrity

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// family is a root case with its descendants, as rebuilt from the journal and as in the tables.
type family struct {
	tree     *state.Tree
	last     int64 // position of the last entry
	removed  bool  // by an entry
	items    map[workitem.ID]*workitem.Item
	jobs     map[workitem.JobID]*state.Job
	steps    map[workitem.StepID]*workitem.Step
	messages map[workitem.MessageID]*state.Message

	// What is live after the last entry, by what it belongs to.
	live    map[workitem.CaseID]map[workitem.CaseID]bool          // child cases, by parent
	jobsOf  map[workitem.ID]map[workitem.JobID]bool               // jobs, by item
	waiting map[workitem.JobID]map[workitem.StepID]*workitem.Step // waiting steps, by job
	callers map[workitem.CaseID]*workitem.Step                    // waiting steps, by the child case that each one runs

	stored struct {
		cases    []*state.Case
		items    []*workitem.Item
		jobs     []*state.Job
		steps    []*workitem.Step
		messages []*state.Message
	}
}

func newFamily(root workitem.CaseID) *family {
	f := &family{tree: state.NewTree(), items: make(map[workitem.ID]*workitem.Item),
		jobs: make(map[workitem.JobID]*state.Job), steps: make(map[workitem.StepID]*workitem.Step),
		messages: make(map[workitem.MessageID]*state.Message),
		live:     make(map[workitem.CaseID]map[workitem.CaseID]bool), jobsOf: make(map[workitem.ID]map[workitem.JobID]bool),
		waiting: make(map[workitem.JobID]map[workitem.StepID]*workitem.Step), callers: make(map[workitem.CaseID]*workitem.Step)}
	f.tree.Root = root
	return f
}

// add adds the changes of an entry.
func (f *family) add(d state.Dirty) {
	for _, k := range d.Cases {
		if !k.Parent.IsZero() {
			keep(f.live, k.Parent, k.ID, true, !k.State.Final())
		}
	}
	for _, it := range d.Items {
		f.items[it.ID] = it
	}
	for _, j := range d.Jobs {
		f.jobs[j.ID] = j
		if !j.Item.IsZero() {
			keep(f.jobsOf, j.Item, j.ID, true, j.State.Live())
		}
	}
	for _, s := range d.Steps {
		f.steps[s.ID] = s
		waits := s.State == workitem.StepWaiting
		keep(f.waiting, s.Job, s.ID, s, waits)
		if waits && !s.Child.IsZero() {
			f.callers[s.Child] = s
		} else {
			delete(f.callers, s.Child)
		}
	}
	for _, m := range d.Messages {
		f.messages[m.ID] = m
	}
}

// keep adds an entry to an index, or removes it.
func keep[O, K comparable, V any](index map[O]map[K]V, of O, key K, v V, there bool) {
	switch m := index[of]; {
	case there && m == nil:
		index[of] = map[K]V{key: v}
	case there:
		m[key] = v
	case len(m) == 1:
		if _, last := m[key]; last {
			delete(index, of)
		}
	default:
		delete(m, key)
	}
}

// pageSize is the number of rows that are read at a time. It is large, since each page has a cost that depends on the
// size of the cases.
const pageSize = 10_000

// readAll reads the rows of one table, page by page.
func readAll[V any](read func(store.Page) ([]V, error), id func(V) string, take func(V)) error {
	return pages(func(after string) (string, bool, error) {
		rows, err := read(store.Page{After: after, Limit: pageSize})
		for _, row := range rows {
			take(row)
			after = id(row)
		}
		return after, len(rows) == pageSize, err
	})
}

// readStored reads the rows of root cases from the tables. Rows of no root case are found by [checker.orphans].
func readStored(
	ctx context.Context, r store.Reader, ids []workitem.CaseID, families map[workitem.CaseID]*family,
) error {
	root := make(map[workitem.CaseID]*family) // by any case
	of := func(id workitem.CaseID) *family {
		if f := root[id]; f != nil {
			return f
		}
		return &family{} // a row may refer to any case
	}
	err := readAll(func(p store.Page) ([]*state.Case, error) { return r.Cases(ctx, store.CaseFilter{Roots: ids, Page: p}) },
		func(k *state.Case) string { return k.ID.String() },
		func(k *state.Case) {
			if f := families[k.Root]; f != nil {
				f.stored.cases, root[k.ID] = append(f.stored.cases, k), f
			}
		})
	if err != nil {
		return err
	}
	err = readAll(func(p store.Page) ([]*store.ItemRow, error) {
		return r.Items(ctx, store.ItemFilter{Roots: ids, Page: p})
	},
		func(it *store.ItemRow) string { return it.ID.String() },
		func(it *store.ItemRow) { f := of(it.Case); f.stored.items = append(f.stored.items, it.Item) })
	if err != nil {
		return err
	}
	err = readAll(func(p store.Page) ([]*state.Job, error) { return r.Jobs(ctx, store.JobFilter{Roots: ids, Page: p}) },
		func(j *state.Job) string { return j.ID.String() },
		func(j *state.Job) { f := of(j.Case); f.stored.jobs = append(f.stored.jobs, j) })
	if err != nil {
		return err
	}
	err = readAll(func(p store.Page) ([]*workitem.Step, error) {
		return r.Steps(ctx, store.StepFilter{Roots: ids, Page: p})
	},
		func(s *workitem.Step) string { return s.ID.String() },
		func(s *workitem.Step) { f := of(s.Case); f.stored.steps = append(f.stored.steps, s) })
	if err != nil {
		return err
	}
	return readAll(func(p store.Page) ([]*state.Message, error) {
		return r.Messages(ctx, store.MessageFilter{Roots: ids, Page: p})
	},
		func(m *state.Message) string { return m.ID.String() },
		func(m *state.Message) { f := of(m.Case); f.stored.messages = append(f.stored.messages, m) })
}
