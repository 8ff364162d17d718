package sqlite

import (
	"bytes"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// window holds what committed commands changed and the tables do not show yet: the newest value of each case, item and job.
// The values are never changed once they are here, so readers of the port may share them.
type window struct {
	commands int
	seq      int64 // journal position of the newest command; 0 if there is none
	cases    map[workitem.CaseID]*store.Case
	items    map[workitem.ID]*workitem.Item
	jobs     map[workitem.JobID]*store.Job
}

func newWindow() window {
	return window{
		cases: make(map[workitem.CaseID]*store.Case),
		items: make(map[workitem.ID]*workitem.Item),
		jobs:  make(map[workitem.JobID]*store.Job),
	}
}

// add takes the changes of a command that has been committed.
func (w *window) add(seq int64, d store.Dirty) {
	w.commands++
	w.seq = seq
	for _, c := range d.Cases {
		w.cases[c.ID] = c
	}
	for _, it := range d.Items {
		w.items[it.ID] = it
	}
	for _, j := range d.Jobs {
		w.jobs[j.ID] = j
	}
}

func (w *window) clear() {
	w.commands, w.seq = 0, 0
	clear(w.cases)
	clear(w.items)
	clear(w.jobs)
}

// write brings tables up to the window's position, in the transaction that is open. Rows are written in the order of their
// keys, so that neighbours share pages.
func (w *window) write(to *rowWriter) error {
	for _, id := range sorted(w.cases) {
		if err := to.writeCase(w.cases[id]); err != nil {
			return err
		}
	}
	for _, id := range sorted(w.items) {
		if err := to.writeItem(w.items[id]); err != nil {
			return err
		}
	}
	for _, id := range sorted(w.jobs) {
		if err := to.writeJob(w.jobs[id]); err != nil {
			return err
		}
	}
	return nil
}

func sorted[K interface{ ~[16]byte }, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		x, y := [16]byte(a), [16]byte(b)
		return bytes.Compare(x[:], y[:])
	})
}
